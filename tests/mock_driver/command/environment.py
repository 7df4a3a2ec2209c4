# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a program needs in its environment to meet the mocked driver, and running one so that nothing of it is left."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import time
from pathlib import Path

from library.state import BUILD, HOME, MockDriverError

PROGRAMS = HOME / "programs"
PR_SET_CHILD_SUBREAPER = 36
GRACE_SECONDS = 2.0


def variables(state: Path, programs: str) -> dict[str, str]:
    """The variables to set; PATH and LD_LIBRARY_PATH keep what was there behind our folders."""
    if not (BUILD / "libnvidia-ml.so.1").exists():
        raise MockDriverError(f"the library is not built; run: make -C {HOME}")
    found = {"MOCK_DRIVER_STATE": str(state), "LD_LIBRARY_PATH": _front(BUILD, "LD_LIBRARY_PATH")}
    if programs == "stand-ins":
        found["PATH"] = _front(PROGRAMS, "PATH")
    return found


def _front(folder: Path, variable: str) -> str:
    others = [part for part in os.environ.get(variable, "").split(":") if part and part != str(folder)]
    return ":".join([str(folder), *others])


def run(command: list[str], environment: dict[str, str]) -> int:
    """Run the command and end every process that it left, daemons too; its exit code, 128 + N after signal N."""
    # Orphans of ours become our children instead of init's: so none can escape, and none of others is touched.
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # What is sent to us alone is handed on, also when it comes while the command is being started.
    children: list[subprocess.Popen[bytes]] = []
    early: list[int] = []

    def hand_on(number: int, _frame: object) -> None:
        if children:
            children[0].send_signal(number)
        else:
            early.append(number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, hand_on)
    try:
        children.append(subprocess.Popen(command, env={**os.environ, **environment}))
    except OSError as error:
        raise MockDriverError(f"cannot run {command[0]}: {error.strerror}") from error
    for received in early:
        children[0].send_signal(received)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C reaches the command by itself
    code = children[0].wait()
    end_descendants()
    return code if code >= 0 else 128 - code


def end_descendants() -> None:
    deadline = time.monotonic() + GRACE_SECONDS
    number = signal.SIGTERM
    told: set[int] = set()
    while living := descendants():
        if number is signal.SIGTERM and time.monotonic() > deadline:
            number, told = signal.SIGKILL, set()
        for pid in living - told:
            _send(pid, number)
        told |= living
        time.sleep(0.01)
        _reap()
    _reap()


def _send(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def descendants() -> set[int]:
    """Every living process below this one."""
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            except OSError:
                continue
            parents[int(folder.name)] = (int(parent), state)
    found: set[int] = set()
    wanted = {os.getpid()}
    while wanted:
        wanted = {pid for pid, (parent, _state) in parents.items() if parent in wanted and pid not in found}
        found |= wanted
    return {pid for pid in found if parents[pid][1] not in "ZX"}
