# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The daemon's view of one MPS server: its process, its state, its limits and its clients."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass, field

from _mps import channel
from _mps.channel import Channel, Closed

PROGRAM = "nvidia-cuda-mps-server"


@dataclass
class Limits:
    """What a server gives its clients: the share of the multiprocessors, and device memory by device, in bytes."""

    percentage: float = 100.0
    memory: dict[int, int] = field(default_factory=dict)

    def copy(self) -> Limits:
        return Limits(self.percentage, dict(self.memory))

    def set_memory(self, device: int, limit: int) -> None:
        if limit:
            self.memory[device] = limit
        else:
            self.memory.pop(device, None)


@dataclass
class Client:
    """A client of a server."""

    channel: Channel
    pid: int
    uid: int
    number: int = 0


class ServerEntry:
    """A server that the daemon started."""

    def __init__(self, pid: int, uid: int, connection: Channel, limits: Limits) -> None:
        self.pid = pid
        self.uid = uid
        self.channel = connection
        self.limits = limits
        self.ready = False
        self.finishing = False
        self.clients: list[Client] = []
        self._last_number = -1

    def attach(self, client: Client) -> None:
        self._last_number += 1
        client.number = self._last_number
        self.clients.append(client)

    def finish(self) -> None:
        """No new clients; the server ends when the last client is gone."""
        self.finishing = True
        if self.ready and not self.clients:
            try:
                self.channel.send(channel.FINISH)
            except Closed:
                pass

    def kill(self) -> None:
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def spawn(uid: int, limits: Limits, prepare: Callable[[], None]) -> ServerEntry:
    """Starts the server program found on PATH, with the daemon's environment, as the user `uid`.

    The server's stdin is its line to the daemon. The real daemon gives its servers /dev/null there, which is how the
    stand-in server knows that nobody listens.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        try:
            prepare()
            os.dup2(theirs.fileno(), 0)
            if uid != os.getuid():
                os.setuid(uid)
            os.execvp(PROGRAM, [PROGRAM])
        except (OSError, OverflowError):
            os._exit(1)
    theirs.close()
    return ServerEntry(pid, uid, Channel(ours), limits)
