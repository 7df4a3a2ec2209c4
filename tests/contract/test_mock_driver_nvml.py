# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""NVML on the mocked driver, through nvidia-ml-py."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from mocked_machine import BUILD, MockedMachine

Start = Callable[[str], MockedMachine]
UUIDS = ["GPU-283ac4e4-651c-54fd-a922-7809abbd0253", "GPU-283ac3e4-651c-534a-a922-7909abbd0be0"]

INVALID_ARGUMENT, NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND, DRIVER_NOT_LOADED, MISMATCH = 2, 3, 4, 6, 9, 18


def test_library_says_that_it_is_the_mock(built: Path) -> None:
    version = ctypes.CDLL(str(BUILD / "libnvidia-ml.so.1")).mockDriverVersion
    version.restype = ctypes.c_char_p
    assert version() == b"gpuops.sharing mock driver"


def test_library_has_every_function_of_the_header(built: Path) -> None:
    library = ctypes.CDLL(str(BUILD / "libnvidia-ml.so.1"))
    functions = json.loads((BUILD / "nvml.json").read_text())["functions"]
    assert len(functions) > 400
    assert [name for name in functions if not hasattr(library, name)] == []


def test_function_that_nobody_wrote_is_not_supported(machine: MockedMachine) -> None:
    program = "answer = code(nvmlDeviceGetFanSpeed, nvmlDeviceGetHandleByIndex(0))"
    assert machine.nvml(program) == NOT_SUPPORTED


@pytest.mark.parametrize(
    ("name", "code"), [("no-driver", DRIVER_NOT_LOADED), ("mismatch", MISMATCH), ("no-gpu", 0), ("t4", 0)]
)
def test_init_answers_as_the_machine_says(start_machine: Start, name: str, code: int) -> None:
    assert start_machine(name).nvml("answer = code(nvmlInit)", init=False) == code


def test_no_state_file_is_no_driver_and_none_is_made(built: Path, tmp_path: Path) -> None:
    nowhere = MockedMachine(tmp_path / "nothing")
    assert nowhere.nvml("answer = code(nvmlInit)", init=False) == DRIVER_NOT_LOADED
    assert list(tmp_path.iterdir()) == []


def test_state_of_another_build_is_a_mismatch(built: Path, tmp_path: Path) -> None:
    (tmp_path / "state").write_bytes(b"MOCKGPU\0" + bytes(4096))
    foreign = MockedMachine(tmp_path / "state")
    assert foreign.nvml("answer = code(nvmlInit)", init=False) == MISMATCH
    assert "not the state of a mocked machine of this build" in foreign.refusal("show")


def test_init_is_counted(machine: MockedMachine) -> None:
    program = """
answer = [code(nvmlDeviceGetCount)]
for step in (nvmlInit, nvmlInit, nvmlShutdown):
    step()
answer.append(code(nvmlDeviceGetCount))
nvmlShutdown()
answer += [code(nvmlDeviceGetCount), code(nvmlShutdown)]
"""
    assert machine.nvml(program, init=False) == [1, 0, 1, 1]


def test_versions(machine: MockedMachine) -> None:
    program = "answer = [nvmlSystemGetDriverVersion(), nvmlSystemGetNVMLVersion(), nvmlSystemGetCudaDriverVersion()]"
    assert machine.nvml(program) == ["535.309.01", "12.535.309.01", 12020]


def test_machine_without_gpu(start_machine: Start) -> None:
    program = "answer = [nvmlDeviceGetCount(), code(nvmlDeviceGetHandleByIndex, 0)]"
    assert start_machine("no-gpu").nvml(program) == [0, INVALID_ARGUMENT]


@pytest.mark.parametrize(
    ("function", "key"),
    [
        ("ByIndex", 1),
        ("ByUUID", UUIDS[1]),
        ("ByPciBusId", "00000000:0F:00.0"),
        ("ByPciBusId", "0000:0f:00.0"),
        ("ByPciBusId", "0000:0F:00"),
        ("ByPciBusId", "0f:00.0"),
        ("BySerial", "1562520010001"),
    ],
)
def test_card_is_found(machine: MockedMachine, function: str, key: str | int) -> None:
    program = f"answer = nvmlDeviceGetUUID(nvmlDeviceGetHandle{function}({key!r}))"
    assert machine.nvml(program) == UUIDS[1]


@pytest.mark.parametrize(
    ("function", "key", "code"),
    [
        ("ByIndex", 2, INVALID_ARGUMENT),
        ("ByUUID", "GPU-nope", NOT_FOUND),
        ("ByPciBusId", "00000000:10:00.0", NOT_FOUND),
        ("ByPciBusId", "0001:0F:00.0", NOT_FOUND),
        ("ByPciBusId", "0F:00.1", NOT_FOUND),
        ("ByPciBusId", "nope", INVALID_ARGUMENT),
        ("BySerial", "", NOT_FOUND),
    ],
)
def test_card_is_not_found(machine: MockedMachine, function: str, key: str | int, code: int) -> None:
    assert machine.nvml(f"answer = code(nvmlDeviceGetHandle{function}, {key!r})") == code


def test_what_is_no_handle_is_refused(machine: MockedMachine) -> None:
    assert machine.nvml("answer = code(nvmlDeviceGetName, c_nvmlDevice_t())") == INVALID_ARGUMENT


def test_identity_of_each_model(start_machine: Start) -> None:
    program = """
answer = []
for index in range(nvmlDeviceGetCount()):
    device = nvmlDeviceGetHandleByIndex(index)
    answer.append([nvmlDeviceGetName(device), nvmlDeviceGetCudaComputeCapability(device), nvmlDeviceGetArchitecture(device),
                   nvmlDeviceGetBrand(device), nvmlDeviceGetMinorNumber(device), nvmlDeviceGetIndex(device),
                   nvmlDeviceGetSerial(device)])
"""
    assert start_machine("mixed").nvml(program) == [
        ["NVIDIA A100-SXM4-40GB", [8, 0], 7, 14, 0, 0, "1562520010000"],
        ["Tesla T4", [7, 5], 6, 2, 1, 1, "1562520010101"],
        ["NVIDIA A30", [8, 0], 7, 14, 2, 2, "1562520010102"],
    ]


def test_pci_info_in_every_version(machine: MockedMachine) -> None:
    """The older structures end early: what lies behind them must not be touched."""
    program = """
device = nvmlDeviceGetHandleByIndex(1)
whole = nvmlDeviceGetPciInfo_v3(device)
answer = [whole.busId, whole.busIdLegacy, hex(whole.pciDeviceId), hex(whole.pciSubSystemId)]
for name, size in (("nvmlDeviceGetPciInfo", 32), ("nvmlDeviceGetPciInfo_v2", 36)):
    buffer = (c_ubyte * 64)(*[0xAA] * 64)
    assert getattr(CDLL("libnvidia-ml.so.1"), name)(device, buffer) == 0
    answer += [bytes(buffer[:12]).decode(), set(buffer[size:]) == {0xAA}]
extended = nvmlPciInfoExt_v1_t(version=nvmlPciInfoExt_v1)
nvmlDeviceGetPciInfoExt(device, byref(extended))
answer += [extended.busId, extended.baseClass]
"""
    assert machine.nvml("from ctypes import *\n" + program) == [
        *["00000000:0F:00.0", "0000:0F:00.0", "0x20b010de", "0x134f10de"],
        *["0000:0F:00.0", True] * 2,
        *["00000000:0F:00.0", 3],
    ]


def test_memory_counts_the_reserve_as_used_in_version_1_only(machine: MockedMachine) -> None:
    program = """
device = nvmlDeviceGetHandleByIndex(0)
one, two = nvmlDeviceGetMemoryInfo(device), nvmlDeviceGetMemoryInfo(device, nvmlMemory_v2)
answer = [value // 2**20 for value in (one.total, one.used, one.free, two.total, two.reserved, two.used, two.free)]
"""
    assert machine.nvml(program) == [40960, 624, 40336, 40960, 624, 0, 40336]


def test_unknown_version_of_a_structure_is_refused(machine: MockedMachine) -> None:
    assert machine.nvml("answer = code(nvmlDeviceGetMemoryInfo, nvmlDeviceGetHandleByIndex(0), 0x9000028)") == 25


@pytest.mark.parametrize("mode", [0, 2, 3])
def test_compute_mode_is_set_on_one_card(machine: MockedMachine, mode: int) -> None:
    machine.nvml(f"nvmlDeviceSetComputeMode(nvmlDeviceGetHandleByIndex(1), {mode})")
    program = "answer = [nvmlDeviceGetComputeMode(nvmlDeviceGetHandleByIndex(i)) for i in range(2)]"
    assert machine.nvml(program) == [0, mode]


@pytest.mark.parametrize(("mode", "code"), [(1, NOT_SUPPORTED), (4, INVALID_ARGUMENT), (-1, INVALID_ARGUMENT)])
def test_compute_mode_that_is_none_is_refused(machine: MockedMachine, mode: int, code: int) -> None:
    program = f"""
device = nvmlDeviceGetHandleByIndex(0)
answer = [code(nvmlDeviceSetComputeMode, device, {mode}), nvmlDeviceGetComputeMode(device)]
"""
    assert machine.nvml(program) == [code, 0]


SETTERS = """
device = nvmlDeviceGetHandleByIndex(0)
answer = [code(nvmlDeviceSetComputeMode, device, 3), code(nvmlDeviceSetPersistenceMode, device, 1),
          code(nvmlDeviceSetMigMode, device, 1), code(nvmlDeviceSetAccountingMode, device, 1)]
"""


def test_others_than_root_may_read_but_not_set(machine: MockedMachine) -> None:
    assert machine.nvml(SETTERS, MOCK_DRIVER_UID="1000") == [NO_PERMISSION] * 4
    program = "device = nvmlDeviceGetHandleByIndex(0)\n"
    program += "answer = [nvmlDeviceGetComputeMode(device), nvmlDeviceGetPersistenceMode(device)]"
    assert machine.nvml(program, MOCK_DRIVER_UID="1000") == [0, 0]
    assert machine.calls()["changes"] == 0


def test_root_may_set(machine: MockedMachine) -> None:
    assert machine.nvml(SETTERS, MOCK_DRIVER_UID="0") == [0] * 4


def test_who_started_the_machine_may_set(machine: MockedMachine) -> None:
    assert machine.nvml(SETTERS) == [0] * 4


def test_error_texts(machine: MockedMachine) -> None:
    program = "answer = [nvmlErrorString(code) for code in (0, 4, 15, 19, 999)]"
    texts = ["Success", "Insufficient Permissions", "GPU is lost", "In use by another client", "Unknown Error"]
    assert machine.nvml(program) == texts
