# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""MIG on the mocked driver: the mode, and what instances a card could have."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from _resident import MOCK_DRIVER
from mocked_machine import MockedMachine

Start = Callable[[str], MockedMachine]
NOT_SUPPORTED, RESET_REQUIRED, IN_USE = 3, 16, 19


def test_only_models_that_have_mig_have_a_mode(start_machine: Start) -> None:
    program = """
answer = []
for index in range(3):
    device = nvmlDeviceGetHandleByIndex(index)
    codes = [code(nvmlDeviceGetMigMode, device), code(nvmlDeviceSetMigMode, device, 1)]
    answer.append([*codes, nvmlDeviceGetMaxMigDeviceCount(device)])
"""
    assert start_machine("mixed").nvml(program) == [[0, 0, 7], [NOT_SUPPORTED, NOT_SUPPORTED, 0], [0, 0, 4]]


def test_mode_refuses_a_compute_mode(machine: MockedMachine) -> None:
    program = """
device = nvmlDeviceGetHandleByIndex(0)
status = nvmlDeviceSetMigMode(device, 1)
answer = [status, nvmlDeviceGetMigMode(device), code(nvmlDeviceSetComputeMode, device, 3)]
"""
    assert machine.nvml(program) == [0, [1, 1], NOT_SUPPORTED]


def test_mode_stays_pending_while_a_process_is_on_the_card(machine: MockedMachine) -> None:
    program = """
device = nvmlDeviceGetHandleByIndex(0)
answer = [nvmlDeviceSetMigMode(device, 1), nvmlDeviceGetMigMode(device)]
"""
    with machine.start("input()") as job:
        machine.mock_driver("process", "add", 0, job.pid)
        assert machine.nvml(program) == [IN_USE, [0, 1]]
        job.communicate("\n")
    assert machine.nvml(program) == [0, [1, 1]]


MODE = """
device = nvmlDeviceGetHandleByIndex(0)
answer = [nvmlDeviceSetMigMode(device, 1), nvmlDeviceGetMigMode(device)]
"""
MODES = "answer = [nvmlDeviceGetMigMode(nvmlDeviceGetHandleByIndex(index)) for index in range(nvmlDeviceGetCount())]"


@pytest.mark.parametrize("kind", ["compute", "graphics", "mps-server", "mps-client"])
def test_mode_waits_for_any_kind_of_process(start_machine: Start, kind: str) -> None:
    """Also where no reset is needed."""
    machine = start_machine("h100-sxm")
    machine.mock_driver("process", "add", 0, os.getpid(), "--kind", kind)
    assert machine.nvml(MODE) == [IN_USE, [0, 1]]
    machine.mock_driver("process", "remove", 0, os.getpid())
    assert machine.nvml(MODE) == [0, [1, 1]]


@pytest.mark.parametrize(("name", "answer"), [("h100-pcie", 1), ("rtx-pro-6000", 1), ("a30", 0), ("t4", None)])
def test_driver_says_whether_mig_mode_needs_a_reset(start_machine: Start, name: str, answer: int | None) -> None:
    program = """
(value,) = nvmlDeviceGetFieldValues(nvmlDeviceGetHandleByIndex(0), [NVML_FI_DEV_IS_RESETLESS_MIG_SUPPORTED])
answer = value.value.uiVal if value.nvmlReturn == 0 else None
"""
    assert start_machine(name).nvml(program) == answer


def test_mode_may_wait_for_a_reset(start_machine: Start) -> None:
    assert start_machine("a100-reset-needed").nvml(MODE) == [RESET_REQUIRED, [0, 1]]
    assert start_machine("hgx-a100").nvml(MODE) == [RESET_REQUIRED, [0, 1]]


def test_mode_in_a_virtual_machine_waits_for_its_boot(start_machine: Start) -> None:
    machine = start_machine("a100-vm")
    assert machine.nvml(MODE) == [NOT_SUPPORTED, [0, 1]]
    assert machine.nvml(MODE) == [NOT_SUPPORTED, [0, 1]]
    machine.mock_driver("reboot")
    assert machine.nvml(MODES) == [[1, 1]]


@pytest.mark.parametrize(
    ("name", "after"), [("a100-40gb-x2", [1, 1]), ("a30", [1, 1]), ("h100-sxm", [0, 0]), ("b200", [0, 0])]
)
def test_reboot_takes_instances_and_on_newer_cards_the_mode(start_machine: Start, name: str, after: list[int]) -> None:
    machine = start_machine(name)
    program = MODE + "instance = nvmlDeviceCreateGpuInstance(device, nvmlDeviceGetGpuInstanceProfileInfo(device, 0).id)"
    assert machine.nvml(program) == [0, [1, 1]]
    machine.mock_driver("reboot")
    assert machine.nvml(MODES)[0] == after
    left = (
        MODE
        + "answer = nvmlDeviceGetGpuInstanceRemainingCapacity(device, nvmlDeviceGetGpuInstanceProfileInfo(device, 0).id)"
    )
    assert machine.nvml(left) == (4 if name == "a30" else 7)


def test_machine_says_of_mig_only_what_its_cards_can(tmp_path: Path, machine: MockedMachine) -> None:
    card = "driver: {{version: '1', nvml: '1', cuda: '1.0'}}\ngpus:\n  - {{model: {}, uuid: GPU-1, pci: '00000000:01:00.0', {}}}\n"
    for model, setting, refusal in (
        (
            "h100-sxm-80gb",
            "mig_activation: RESET_REQUIRED",
            "mig_activation is for models whose MIG mode needs a reset",
        ),
        ("t4", "mig_mode: true", "mig_mode is on, and the model has no MIG"),
        ("a30", "mig_numbering: sideways", "numbering is 'sideways', must be one of normal, swapped"),
    ):
        (tmp_path / "own.yaml").write_text(card.format(model, setting))
        assert refusal in machine.refusal("up", tmp_path / "own.yaml", "--state", tmp_path / "own")


PROFILES = """
device = nvmlDeviceGetHandleByIndex({index})
answer = []
for number in range(NVML_GPU_INSTANCE_PROFILE_COUNT):
    try:
        info = nvmlDeviceGetGpuInstanceProfileInfo(device, number)
    except NVMLError_NotSupported:
        continue
    name = nvmlDeviceGetGpuInstanceProfileInfo(device, number, 2).name
    assert nvmlDeviceGetGpuInstanceProfileInfo(device, number, 2).id == info.id
    count = c_uint()
    nvmlDeviceGetGpuInstancePossiblePlacements(device, info.id, None, byref(count))
    places = (c_nvmlGpuInstancePlacement_t * count.value)()
    nvmlDeviceGetGpuInstancePossiblePlacements(device, info.id, places, byref(count))
    starts = [place.start for place in places]
    answer.append([name, info.id, info.sliceCount, info.instanceCount, info.memorySizeMB, starts, places[0].size])
"""


@pytest.mark.parametrize(
    ("machine_name", "index", "profiles"),
    [
        (
            "mixed",
            0,
            [
                ["MIG 1g.5gb", 19, 1, 7, 4864, [0, 1, 2, 3, 4, 5, 6], 1],
                ["MIG 2g.10gb", 14, 2, 3, 9856, [0, 2, 4], 2],
                ["MIG 3g.20gb", 9, 3, 2, 19968, [0, 4], 4],
                ["MIG 4g.20gb", 5, 4, 1, 19968, [0], 4],
                ["MIG 7g.40gb", 0, 7, 1, 40192, [0], 8],
                ["MIG 1g.5gb+me", 20, 1, 1, 4864, [0, 1, 2, 3, 4, 5, 6], 1],
                ["MIG 1g.10gb", 15, 1, 4, 9856, [0, 2, 4, 6], 2],
            ],
        ),
        ("mixed", 1, []),
        (
            "mixed",
            2,
            [
                ["MIG 1g.6gb", 14, 1, 4, 5952, [0, 1, 2, 3], 1],
                ["MIG 2g.12gb", 5, 2, 2, 11968, [0, 2], 2],
                ["MIG 4g.24gb", 0, 4, 1, 24064, [0], 4],
                ["MIG 1g.6gb+me", 21, 1, 1, 5952, [0, 1, 2, 3], 1],
            ],
        ),
    ],
)
def test_profiles_and_places_are_those_of_the_model(
    start_machine: Start, machine_name: str, index: int, profiles: list[list[object]]
) -> None:
    """As NVIDIA's MIG User Guide lists them."""
    program = "from ctypes import *\n" + PROFILES.format(index=index)
    assert start_machine(machine_name).nvml(program) == profiles


def test_profile_in_its_third_version_has_capabilities_in_place_of_p2p(machine: MockedMachine) -> None:
    program = """
from ctypes import *
device = nvmlDeviceGetHandleByIndex(0)
class Info(Structure):
    _fields_ = [("version", c_uint), ("id", c_uint), ("slices", c_uint), ("numbers", c_uint * 7),
                ("memory", c_ulonglong), ("name", c_char * 96), ("capabilities", c_uint)]
info = Info(version=sizeof(Info) | 3 << 24, capabilities=99)
library = CDLL("libnvidia-ml.so.1")
answer = [library.nvmlDeviceGetGpuInstanceProfileInfoByIdV(device, 9, byref(info))]
answer += [info.id, info.slices, info.memory, info.name.decode(), info.capabilities]
info.version = sizeof(Info) | 9 << 24
answer.append(library.nvmlDeviceGetGpuInstanceProfileInfoByIdV(device, 9, byref(info)))
"""
    assert machine.nvml(program) == [0, 9, 3, 19968, "MIG 3g.20gb", 0, 25]


@pytest.mark.parametrize(
    ("swapped", "ids"),
    [
        (False, {"8": [0], "4": [1, 2], "2": [3, 4, 5, 6], "1": [7, 8, 9, 10, 11, 12, 13, 14]}),
        (True, {"8": [0], "4": [2, 1], "2": [5, 6, 3, 4], "1": [11, 12, 13, 14, 7, 8, 9, 10]}),
    ],
)
def test_both_numberings_of_instances(machine: MockedMachine, swapped: bool, ids: dict[str, list[int]]) -> None:
    """As real boards show them: by the size of an instance, the numbers at the starts from left to right."""
    program = f"""
import json
from command.mig import instance_id
print(json.dumps({{size: [instance_id(start, size, 8, {swapped}) for start in range(0, 8, size)] for size in (8, 4, 2, 1)}}))
"""
    ran = machine.run(sys.executable, "-c", program, PYTHONPATH=str(MOCK_DRIVER))
    assert json.loads(ran.stdout) == ids
