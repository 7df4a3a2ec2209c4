# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How a stand-in looks to somebody who reads /proc, and how it leaves its parent."""

from __future__ import annotations

import ctypes
import os
import resource

_PR_SET_NAME = 15
# Fields of /proc/PID/stat, counted behind the program's name: where the arguments lie in memory (proc(5)).
_ARG_START, _ARG_END = 45, 46


def look_like(*arguments: str) -> None:
    """Sets what /proc/PID/comm and /proc/PID/cmdline show, so that no interpreter is seen.

    The kernel keeps 15 characters of the name. Where the arguments were longer before, NULs are left behind.
    """
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_NAME, arguments[0].encode(), 0, 0, 0)
    with open("/proc/self/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    start, end = int(fields[_ARG_START]), int(fields[_ARG_END])
    line = b"".join(argument.encode() + b"\0" for argument in arguments)
    if start and len(line) <= end - start:
        ctypes.memmove(start, line.ljust(end - start, b"\0"), end - start)


def close_inherited(keep: tuple[int, ...] = ()) -> None:
    """Closes all but stdin, stdout, stderr and `keep`.

    NVIDIA's daemon keeps what it inherits, a caller's flock included; this one does not, so that a test's pipes and
    locks end with the test.
    """
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    try:
        highest = max(int(name) for name in os.listdir("/proc/self/fd"))
    except OSError:
        highest = soft
    low = 3
    for descriptor in sorted(keep):
        os.closerange(low, descriptor)
        low = descriptor + 1
    os.closerange(low, highest + 1)


def detach_output() -> None:
    """Turns stdin, stdout and stderr into /dev/null."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    if null > 2:
        os.close(null)


def pid_namespace(pid: int) -> str:
    """The number of a process's PID namespace."""
    try:
        return os.readlink(f"/proc/{pid}/ns/pid").strip("pid:[]")
    except OSError:
        return "0"


def command(pid: int) -> str:
    """The first word of a process's command line."""
    try:
        with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
            return file.read().split("\0")[0]
    except OSError:
        return ""
