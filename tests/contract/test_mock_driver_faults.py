# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What goes wrong on the mocked driver on purpose."""

from __future__ import annotations

import sys

import pytest

from _resident import MOCK_DRIVER
from mocked_machine import MockedMachine

SET = "nvmlDeviceSetComputeMode"
# Five times on each card, beginning with the first: the codes, and the modes at the end.
FIVE_EACH = """
devices = [nvmlDeviceGetHandleByIndex(0), nvmlDeviceGetHandleByIndex(1)]
answer = [[code(nvmlDeviceSetComputeMode, device, 3) for _ in range(5)] for device in devices]
answer.append([nvmlDeviceGetComputeMode(device) for device in devices])
"""


@pytest.mark.parametrize("code", ["IN_USE", "NVML_ERROR_IN_USE", "in_use", "19"])
def test_code_by_name_or_number(machine: MockedMachine, code: str) -> None:
    machine.mock_driver("fault", SET, code)
    assert machine.nvml(FIVE_EACH) == [[19] * 5, [19] * 5, [0, 0]]


def test_from_the_nth_call_on(machine: MockedMachine) -> None:
    machine.mock_driver("fault", SET, "UNKNOWN", "--from", 7)
    assert machine.nvml(FIVE_EACH) == [[0] * 5, [0, 999, 999, 999, 999], [3, 3]]


def test_only_at_the_nth_call(machine: MockedMachine) -> None:
    machine.mock_driver("fault", SET, "UNKNOWN", "--only", 2)
    assert machine.nvml(FIVE_EACH) == [[0, 999, 0, 0, 0], [0] * 5, [3, 3]]


def test_calls_are_counted_over_processes(machine: MockedMachine) -> None:
    machine.mock_driver("fault", SET, "UNKNOWN", "--only", 2)
    program = f"answer = code({SET}, nvmlDeviceGetHandleByIndex(0), 2)"
    assert [machine.nvml(program) for _ in range(3)] == [0, 999, 0]


def test_on_one_card(machine: MockedMachine) -> None:
    machine.mock_driver("fault", SET, "UNKNOWN", "--gpu", 1)
    assert machine.nvml(FIVE_EACH) == [[0] * 5, [999] * 5, [3, 0]]


@pytest.mark.parametrize(("target", "codes"), [("nvmlDeviceGetCount", [9, 9]), ("nvmlDeviceGetCount_v2", [0, 9])])
def test_name_without_version_means_every_version(machine: MockedMachine, target: str, codes: list[int]) -> None:
    machine.mock_driver("fault", target, "DRIVER_NOT_LOADED")
    program = """
from ctypes import CDLL, byref, c_uint
library = CDLL("libnvidia-ml.so.1")
answer = [function(byref(c_uint())) for function in (library.nvmlDeviceGetCount, library.nvmlDeviceGetCount_v2)]
"""
    assert machine.nvml(program) == codes


def test_handle_of_one_card_by_its_index(machine: MockedMachine) -> None:
    machine.mock_driver("fault", "nvmlDeviceGetHandleByIndex", "GPU_IS_LOST", "--gpu", 1)
    assert machine.nvml("answer = [code(nvmlDeviceGetHandleByIndex, index) for index in range(2)]") == [0, 15]


def test_setter_that_lies_changes_nothing(machine: MockedMachine) -> None:
    machine.mock_driver("fault", SET, "LIE", "--gpu", 1)
    assert machine.nvml(FIVE_EACH) == [[0] * 5, [0] * 5, [3, 0]]
    assert machine.calls()["functions"][SET] == {"calls": 10, "failed": 0, "changes": 1, "setter": True}


def test_lie_about_the_mig_mode_has_a_status_too(machine: MockedMachine) -> None:
    machine.mock_driver("fault", "nvmlDeviceSetMigMode", "LIE")
    program = "device = nvmlDeviceGetHandleByIndex(0)\n"
    program += "answer = [nvmlDeviceSetMigMode(device, 1), nvmlDeviceGetMigMode(device)]"
    assert machine.nvml(program) == [0, [0, 0]]


def test_function_that_never_returns_blocks_nobody_else(machine: MockedMachine) -> None:
    machine.mock_driver("fault", "nvmlDeviceGetName", "HANG", "--gpu", 0)
    with machine.start("print('ready', flush=True); nvmlDeviceGetName(nvmlDeviceGetHandleByIndex(0))") as hanging:
        assert hanging.stdout
        hanging.stdout.readline()
        while machine.calls()["functions"].get("nvmlDeviceGetHandleByIndex_v2", {}).get("calls") != 1:
            assert hanging.poll() is None
        name = machine.nvml("answer = nvmlDeviceGetName(nvmlDeviceGetHandleByIndex(1))")
        assert name == "NVIDIA A100-SXM4-40GB"
        assert hanging.poll() is None
        hanging.terminate()
    assert hanging.returncode == -15


def test_init_can_fail(machine: MockedMachine) -> None:
    machine.mock_driver("fault", "nvmlInitWithFlags", "LIB_RM_VERSION_MISMATCH", "--only", 1)
    assert machine.nvml("answer = [code(nvmlInit), code(nvmlInit)]", init=False) == [18, 0]


def test_faults_are_listed_and_cleared(machine: MockedMachine) -> None:
    machine.mock_driver("fault", SET, "IN_USE", "--from", 2, "--gpu", 1)
    machine.mock_driver("fault", "nvidia-smi", "HANG")
    assert machine.mock_driver("fault", "list").splitlines() == [
        "nvmlDeviceSetComputeMode for GPU 1: IN_USE, calls from 2 on, 0 seen",
        "nvidia-smi: HANG, calls from 1 on, 0 seen",
    ]
    machine.mock_driver("fault", "clear")
    assert machine.mock_driver("fault", "list") == ""
    assert machine.nvml(FIVE_EACH) == [[0] * 5, [0] * 5, [3, 3]]


def test_program_learns_of_its_fault(machine: MockedMachine) -> None:
    """The contract that the README gives to programs that play a part on the machine."""
    machine.mock_driver("fault", "nvidia-smi", "HANG_IGNORING_TERM", "--only", 2)
    program = """
from library.faults import program_fault
from library.state import open_state
with open_state() as state:
    print([program_fault(state, "nvidia-smi") for _ in range(3)], program_fault(state, "nvidia-cuda-mps-control"))
"""
    ran = machine.run(sys.executable, "-c", program, PYTHONPATH=str(MOCK_DRIVER))
    assert ran.stdout == "[None, 'HANG_IGNORING_TERM', None] None\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nvmlNope", "IN_USE"), "'nvmlNope' is neither a function of nvml.h nor one of"),
        ((SET, "NOPE"), "'NOPE' is no NVML code; known are SUCCESS, UNINITIALIZED"),
        ((SET, "998"), "'998' is no NVML code"),
        ((SET,), "give what goes wrong"),
        ((SET, "GARBAGE"), "GARBAGE is for programs"),
        (("nvmlDeviceGetName", "LIE"), "nvmlDeviceGetName only reads"),
        (("nvidia-smi", "IN_USE"), "'IN_USE' cannot happen to a program; possible are LIE, HANG"),
        ((SET, "IN_USE", "--from", "0"), "calls are counted from 1"),
        ((SET, "IN_USE", "--from", "1", "--only", "2"), "not allowed with argument --from"),
        ((SET, "IN_USE", "--gpu", "5"), "unknown GPU '5': give an index below 2"),
        (("nvmlInit_v2", "IN_USE", "--gpu", "0"), "--gpu: nvmlInit_v2 is not called for one card"),
    ],
)
def test_fault_that_cannot_be_is_refused(machine: MockedMachine, arguments: tuple[str, ...], message: str) -> None:
    assert message in machine.refusal("fault", *arguments)
    assert machine.mock_driver("fault", "list") == ""


def test_lost_card(machine: MockedMachine) -> None:
    """A handle from before is of no use either; the other card works on."""
    machine.mock_driver("lose", 1)
    uuid = "GPU-283ac3e4-651c-534a-a922-7909abbd0be0"
    program = f"""
answer = [nvmlDeviceGetCount(), code(nvmlDeviceGetHandleByIndex, 1), code(nvmlDeviceGetHandleByUUID, {uuid!r}),
          code(nvmlDeviceGetHandleByPciBusId, "0F:00.0"), code(nvmlDeviceSetComputeMode, nvmlDeviceGetHandleByIndex(0), 3)]
"""
    assert machine.nvml(program) == [2, 15, 15, 15, 0]
    assert "lost" in machine.mock_driver("show")
    machine.mock_driver("find", 1)
    assert machine.nvml("answer = code(nvmlDeviceGetHandleByIndex, 1)") == 0


def test_card_that_is_lost_in_between(machine: MockedMachine) -> None:
    program = """
device = nvmlDeviceGetHandleByIndex(1)
print("ready", flush=True)
input()
try:
    nvmlDeviceGetName(device)
except NVMLError as error:
    print(error.value, flush=True)
"""
    with machine.start(program) as client:
        assert client.stdout
        assert client.stdout.readline() == "ready\n"
        machine.mock_driver("lose", 1)
        assert client.communicate("\n")[0] == "15\n"
