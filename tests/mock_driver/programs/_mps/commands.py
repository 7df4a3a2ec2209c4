# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The commands of the control daemon: what each answers, and what it changes.

Recorded from NVIDIA's 535 and 550 without a GPU, so with servers that never became ready. What is answered for a
ready server and its clients follows the manual page; the places say so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import _machine
from _mps import numbers, process
from _mps.server_entry import Limits, ServerEntry

if TYPE_CHECKING:
    from _mps.daemon import Daemon

_MAX_DEVICE = 31
# Assumed width: the real one takes it from the longest device name.
_DEVICE_WIDTH = 25

Command = Callable[["Daemon", int, list[str], str], list[str]]


class Refused(Exception):
    """A command that answers with these lines instead."""

    def __init__(self, *lines: str) -> None:
        super().__init__(*lines)
        self.lines = list(lines)


def _word(words: list[str], index: int) -> str:
    return words[index] if len(words) > index else ""


def _server(daemon: Daemon, words: list[str]) -> ServerEntry:
    pid = numbers.integer(_word(words, 1))
    if pid not in daemon.servers:
        raise Refused(f"Server {pid} not found")
    return daemon.servers[pid]


def _ready_server(daemon: Daemon, words: list[str]) -> ServerEntry:
    server = _server(daemon, words)
    if not server.ready:
        daemon.log(f"Server {server.pid} is <busy>")
        raise Refused()
    return server


def _require_owner(daemon: Daemon, uid: int) -> None:
    """From 550 on only root and the user who started the daemon may change its settings."""
    if daemon.version >= 550 and uid not in (0, daemon.uid):
        raise Refused(
            f"Insufficient privileges for UID {uid}. Control deamon settings can only be modified by the user started "
            "it or by the root user."
        )


def _get_server_list(daemon: Daemon, uid: int, words: list[str], rest: str) -> list[str]:
    return [str(pid) for pid in daemon.servers]


def _get_server_status(daemon: Daemon, uid: int, words: list[str], rest: str) -> list[str]:
    if not rest:
        return ["A server PID is required"]
    return ["ACTIVE" if _server(daemon, words).ready else "INITIALIZING"]


def _start_server(daemon: Daemon, uid: int, words: list[str], rest: str) -> list[str]:
    if _word(words, 1) != "-uid" or not numbers.is_integer(_word(words, 2)):
        return ["A user id (UID) is required to start a new server"]
    wanted = numbers.integer(words[2])
    if uid not in (0, wanted):
        reason = " Only the root user may start server for another user." if daemon.version >= 550 else ""
        return [f"Insufficient privileges for UID {uid}" + (f".{reason}" if reason else "")]
    if not daemon.servers:
        daemon.start_server(wanted)
    return []


def _shutdown_server(daemon: Daemon, uid: int, words: list[str], rest: str) -> list[str]:
    server = _server(daemon, words)
    if "-f" in words[2:]:
        daemon.force_shutdown(server)
    else:
        server.finish()
    return []


def _get_client_list(daemon: Daemon, uid: int, words: list[str], rest: str) -> list[str]:
    return [str(client.pid) for client in _server(daemon, words).clients]


def _get_device_client_list(daemon: Daemon, uid: int, words: list[str], rest: str) -> list[str]:
    if numbers.integer(_word(words, 1)):
        servers = [_ready_server(daemon, words)]
    else:
        servers = [_ready_server(daemon, ["", str(pid)]) for pid in daemon.servers]
    clients = [str(client.pid) for server in servers for client in server.clients]
    # Assumed layout: the device, then its clients.
    return [line for device in _machine.visible_devices() for line in (f"Device {device}", *clients) if servers]


def _ps(daemon: Daemon, uid: int, words: list[str], rest: str) -> list[str]:
    if _word(words, 1) == "-p":
        pid = numbers.integer(_word(words, 2))
        if pid not in daemon.servers:
            return [f"Server {pid} not found", f"Server {pid} not found", ""]
        servers = [daemon.servers[pid]]
        missing = [f"Server {pid} not found", ""]
    else:
        servers = list(daemon.servers.values())
        missing = ["Server not found"]
    for server in servers:
        if not server.ready:
            daemon.log(f"Server {server.pid} is <busy>")
    if not any(server.ready for server in servers):
        return missing
    lines = [f"{'PID':<10}{'ID':<10}{'SERVER':<15}{'DEVICE':<{_DEVICE_WIDTH}}{'NAMESPACE':<15}{'COMMAND':<15}"]
    for server in servers:
        for client in server.clients:
            for device in _machine.visible_devices():
                lines.append(
                    f"{client.pid:<10}{client.number:<10}{server.pid:<15}{device[:22]:<{_DEVICE_WIDTH}}"
                    f"{process.pid_namespace(client.pid):<15}{process.command(client.pid):<15}"
                )
    return lines


def _terminate_client(daemon: Daemon, uid: int, words: list[str], rest: str) -> list[str]:
    pid = numbers.integer(_word(words, 1))
    server = daemon.servers.get(pid)
    if server is None:
        return [f"Server {pid} not found", f"Server {pid} not found!", "1"]
    if not server.ready:
        daemon.log(f"Server {pid} is <busy>")
        return [f"Server {pid} not found!", "1"]
    client_pid = numbers.integer(_word(words, 2))
    for client in server.clients:
        if client.pid == client_pid:
            daemon.terminate_client(client)
            return ["0"]
    return ["1"]


def _set_percentage(daemon: Daemon, limits: Limits, text: str) -> list[str]:
    value = numbers.percentage(text)
    if value is None:
        daemon.log("Invalid percentage, expected between (0.0, 100.0]")
        value = limits.percentage
    elif not _machine.lies(_machine.CONTROL):
        limits.percentage = value
    return [f"{value:.1f}"]


def _set_default_percentage(daemon: Daemon, uid: int, words: list[str], rest: str) -> list[str]:
    _require_owner(daemon, uid)
    return _set_percentage(daemon, daemon.defaults, rest)


def _get_default_percentage(daemon: Daemon, uid: int, words: list[str], rest: str) -> list[str]:
    return [f"{daemon.defaults.percentage:.1f}"]


def _set_server_percentage(daemon: Daemon, uid: int, words: list[str], rest: str) -> list[str]:
    return _set_percentage(daemon, _ready_server(daemon, words).limits, _word(words, 2))


def _get_server_percentage(daemon: Daemon, uid: int, words: list[str], rest: str) -> list[str]:
    return [f"{_ready_server(daemon, words).limits.percentage:.1f}"]


def _set_memory(daemon: Daemon, limits: Limits, arguments: str) -> list[str]:
    device, limit = numbers.memory_limit(arguments)
    if not 0 <= device <= _MAX_DEVICE:
        daemon.log("Invalid device ordinal!")
    elif not _machine.lies(_machine.CONTROL):
        limits.set_memory(device, limit)
    return []


def _get_memory(daemon: Daemon, limits: Limits, text: str) -> list[str]:
    device = numbers.integer(text)
    if not 0 <= device <= _MAX_DEVICE:
        daemon.log("Invalid device ordinal!")
    elif device not in limits.memory:
        daemon.log("No default pinned memory limit set for the device!")
    else:
        return [numbers.shown_limit(limits.memory[device])]
    return []


def _set_default_memory(daemon: Daemon, uid: int, words: list[str], rest: str) -> list[str]:
    _require_owner(daemon, uid)
    return _set_memory(daemon, daemon.defaults, rest)


def _get_default_memory(daemon: Daemon, uid: int, words: list[str], rest: str) -> list[str]:
    return _get_memory(daemon, daemon.defaults, _word(words, 1))


def _set_server_memory(daemon: Daemon, uid: int, words: list[str], rest: str) -> list[str]:
    return _set_memory(daemon, _ready_server(daemon, words).limits, " ".join(words[2:]))


def _get_server_memory(daemon: Daemon, uid: int, words: list[str], rest: str) -> list[str]:
    return _get_memory(daemon, _ready_server(daemon, words).limits, _word(words, 2))


def _set_default_priority(daemon: Daemon, uid: int, words: list[str], rest: str) -> list[str]:
    _require_owner(daemon, uid)
    value = numbers.integer(rest)
    if value not in (0, 1):
        return ["Invalid priority value - must be 0 or 1!"]
    if not _machine.lies(_machine.CONTROL):
        daemon.priority = value
    return []


def _get_default_priority(daemon: Daemon, uid: int, words: list[str], rest: str) -> list[str]:
    return [str(daemon.priority)]


COMMANDS: dict[str, Command] = {
    "get_server_list": _get_server_list,
    "start_server": _start_server,
    "shutdown_server": _shutdown_server,
    "get_client_list": _get_client_list,
    "get_device_client_list": _get_device_client_list,
    "ps": _ps,
    "terminate_client": _terminate_client,
    "set_default_active_thread_percentage": _set_default_percentage,
    "get_default_active_thread_percentage": _get_default_percentage,
    "set_active_thread_percentage": _set_server_percentage,
    "get_active_thread_percentage": _get_server_percentage,
    "set_default_device_pinned_mem_limit": _set_default_memory,
    "get_default_device_pinned_mem_limit": _get_default_memory,
    "set_device_pinned_mem_limit": _set_server_memory,
    "get_device_pinned_mem_limit": _get_server_memory,
    "set_default_client_priority": _set_default_priority,
    "get_default_client_priority": _get_default_priority,
}
COMMANDS_550: dict[str, Command] = {**COMMANDS, "get_server_status": _get_server_status}


def run(daemon: Daemon, uid: int, line: str) -> list[str]:
    """Runs one line for the user `uid` and returns the lines to print."""
    words = line.split()
    name = words[0] if words else ""
    rest = line.strip()[len(name) :].strip()
    command = (COMMANDS_550 if daemon.version >= 550 else COMMANDS).get(name)
    if command is None:
        return [f'Unknown command "{name}"']
    try:
        return command(daemon, uid, words, rest)
    except Refused as refusal:
        return refusal.lines
