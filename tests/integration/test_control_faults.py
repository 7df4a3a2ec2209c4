# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Bad days of MPS control daemons."""

from __future__ import annotations

import shutil
import signal
import subprocess
from typing import Any, ClassVar, cast

import pytest
from ansible_collections.gpuops.sharing.plugins.module_utils._ansible import task
from ansible_collections.gpuops.sharing.plugins.module_utils._mps import control

from harness.machine import PATIENCE, PROGRAMS, Machine
from harness.modules import Result

CONTROL = "nvidia-cuda-mps-control"
ABSENT = {"name": "render", "state": "absent"}


def test_control_that_never_returns(machine: Machine) -> None:
    machine.mps(machine.daemon())
    (pid,) = machine.daemons()
    machine.mock_driver("fault", CONTROL, "HANG")
    for entry in (machine.daemon(active_thread_percentage=50), ABSENT):
        with machine.untouched():
            refused = machine.mps(entry, timeout=0.3)
        assert refused["error"] == "CommandTimeout"
        for part in (machine.pipe(), f"(pid {pid})", "did not answer", "in time", "end the daemon"):
            assert part in refused.message
    assert machine.programs(CONTROL) == [pid]


def test_force_ends_a_daemon_that_does_not_answer(machine: Machine) -> None:
    machine.mps(machine.daemon())
    machine.mock_driver("fault", CONTROL, "HANG")
    assert machine.mps(ABSENT, force=True, timeout=0.3).changed
    assert machine.daemons() == []
    assert machine.compute_modes()[0] == "default"


def test_info_tells_of_a_daemon_that_does_not_answer(machine: Machine) -> None:
    machine.mps(machine.daemon())
    machine.mock_driver("fault", CONTROL, "HANG")
    daemons = machine.run("nvidia_gpu_info", timeout=0.3)["mps_daemons"]
    assert "did not answer" in next(entry["error"] for entry in daemons if entry["pipe_directory"] == machine.pipe())


def test_control_that_lies(machine: Machine) -> None:
    machine.mps(machine.daemon())
    machine.mock_driver("fault", CONTROL, "LIE")
    wish = machine.daemon(active_thread_percentage=50, memory_limits=[{"size": "8G"}])
    failed = machine.mps(wish)
    assert failed["error"] == "NotReadBack"
    for part in ("they read 100.0 %", "not 50.0 % and 8G on device 0"):
        assert part in failed.message
    machine.mock_driver("fault", "clear")
    assert machine.mps(wish)["daemons"][0]["default"] == {"active_thread_percentage": 50.0, "memory": {"0": "8G"}}


def test_a_new_daemon_whose_limits_are_a_lie_is_taken_back(machine: Machine) -> None:
    machine.mock_driver("fault", CONTROL, "LIE")
    failed = machine.mps(machine.daemon(active_thread_percentage=50))
    assert failed["error"] == "NotReadBack"
    assert failed["not_undone"] == []
    assert machine.daemons() == []
    assert machine.compute_modes() == ["default", "default"]


def test_control_that_talks_nonsense(machine: Machine) -> None:
    machine.mps(machine.daemon())
    machine.mock_driver("fault", CONTROL, "GARBAGE")
    with machine.untouched():
        refused = machine.mps(machine.daemon(active_thread_percentage=50))
    assert refused["error"] == "CommandFailed"
    assert f"Cannot understand what {CONTROL} says on {machine.pipe()}" in refused.message


def test_no_control_program(machine: Machine) -> None:
    machine.only("timeout")
    with machine.untouched():
        refused = machine.mps(machine.daemon())
    for part in (CONTROL, "was not found", "nvidia-cuda-mps"):
        assert part in refused.message
    foretold = machine.mps(machine.daemon(), check=True)
    assert any(CONTROL in str(warning) for warning in foretold["warnings"]), foretold


def broken(machine: Machine, where: str, words: str) -> None:
    """A control program that goes wrong where the pattern fits pipe directory and argument."""
    machine.program(
        CONTROL, f'case "$CUDA_MPS_PIPE_DIRECTORY $1" in {where}) {words};; esac\nexec {PROGRAMS}/{CONTROL} "$@"'
    )


def nothing_is_left(machine: Machine, failed: Result) -> None:
    """All was taken back."""
    assert failed["not_undone"] == []
    assert "Taken back" in failed.message
    assert set(machine.files()) <= {"run"}
    assert machine.daemons() == []
    assert machine.compute_modes() == ["default", "default"]


def test_a_daemon_that_does_not_start(machine: Machine) -> None:
    broken(machine, r"*\ -d", "echo it is raining; exit 1")
    failed = machine.mps(machine.daemon())
    for part in ("did not start", machine.pipe(), "it is raining"):
        assert part in failed.message
    nothing_is_left(machine, failed)


def test_a_daemon_that_does_not_listen_once_it_is_started(machine: Machine) -> None:
    broken(machine, r"*\ ", "echo it is raining; exit 0")
    failed = machine.mps(machine.daemon())
    assert "it is raining" in failed.message
    nothing_is_left(machine, failed)


def test_the_second_daemon_does_not_start(machine: Machine) -> None:
    broken(machine, r"*/infer\ -d", "exit 1")
    failed = machine.mps(machine.daemon("train"), machine.daemon("infer", gpus=[1]))
    assert any(step.startswith("start daemon 'train'") for step in failed["undone"])
    nothing_is_left(machine, failed)


def test_a_front_end_that_is_open_for_a_moment(machine: Machine) -> None:
    """The daemon turns away whoever comes second: the module tries again."""
    machine.mps(machine.daemon())
    waiting = front_end(machine, "get_server_list")
    callers = machine.log().count("Accepting connection...")
    started = machine.start_mps(machine.daemon(active_thread_percentage=50))
    machine.await_log("Accepting connection...", callers + 2)
    assert waiting.stdin
    waiting.stdin.close()
    assert machine.finish(started).changed


def test_a_front_end_that_stays_open(machine: Machine) -> None:
    machine.mps(machine.daemon())
    front_end(machine, "get_server_list")
    with machine.untouched():
        refused = machine.mps(machine.daemon(active_thread_percentage=50), timeout=0.5)
    assert refused["error"] == "CommandTimeout"
    assert "Another front end may be connected to it" in refused.message


def front_end(machine: Machine, command: str) -> subprocess.Popen[str]:
    """Say something to the daemon and stay connected."""
    environment = {**machine.environment, "CUDA_MPS_PIPE_DIRECTORY": machine.pipe()}
    process = subprocess.Popen([CONTROL], env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    assert process.stdin
    process.stdin.write(f"{command}\n")
    process.stdin.flush()
    machine.await_log(f"Cmd:{command}")
    return process


class Hasty:
    """An AnsibleModule whose program ends before it was told anything, and the next time says why."""

    params = {"timeout": PATIENCE}
    answers: ClassVar[list[Any]] = [BrokenPipeError(), (1, "", "Cannot find MPS control daemon process\n")]

    def get_bin_path(self, program: str) -> str:
        return program

    def run_command(self, *_arguments: Any, **_options: Any) -> tuple[int, str, str]:
        answer = self.answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return cast("tuple[int, str, str]", answer)


def test_a_front_end_that_ends_before_it_was_told_anything() -> None:
    module: Any = Hasty()
    control.Control(task.commands(module), "/run/nowhere").quit(1)
    assert module.answers == []


def test_a_plain_quit_while_a_client_lives(machine: Machine) -> None:
    machine.mps(machine.daemon())
    client = machine.client()
    waiting = front_end(machine, "quit")
    (server,) = machine.programs("nvidia-cuda-mps-server")
    with machine.untouched():
        refused = machine.mps(machine.daemon(active_thread_percentage=50), timeout=0.5)
    assert refused["error"] == "CommandTimeout"
    for part in (f"(pid {machine.daemons()[0]})", "a plain 'quit'", f"servers (pids {server})", "End its clients"):
        assert part in refused.message
    assert (client.poll(), waiting.poll()) == (None, None)
    assert machine.mps(machine.daemon(active_thread_percentage=50), force=True, timeout=2).changed
    assert len(machine.daemons()) == 1
    assert client.wait(PATIENCE) != 0 and waiting.wait(PATIENCE) is not None
    assert machine.control("get_default_active_thread_percentage") == "50.0\n"


def test_what_a_killed_daemon_left(machine: Machine) -> None:
    machine.launch()
    machine.kill(machine.daemons()[0])
    assert {path.name for path in (machine.folder / "run" / "render").iterdir()} >= {"control", "control_lock"}
    assert machine.mps(machine.daemon()).changed
    assert len(machine.daemons()) == 1


def test_the_servers_of_a_killed_daemon(machine: Machine) -> None:
    """They keep the card, so that a new daemon's server would be refused."""
    machine.mps(machine.daemon())
    machine.client()
    machine.wait(machine.daemons()[0], signal.SIGTERM)
    (server,) = machine.programs("nvidia-cuda-mps-server")
    with machine.untouched():
        refused = machine.mps(machine.daemon())
    assert refused["error"] == "InUse"
    assert [entry["pid"] for entry in refused["processes"]] == [server]


def test_the_pipe_directory_removed_under_a_daemon(machine: Machine) -> None:
    (before,) = machine.mps(machine.daemon())["daemons"]
    shutil.rmtree(machine.pipe())
    assert machine.daemons() == [before["pid"]]
    foretold = machine.mps(machine.daemon(), check=True)
    result = machine.mps(machine.daemon())
    assert foretold["steps"] == result["steps"]
    assert any(f"(pid {before['pid']}), which no longer answers" in step for step in result["steps"])
    assert machine.daemons() == [result["daemons"][0]["pid"]] != [before["pid"]]
    with machine.untouched():
        assert not machine.mps(machine.daemon()).changed


def test_the_pipe_directory_removed_under_a_daemon_with_a_client(machine: Machine) -> None:
    machine.mps(machine.daemon())
    client = machine.client()
    (server,) = machine.programs("nvidia-cuda-mps-server")
    shutil.rmtree(machine.pipe())
    with machine.untouched():
        refused = machine.mps(machine.daemon())
    assert refused["error"] == "InUse" and f"servers: pids {server}" in refused.message
    assert client.poll() is None
    assert machine.mps(machine.daemon(), force=True).changed
    assert len(machine.daemons()) == 1
    assert client.wait(PATIENCE) != 0


@pytest.mark.parametrize("state", ["started", "absent"])
def test_a_daemon_started_by_hand_on_our_directory(machine: Machine, state: str) -> None:
    machine.launch()
    (pid,) = machine.daemons()
    with machine.untouched():
        refused = machine.mps(machine.daemon(state=state), force=True)
    assert refused["error"] == "InUse"
    for part in (machine.pipe(), f"pid {pid}", "end it (echo quit", "or choose another pipe_directory"):
        assert part in refused.message


def test_ours_replaced_by_one_started_by_hand(machine: Machine) -> None:
    machine.mps(machine.daemon())
    (pid,) = machine.daemons()
    machine.control("quit -t 1")
    machine.wait(pid)
    machine.launch()
    with machine.untouched():
        assert machine.mps(machine.daemon(), force=True)["error"] == "InUse"


def test_another_users_daemon_is_told(machine: Machine) -> None:
    machine.launch("somebody")
    daemons = machine.run("nvidia_gpu_info")["mps_daemons"]
    assert [
        entry["pid"] for entry in daemons if entry["pipe_directory"] == machine.pipe("somebody")
    ] == machine.daemons()
