# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The command mock-driver."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from _resident import MOCK_DRIVER
from mocked_machine import COMMAND, MockedMachine

Start = Callable[[str], MockedMachine]
# Makes a daemon that has left its session and its parent, and ignores SIGTERM when told to; prints its pid.
DAEMON = """
import os, signal, sys
if os.fork():
    os.wait()
    sys.exit(3)
os.setsid()
if os.fork():
    os._exit(0)
if {stubborn}:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(os.getpid(), flush=True)
os.closerange(0, 3)
signal.pause()
"""


def lives(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


@pytest.fixture
def nowhere(built: Path, tmp_path: Path) -> MockedMachine:
    """No machine is up yet."""
    return MockedMachine(tmp_path / "state")


def run_on(nowhere: MockedMachine, *command: str | Path, machine: str = "t4") -> subprocess.CompletedProcess[str]:
    return nowhere.run(COMMAND, "run", machine, "--", *command)


def test_run_gives_the_exit_code_of_the_command(nowhere: MockedMachine) -> None:
    assert run_on(nowhere, "sh", "-c", "exit 7").returncode == 7
    assert run_on(nowhere, "sh", "-c", "kill -9 $$").returncode == 128 + 9


def test_run_has_a_state_of_its_own_and_removes_it(nowhere: MockedMachine) -> None:
    ran = run_on(nowhere, "sh", "-c", f"echo $MOCK_DRIVER_STATE; test -e $MOCK_DRIVER_STATE && {COMMAND} show")
    state, shown = ran.stdout.split("\n", 1)
    assert shown.startswith("machine t4, driver 535.309.01\n")
    assert not Path(state).parent.exists()
    assert not nowhere.state.exists()


@pytest.mark.parametrize("stubborn", [False, True])
def test_run_leaves_no_process(nowhere: MockedMachine, stubborn: bool) -> None:
    ran = run_on(nowhere, sys.executable, "-c", DAEMON.format(stubborn=stubborn))
    assert ran.returncode == 3
    assert not lives(int(ran.stdout))


def test_run_that_is_terminated_ends_its_command_and_leaves_nothing(nowhere: MockedMachine) -> None:
    command = [str(COMMAND), "run", "t4", "--", "sh", "-c", "echo $$ $MOCK_DRIVER_STATE; exec sleep 1000"]
    with subprocess.Popen(command, env=nowhere.environment, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout
        pid, state = running.stdout.readline().split()
        running.send_signal(signal.SIGTERM)
        running.wait(timeout=30)
    assert running.returncode == 128 + 15
    assert not lives(int(pid))
    assert not Path(state).parent.exists()


def test_run_puts_library_and_stand_ins_first(nowhere: MockedMachine) -> None:
    variables = ("sh", "-c", "echo $LD_LIBRARY_PATH; echo $PATH; echo $MOCK_DRIVER_STATE")
    library, path, state = run_on(nowhere, *variables).stdout.splitlines()
    assert library.split(":")[0] == str(MOCK_DRIVER / "build")
    assert path == f"{MOCK_DRIVER / 'programs'}:{os.environ['PATH']}"
    assert state != str(nowhere.state)
    ran = nowhere.run(COMMAND, "run", "t4", "--programs", "none", "--", *variables)
    assert ran.stdout.splitlines()[1] == os.environ["PATH"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "t5", "--", "true"), "unknown machine 't5'; known are a100-40gb, a100-40gb-x2,"),
        (("run", "t4"), "give the command to run after --"),
        (("run", "t4", "--", "/nope"), "cannot run /nope: No such file or directory"),
        (("run", "t4", "--programs", "all", "--", "true"), "invalid choice: 'all' (choose from"),
        (("show", "--", "true"), "only run takes a command after --"),
        (("show",), "no mocked machine is up at"),
        (("shew",), "invalid choice: 'shew' (choose from"),
    ],
)
def test_bad_call_says_what_is_possible(nowhere: MockedMachine, arguments: tuple[str, ...], message: str) -> None:
    assert message in nowhere.refusal(*arguments)


def test_second_machine_on_one_state_is_refused(machine: MockedMachine) -> None:
    assert f"a mocked machine is up at {machine.state} already" in machine.refusal("up", "t4")
    assert "A100" in machine.mock_driver("show")


def test_state_is_named_by_option_or_variable(nowhere: MockedMachine, tmp_path: Path) -> None:
    other = tmp_path / "folder" / "other"
    nowhere.mock_driver("up", "t4", "--state", other)
    assert not nowhere.state.exists()
    assert "Tesla T4" in nowhere.mock_driver("show", "--state", other)
    nowhere.mock_driver("down", "--state", other)
    assert not other.exists()


def test_state_that_cannot_be_made_is_an_error(nowhere: MockedMachine, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    refusal = nowhere.refusal("up", "t4", "--state", tmp_path / "file" / "state")
    assert refusal.startswith("mock-driver: ")
    assert str(tmp_path / "file") in refusal


def test_state_is_open_to_every_user(machine: MockedMachine) -> None:
    """Programs of other users count calls and look for faults in it, too."""
    assert machine.state.stat().st_mode & 0o777 == 0o666


def test_env_is_what_a_shell_needs(machine: MockedMachine) -> None:
    lines = machine.mock_driver("env")
    shell = f"unset MOCK_DRIVER_STATE LD_LIBRARY_PATH\n{lines}{COMMAND} show && command -v nvidia-smi"
    ran = machine.run("sh", "-c", shell)
    assert "a100-40gb-x2" in ran.stdout
    assert ran.stdout.endswith(f"{MOCK_DRIVER}/programs/nvidia-smi\n")
    assert "PATH=" not in machine.mock_driver("env", "--programs", "none").replace("LD_LIBRARY_PATH=", "")


def test_show_is_a_table(start_machine: Start) -> None:
    machine = start_machine("mixed")
    machine.nvml("nvmlDeviceSetComputeMode(nvmlDeviceGetHandleByIndex(2), 3)")
    machine.nvml("nvmlDeviceSetPersistenceMode(nvmlDeviceGetHandleByIndex(1), 1)")
    machine.nvml("nvmlDeviceSetMigMode(nvmlDeviceGetHandleByIndex(0), 1)")
    machine.mock_driver("process", "add", 1, os.getpid())
    rows = [line.split("  ") for line in machine.mock_driver("show").splitlines()]
    cells = [[cell.strip() for cell in row if cell] for row in rows]
    assert cells[1] == ["GPU", "NAME", "UUID", "PCI", "COMPUTE MODE", "PERSISTENCE", "MIG", "PROCESSES"]
    assert [row[4:] for row in cells[2:5]] == [
        ["default", "off", "on", "-"],
        ["default", "on", "not capable", str(os.getpid())],
        ["exclusive_process", "off", "off", "-"],
    ]


SET_ALL = """
for index in range(nvmlDeviceGetCount()):
    device = nvmlDeviceGetHandleByIndex(index)
    nvmlDeviceSetComputeMode(device, 3)
    nvmlDeviceSetPersistenceMode(device, 1)
    nvmlDeviceSetAccountingMode(device, 1)
    nvmlDeviceSetMigMode(device, 1)
"""
READ_FIRST = """
device = nvmlDeviceGetHandleByIndex(0)
answer = [nvmlDeviceGetComputeMode(device), nvmlDeviceGetPersistenceMode(device), nvmlDeviceGetAccountingMode(device),
          nvmlDeviceGetMigMode(device), len(nvmlDeviceGetComputeRunningProcesses(device))]
"""


@pytest.mark.parametrize(("name", "kept"), [("a100-40gb-x2", 1), ("h100-sxm", 0)])
def test_reboot_resets_all_but_the_mig_mode_of_ampere(start_machine: Start, name: str, kept: int) -> None:
    machine = start_machine(name)
    machine.nvml(SET_ALL)
    machine.mock_driver("process", "add", 0, os.getpid())
    machine.mock_driver("lose", 1)
    assert machine.nvml(READ_FIRST) == [3, 1, 1, [1, 1], 1]
    machine.mock_driver("reboot")
    assert machine.nvml(READ_FIRST) == [0, 0, 0, [kept, kept], 0]
    assert machine.nvml("answer = code(nvmlDeviceGetHandleByIndex, 1)") == 0


def test_reboot_makes_a_pending_mig_mode_effective_on_ampere(machine: MockedMachine) -> None:
    machine.mock_driver("process", "add", 0, os.getpid())
    machine.nvml("nvmlDeviceSetMigMode(nvmlDeviceGetHandleByIndex(0), 1)")
    assert "off, on pending" in machine.mock_driver("show")
    machine.mock_driver("reboot")
    assert machine.nvml(READ_FIRST)[3] == [1, 1]


def test_calls_are_counted_and_setters_are_told_apart(machine: MockedMachine) -> None:
    program = """
device = nvmlDeviceGetHandleByIndex(0)
for mode in (3, 3, 1, 0):
    code(nvmlDeviceSetComputeMode, device, mode)
code(nvmlDeviceGetFanSpeed, device)
"""
    machine.nvml(program)
    found = machine.calls()
    assert found["functions"] == {
        "nvmlInitWithFlags": {"calls": 1, "failed": 0, "changes": 0, "setter": False},
        "nvmlDeviceGetHandleByIndex_v2": {"calls": 1, "failed": 0, "changes": 0, "setter": False},
        "nvmlDeviceSetComputeMode": {"calls": 4, "failed": 1, "changes": 2, "setter": True},
        "nvmlDeviceGetFanSpeed": {"calls": 1, "failed": 1, "changes": 0, "setter": False},
    }
    assert (found["calls"], found["setter_calls"], found["changes"]) == (7, 4, 2)
    table = machine.mock_driver("calls").splitlines()
    assert table[-1] == "7 calls, 4 of setters, 2 changed the machine"
    assert ["4", "1", "2", "setter", "nvmlDeviceSetComputeMode"] in [line.split() for line in table]
    machine.mock_driver("calls", "--reset")
    assert machine.calls()["functions"] == {}


def test_setters_and_getters_are_told_apart_by_name(machine: MockedMachine) -> None:
    """One of each kind of name that NVML has."""
    names = {
        "nvmlDeviceSetMigMode": True,
        "nvmlDeviceCreateGpuInstanceWithPlacement": True,
        "nvmlGpuInstanceDestroy": True,
        "nvmlDeviceClearEccErrorCounts": True,
        "nvmlDeviceResetGpuLockedClocks": True,
        "nvmlDeviceGetMigMode": False,
        "nvmlEventSetCreate": False,
        "nvmlEventSetFree": False,
        "nvmlDeviceValidateInforom": False,
    }
    program = "import ctypes\nlibrary = ctypes.CDLL('libnvidia-ml.so.1')\n"
    program += f"for name in {list(names)}:\n    getattr(library, name)(None, None, None, None)\n"
    machine.nvml(program)
    functions = machine.calls()["functions"]
    assert {name: functions[name]["setter"] for name in names} == names


def test_trace_shows_every_call(machine: MockedMachine) -> None:
    assert machine.mock_driver("trace", "show") == ""
    machine.mock_driver("trace", "on")
    program = "device = nvmlDeviceGetHandleByIndex(1)\ncode(nvmlDeviceSetComputeMode, device, 1)\nimport os\nanswer = os.getpid()"
    pid = machine.nvml(program)
    machine.mock_driver("trace", "off")
    machine.nvml("nvmlDeviceGetCount()")
    lines = [line.split(" ", 1)[1] for line in machine.mock_driver("trace", "show").splitlines()]
    assert lines == [
        f"{pid} nvmlInitWithFlags = SUCCESS",
        f"{pid} nvmlDeviceGetHandleByIndex_v2 GPU 1 = SUCCESS",
        f"{pid} nvmlDeviceSetComputeMode GPU 1 = NOT_SUPPORTED",
    ]


def test_trace_keeps_the_newest_calls(machine: MockedMachine) -> None:
    machine.mock_driver("trace", "on")
    machine.nvml("for _ in range(9000):\n    nvmlDeviceGetCount()\nnvmlShutdown()")
    lines = machine.mock_driver("trace", "show").splitlines()
    assert lines[0] == "(810 older calls are no longer kept)"
    assert len(lines) == 1 + 8192
    assert lines[-1].endswith("nvmlShutdown = SUCCESS")


def test_every_machine_starts(nowhere: MockedMachine) -> None:
    """Its file and those of its models are sound, and the first column of `machines` is what `up` takes."""
    names = [line.split()[0] for line in nowhere.mock_driver("machines").splitlines()]
    assert {"a100-40gb-x2", "mixed", "no-driver", "no-gpu", "t4", "dgx-a100", "h100-sxm", "mismatch"} <= set(names)
    for name in names:
        nowhere.mock_driver("up", name)
        assert f"machine {name}," in nowhere.mock_driver("show")
        nowhere.mock_driver("down")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("model: t5", "unknown model 't5'; known are a100-sxm4-40gb"),
        ("pci: '07:00.0'", "pci must look like"),
        ("compute_mode: exclusive", "compute_mode is 'exclusive', must be one of default"),
        ("colour: green", "unknown key 'colour'"),
    ],
)
def test_slip_in_a_machine_file_is_an_error(nowhere: MockedMachine, tmp_path: Path, line: str, message: str) -> None:
    gpu = {"model": "t4", "uuid": "GPU-1", "pci": "'00000000:3B:00.0'"}
    key, value = line.split(": ")
    text = "".join(f"    {name}: {known}\n" for name, known in {**gpu, key: value}.items())
    file = tmp_path / "mine.yaml"
    file.write_text(f"driver: {{version: '1', nvml: '1', cuda: '12.2'}}\ngpus:\n  -\n{text}")
    assert message in nowhere.refusal("up", str(file))
    assert not nowhere.state.exists()


def test_machine_file_may_set_what_boot_would_not(nowhere: MockedMachine, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    gpu = "{model: a30, uuid: GPU-1, pci: '00000000:3B:00.0', compute_mode: prohibited, persistence_mode: true, mig_mode: true}"
    file.write_text(f"driver: {{version: '1', nvml: '1', cuda: '12.2'}}\ngpus:\n  - {gpu}\n")
    nowhere.mock_driver("up", str(file))
    assert nowhere.nvml(READ_FIRST) == [2, 1, 0, [1, 1], 0]
