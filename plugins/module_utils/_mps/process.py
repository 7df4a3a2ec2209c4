# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. What /proc tells of control daemons and their clients (proc(5))."""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import time
import typing as t

CONTROL = "nvidia-cuda-mps-control"
DEFAULT_PIPE = "/tmp/nvidia-mps"  # where a daemon listens that was told nothing else
# struct flock as fcntl(2) takes it on 64-bit Linux, where MPS runs: type, whence, start, length, pid
_FLOCK = "hhqqi4x"


class Found(t.NamedTuple):
    """A control daemon process: its pid, when it started (clock ticks after boot), its owner and its environment."""

    pid: int
    started: int
    uid: int
    environment: dict[str, str]


def lock_holder(pipe_directory: str) -> int | None:
    """Return the pid of the daemon that holds the pipe directory's lock; a live daemon always does (535, 550)."""
    try:
        with open(os.path.join(pipe_directory, "control_lock"), "rb") as handle:
            question = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            answer = struct.unpack(_FLOCK, fcntl.fcntl(handle, fcntl.F_GETLK, question))
    except OSError:
        return None
    kind, pid = answer[0], answer[4]
    return pid if kind != fcntl.F_UNLCK and pid > 0 else None


def inspect(pid: int) -> Found | None:
    """Return what /proc tells of ``pid``; the environment is empty where it may not be read."""
    started, uid = start_time(pid), user(pid)
    return None if started is None or uid is None else Found(pid, started, uid, _environment(pid))


def user(pid: int) -> int | None:
    """Return the user id that ``pid`` runs as, None when it is gone."""
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return None


def _environment(pid: int) -> dict[str, str]:
    pairs = (entry.partition("=") for entry in _read(f"/proc/{pid}/environ").split("\0") if entry)
    return {key: value for key, _equals, value in pairs}


def start_time(pid: int) -> int | None:
    """Return when ``pid`` started, in clock ticks after boot; None when it is gone or only a zombie is left."""
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return int(fields[19]) if len(fields) > 19 and fields[0] not in ("Z", "X") else None


def command(pid: int) -> str:
    """Return the command line of ``pid``, for messages."""
    return " ".join(_read(f"/proc/{pid}/cmdline").split("\0")).strip() or "?"


def children(pid: int) -> tuple[int, ...]:
    """Return the child processes of ``pid``: a control daemon's servers."""
    return tuple(child for child in _pids() if _parent(child) == pid)


def _parent(pid: int) -> int | None:
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return int(fields[1]) if len(fields) > 1 and fields[0] != "Z" else None


def daemons() -> list[Found]:
    """Return every control daemon process of this host (``nvidia-cuda-mps-control`` with ``-d`` or ``-f``)."""
    found = []
    for pid in _pids():
        arguments = _read(f"/proc/{pid}/cmdline").split("\0")
        names = [os.path.basename(argument) for argument in arguments[:2]]  # [1]: behind an interpreter
        if (
            CONTROL in names
            and ("-d" in arguments or "-f" in arguments)
            and os.path.basename(arguments[0]) != "timeout"
        ):
            entry = inspect(pid)
            if entry:
                found.append(entry)
    return found


def _pids() -> list[int]:
    return sorted(int(name) for name in os.listdir("/proc") if name.isdigit())


def _read(path: str) -> str:
    try:
        with open(path, "rb") as handle:
            return handle.read().decode(errors="replace")
    except OSError:
        return ""


def end(pid: int, started: int, grace: float) -> bool:
    """End the very process that started then: SIGTERM, after ``grace`` seconds SIGKILL. Return whether it is gone."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if start_time(pid) != started:
            return True
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return True
        if await_end(pid, started, grace):
            return True
    return False


def await_end(pid: int, started: int, limit: float) -> bool:
    """Wait until the very process that started then is gone; return whether it is, after ``limit`` seconds at the latest."""
    deadline = time.monotonic() + limit
    while start_time(pid) == started:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)  # not our child: there is nothing to wait on
    return True
