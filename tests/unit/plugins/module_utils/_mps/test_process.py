# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What /proc tells of control daemons: real processes that bear their name."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import typing as t

import pytest
from ansible_collections.gpuops.sharing.plugins.module_utils._mps import process

# Locks as a control daemon does, starts a child as a server, says the child's pid, and ends when its input ends.
PROGRAM = """
import fcntl, os, signal, subprocess, sys
if "deaf" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
with open("/proc/self/comm", "w") as comm:
    comm.write(") Z 1 (")
lock = open(os.path.join(os.environ["CUDA_MPS_PIPE_DIRECTORY"], "control_lock"), "w")
fcntl.lockf(lock, fcntl.LOCK_EX)
child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
print(child.pid, flush=True)
sys.stdin.read()
child.communicate()
"""
Start = t.Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: pathlib.Path) -> t.Iterator[Start]:
    """Starts processes named nvidia-cuda-mps-control that are there when it returns, and ends them with the test."""
    program = tmp_path / "nvidia-cuda-mps-control"
    program.write_text(PROGRAM, encoding="utf-8")
    started: list[subprocess.Popen[str]] = []

    def run(*arguments: str) -> subprocess.Popen[str]:
        one = subprocess.Popen(
            [sys.executable, str(program), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "CUDA_MPS_PIPE_DIRECTORY": str(tmp_path)},
        )
        started.append(one)
        return one

    yield run
    for one in started:
        one.communicate()


def server_of(control: subprocess.Popen[str]) -> int:
    """The child of a control daemon; waits until the daemon has its lock."""
    assert control.stdout is not None
    return int(control.stdout.readline())


def started(pid: int) -> int:
    ticks = process.start_time(pid)
    assert ticks is not None
    return ticks


@pytest.mark.parametrize("argument", ["-d", "-f"])
def test_a_control_daemon_is_found_with_its_environment(start: Start, tmp_path: pathlib.Path, argument: str) -> None:
    control = start(argument)
    server = server_of(control)
    found = [entry for entry in process.daemons() if entry.pid == control.pid]
    assert [(entry.uid, entry.environment["CUDA_MPS_PIPE_DIRECTORY"]) for entry in found] == [
        (os.geteuid(), str(tmp_path))
    ]
    assert found[0] == process.inspect(control.pid)
    assert process.children(control.pid) == (server,)
    assert process.user(control.pid) == os.geteuid()


def test_a_front_end_is_no_daemon(start: Start) -> None:
    front_end = start()
    server_of(front_end)
    assert front_end.pid not in [entry.pid for entry in process.daemons()]


def test_a_live_daemon_holds_its_lock(start: Start, tmp_path: pathlib.Path) -> None:
    assert process.lock_holder(str(tmp_path)) is None
    control = start("-d")
    server_of(control)
    assert process.lock_holder(str(tmp_path)) == control.pid
    control.communicate()
    assert (tmp_path / "control_lock").exists()
    assert process.lock_holder(str(tmp_path)) is None


def test_a_process_that_is_gone(start: Start) -> None:
    control = start("-d")
    server_of(control)
    control.communicate()
    assert process.start_time(control.pid) is None
    assert process.inspect(control.pid) is None
    assert process.user(control.pid) is None
    assert process.children(control.pid) == ()
    assert process.command(control.pid) == "?"


def test_a_process_that_nobody_waited_for_is_gone_as_well(start: Start) -> None:
    control = start("-d")
    server_of(control)
    ticks = started(control.pid)
    control.send_signal(signal.SIGKILL)
    assert process.await_end(control.pid, ticks, 30)
    assert os.path.exists(f"/proc/{control.pid}")
    assert process.inspect(control.pid) is None


def test_a_later_process_of_the_same_pid_is_another(start: Start) -> None:
    control = start("-d")
    server_of(control)
    assert process.await_end(control.pid, started(control.pid) - 1, 30)
    assert process.end(control.pid, started(control.pid) - 1, 30)
    assert control.poll() is None


def test_waiting_ends_at_its_limit(start: Start) -> None:
    control = start("-d")
    server_of(control)
    assert not process.await_end(control.pid, started(control.pid), 0)
    assert control.poll() is None


@pytest.mark.parametrize(
    ("arguments", "grace", "signal_number"), [(["-d"], 30, signal.SIGTERM), (["-d", "deaf"], 0.5, signal.SIGKILL)]
)
def test_end(start: Start, arguments: list[str], grace: float, signal_number: int) -> None:
    control = start(*arguments)
    server_of(control)
    assert process.end(control.pid, started(control.pid), grace)
    assert control.wait() == -signal_number


def test_the_command_line_for_messages() -> None:
    assert os.path.basename(sys.executable) in process.command(os.getpid())
