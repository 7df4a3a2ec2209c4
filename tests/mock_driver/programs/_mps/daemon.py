# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The control daemon: one thread, one front end at a time, servers as child processes."""

from __future__ import annotations

import os
import selectors
import signal
import socket
import time
from collections.abc import Callable

from _mps import channel, commands, numbers, server_entry
from _mps.channel import Channel, Closed
from _mps.directory import PipeDirectory
from _mps.log import Log
from _mps.server_entry import Client, Limits, ServerEntry

_NO_TIMEOUT = -1
_UNSIGNED = 2**32


class Daemon:
    """What the daemon knows, and its loop."""

    def __init__(self, pipe: PipeDirectory, log: Log, server_log: int | None, log_pipe: int) -> None:
        self.pipe = pipe
        self.log = log
        self.version = numbers.integer(os.environ.get("MOCK_MPS_VERSION", "535"))
        self.uid = os.getuid()
        self.defaults = Limits(numbers.percentage(os.environ.get("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "")) or 100.0)
        self.priority = 1 if os.environ.get("CUDA_MPS_CLIENT_PRIORITY") == "1" else 0
        self.servers: dict[int, ServerEntry] = {}
        self.pending: list[Client] = []
        self.status = 0
        self._server_log = server_log
        self._ui: Channel | None = None
        self._quitting = False
        self._deadline: float | None = None
        self._selector = selectors.DefaultSelector()
        self._listeners = [self._listen(pipe.control_privileged), self._listen(pipe.control)]
        os.chmod(pipe.control, 0o666)
        self._selector.register(log_pipe, selectors.EVENT_READ, lambda: self._drain(log_pipe))
        self._watch_children()

    # Life and death

    def serve(self) -> int:
        """Runs until a front end says quit; returns the exit status."""
        while not (self._quitting and not self.servers):
            timeout = None if self._deadline is None else max(0.0, self._deadline - time.monotonic())
            for key, _events in self._selector.select(timeout):
                # What was handled before in the same round may have closed this one.
                if self._selector.get_map().get(key.fd) is key:
                    key.data()
            if self._deadline is not None and time.monotonic() >= self._deadline:
                self._deadline = None
                for server in list(self.servers.values()):
                    self.force_shutdown(server)
        self._end()
        return self.status

    def _end(self) -> None:
        self.log(f"Exit with status {self.status}")
        for path in (self.pipe.log, self.pipe.pid_file):
            try:
                os.unlink(path)
            except FileNotFoundError:
                pass
        for listener in self._listeners:
            listener.close()
        if self._ui is not None:
            self._send(self._ui, channel.STATUS, str(self.status))

    def _quit(self, timeout: int) -> None:
        if timeout != _NO_TIMEOUT:
            self.log(f"quit command issued with timeout of {timeout}")
            self._deadline = time.monotonic() + timeout
        self._quitting = True
        for client in self.pending:
            client.channel.close()
        self.pending.clear()
        for server in self.servers.values():
            server.finish()

    # Connections

    def _listen(self, path: str) -> socket.socket:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
        listener.bind(path)
        listener.listen(128)
        self._selector.register(listener, selectors.EVENT_READ, lambda: self._accept(listener))
        return listener

    def _accept(self, listener: socket.socket) -> None:
        connection = Channel(listener.accept()[0])
        self.log("Accepting connection...")
        if self._send(connection, channel.HELLO):
            self._register(connection, lambda: self._greet(connection))
        else:
            connection.close()

    def _greet(self, connection: Channel) -> None:
        self._selector.unregister(connection)
        kind = self._receive(connection)[0]
        if self._ui is not None and self._ui.ended():
            self._close_ui()
        if kind == channel.UI and self._ui is None:
            self.log("NEW UI")
            self._ui = connection
            self._register(connection, self._hear_ui)
        elif kind == channel.CLIENT and not self._quitting:
            self._new_client(Client(connection, *connection.peer()))
        else:
            # One front end at a time: the real daemon, too, hangs up on the second.
            connection.close()

    def _register(self, connection: Channel, action: Callable[[], None]) -> None:
        self._selector.register(connection, selectors.EVENT_READ, action)

    def _drop(self, connection: Channel) -> None:
        self._selector.unregister(connection)
        connection.close()

    @staticmethod
    def _send(connection: Channel, kind: bytes, text: str = "") -> bool:
        try:
            connection.send(kind, text)
        except Closed:
            return False
        return True

    @staticmethod
    def _receive(connection: Channel) -> tuple[bytes, str]:
        """The next packet; its kind is empty when the other side is gone."""
        try:
            return connection.receive()
        except Closed:
            return b"", ""

    def _drain(self, log_pipe: int) -> None:
        lines = os.read(log_pipe, 65536)
        if self._server_log is not None:
            os.write(self._server_log, lines)

    # The front end

    def _hear_ui(self) -> None:
        ui = self._ui
        assert ui is not None
        kind, line = self._receive(ui)
        if not kind:
            self._close_ui()
        elif kind == channel.COMMAND:
            self._run(ui, line)
        elif not self._quitting:
            # While quitting no front end gets an answer any more: it waits until the daemon is gone.
            self._send(ui, channel.STATUS, "0")
            self._close_ui()

    def _close_ui(self) -> None:
        assert self._ui is not None
        self._drop(self._ui)
        self._ui = None
        self.log("UI closed")

    def _run(self, ui: Channel, line: str) -> None:
        self.log(f"Cmd:{line}")
        _pid, uid = ui.peer()
        words = line.split()
        if words[:1] == ["quit"]:
            if uid in (0, self.uid):
                self._quit(self._quit_timeout(words))
                return
            lines = ["Not enough privilege to execute quit command"]
        else:
            lines = commands.run(self, uid, line)
        for text in lines:
            if text:
                self.log(text)
        self._send(ui, channel.TEXT, "".join(f"{text}\n" for text in lines))

    @staticmethod
    def _quit_timeout(words: list[str]) -> int:
        if words[1:2] == ["-t"] and len(words) > 2 and numbers.is_integer(words[2]):
            return numbers.integer(words[2]) % _UNSIGNED
        return _NO_TIMEOUT

    # Servers

    def start_server(self, uid: int) -> None:
        server = server_entry.spawn(uid, self.defaults.copy(), self._leave_child)
        self.log(f"Starting new server {server.pid} for user {uid}")
        self.servers[server.pid] = server
        self._register(server.channel, lambda: self._hear_server(server))

    def _leave_child(self) -> None:
        signal.set_wakeup_fd(-1)

    def _hear_server(self, server: ServerEntry) -> None:
        kind, _text = self._receive(server.channel)
        if kind == channel.READY:
            self.log(f"NEW SERVER {server.pid}: Ready")
            server.ready = True
            if server.finishing:
                server.finish()
            self._attach_pending()
        elif not kind:
            self._selector.unregister(server.channel)

    def force_shutdown(self, server: ServerEntry) -> None:
        if self.version >= 550:
            self.log(f"Force shutting down server {server.pid}")
        server.kill()

    def _watch_children(self) -> None:
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        os.set_blocking(writer, False)
        signal.signal(signal.SIGCHLD, lambda *_arguments: None)
        signal.set_wakeup_fd(writer)
        self._selector.register(reader, selectors.EVENT_READ, lambda: self._reap(reader))

    def _reap(self, reader: int) -> None:
        os.read(reader, 4096)
        for server in list(self.servers.values()):
            pid, status = os.waitpid(server.pid, os.WNOHANG)
            if pid:
                self._bury(server, os.WEXITSTATUS(status) if os.WIFEXITED(status) else 0)

    def _bury(self, server: ServerEntry, status: int) -> None:
        self.log(f"Server {server.pid} exited with status {status}")
        self.log("Removed Shm file at ")
        self.status = self.status or (1 if status else 0)
        del self.servers[server.pid]
        if server.channel in self._selector.get_map():
            self._selector.unregister(server.channel)
        server.channel.close()
        for client in server.clients:
            self._drop(client.channel)
        if status:
            # As with CUDA: whoever waited for the server that failed gets an error.
            for client in self.pending:
                client.channel.close()
            self.pending.clear()
        self._attach_pending()

    # Clients

    def _new_client(self, client: Client) -> None:
        self.pending.append(client)
        if self.servers and not any(server.ready for server in self.servers.values()):
            self.log(
                f"NEW CLIENT {client.pid} from user {client.uid}: Server is not ready, push client to pending list"
            )
        self._attach_pending()

    def _attach_pending(self) -> None:
        """A server has clients of one user; another user's clients wait until it is gone."""
        waiting = []
        for client in self.pending:
            server = next((server for server in self.servers.values() if not server.finishing), None)
            if server is None and not self.servers:
                self.start_server(client.uid)
            if server is None or not server.ready or server.uid != client.uid:
                waiting.append(client)
            else:
                self._attach(client, server)
        self.pending = waiting

    def _attach(self, client: Client, server: ServerEntry) -> None:
        if self._send(client.channel, channel.READY, str(server.pid)):
            self.log(f"NEW CLIENT {client.pid} from user {client.uid}: Server already exists")
            server.attach(client)
            self._register(client.channel, lambda: self._lose_client(client, server))

    def _lose_client(self, client: Client, server: ServerEntry) -> None:
        self._receive(client.channel)
        self._drop(client.channel)
        server.clients.remove(client)
        if server.finishing:
            server.finish()

    def terminate_client(self, client: Client) -> None:
        self._send(client.channel, channel.TERMINATE)
