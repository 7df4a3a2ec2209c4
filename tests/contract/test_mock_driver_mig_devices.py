# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Compute instances on the mocked driver, and the MIG devices that they make."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

import pytest

from mocked_machine import MockedMachine

Start = Callable[[str], MockedMachine]
INVALID_ARGUMENT, NOT_SUPPORTED, NOT_FOUND, INSUFFICIENT_RESOURCES = 2, 3, 6, 23

# Definitions for programs: gpu_instance(profile) on a card in MIG mode; a compute instance as [profile, id, start, size].
PRELUDE = """
from ctypes import *
device = nvmlDeviceGetHandleByIndex(0)
nvmlDeviceSetMigMode(device, 1)
def gpu_instance(profile):
    return nvmlDeviceCreateGpuInstance(device, profile)
def place(instance):
    info = nvmlComputeInstanceGetInfo(instance)
    return [info.profileId, info.id, info.placement.start, info.placement.size]
def create(parent, profile, start=None, size=None):
    if start is None:
        return nvmlGpuInstanceCreateComputeInstance(parent, profile)
    where = c_nvmlComputeInstancePlacement_t(start, size)
    return nvmlGpuInstanceCreateComputeInstanceWithPlacement(parent, profile, byref(where))
def tried(*arguments):
    try:
        return place(create(*arguments))[1:3]
    except NVMLError as error:
        return error.value
def devices():
    found = []
    for index in range(nvmlDeviceGetMaxMigDeviceCount(device)):
        try:
            found.append(nvmlDeviceGetMigDeviceHandleByIndex(device, index))
        except NVMLError_NotFound:
            break
    return found
"""


def run(machine: MockedMachine, program: str) -> Any:
    return machine.nvml(PRELUDE + program)


def test_profiles_and_places_in_each_gpu_instance(machine: MockedMachine) -> None:
    program = """
answer = []
for size in (19, 14, 9):
    parent = gpu_instance(size)
    for number in range(NVML_COMPUTE_INSTANCE_PROFILE_COUNT):
        try:
            info = nvmlGpuInstanceGetComputeInstanceProfileInfo(parent, number, 0, 2)
        except NVMLError_NotSupported:
            continue
        count, places = c_uint(9), (c_nvmlComputeInstancePlacement_t * 9)()
        nvmlGpuInstanceGetComputeInstancePossiblePlacements(parent, info.id, places, byref(count))
        starts = [place.start for place in places[: count.value]]
        answer.append([info.name, info.id, info.sliceCount, info.instanceCount, info.multiprocessorCount, starts])
"""
    assert run(machine, program) == [
        ["MIG 1g.5gb", 0, 1, 1, 14, [0]],
        ["MIG 1c.2g.10gb", 0, 1, 2, 14, [0, 1]],
        ["MIG 2g.10gb", 1, 2, 1, 28, [0]],
        ["MIG 1c.3g.20gb", 0, 1, 3, 14, [0, 1, 2]],
        ["MIG 2c.3g.20gb", 1, 2, 1, 28, [0]],
        ["MIG 3g.20gb", 2, 3, 1, 42, [0]],
    ]


def test_created_where_there_is_room_and_where_it_is_said(machine: MockedMachine) -> None:
    program = """
parent = gpu_instance(9)
answer = [tried(parent, 0, 1, 1), tried(parent, 0), tried(parent, 0, 1, 1), tried(parent, 0, 3, 1), tried(parent, 1)]
answer += [tried(parent, 0), tried(parent, 0), tried(parent, 2), tried(parent, 4)]
answer.append([nvmlGpuInstanceGetComputeInstanceRemainingCapacity(parent, profile) for profile in (0, 1, 2)])
"""
    full, invalid = INSUFFICIENT_RESOURCES, INVALID_ARGUMENT
    assert run(machine, program) == [[0, 1], [1, 0], full, invalid, full, [2, 2], full, full, invalid, [0, 0, 0]]


def test_lists_and_ids(machine: MockedMachine) -> None:
    program = """
parent = gpu_instance(9)
first, second = create(parent, 0), create(parent, 0)
nvmlComputeInstanceDestroy(first)
answer = [code(nvmlComputeInstanceGetInfo, first), code(nvmlGpuInstanceGetComputeInstanceById, parent, 0)]
answer.append(place(nvmlGpuInstanceGetComputeInstanceById(parent, 1)))
count, handles = c_uint(), (c_nvmlComputeInstance_t * 8)()
nvmlGpuInstanceGetComputeInstances(parent, 0, handles, byref(count))
answer.append([place(handle) for handle in handles[: count.value]])
answer.append(place(create(parent, 0)))
"""
    assert run(machine, program) == [INVALID_ARGUMENT, NOT_FOUND, [0, 1, 1, 1], [[0, 1, 1, 1]], [0, 0, 0, 1]]


def test_mig_devices_are_found_and_described(machine: MockedMachine) -> None:
    program = """
parent = gpu_instance(9)
create(parent, 0), create(parent, 0), create(gpu_instance(14), 1)
answer = []
for mig in devices():
    had = nvmlDeviceGetAttributes(mig)
    ids = [nvmlDeviceGetGpuInstanceId(mig), nvmlDeviceGetComputeInstanceId(mig), nvmlDeviceGetIndex(mig)]
    assert nvmlDeviceIsMigDeviceHandle(mig) and not nvmlDeviceIsMigDeviceHandle(device)
    assert nvmlDeviceGetUUID(nvmlDeviceGetDeviceHandleFromMigDeviceHandle(mig)) == nvmlDeviceGetUUID(device)
    uuid = nvmlDeviceGetUUID(mig)
    assert nvmlDeviceGetGpuInstanceId(nvmlDeviceGetHandleByUUID(uuid)) == ids[0]
    slices = [had.gpuInstanceSliceCount, had.computeInstanceSliceCount]
    answer.append([nvmlDeviceGetName(mig), ids, slices, had.multiprocessorCount, had.memorySizeMB])
"""
    assert run(machine, program) == [
        ["NVIDIA A100-SXM4-40GB MIG 1c.3g.20gb", [2, 0, 0], [3, 1], 14, 19968],
        ["NVIDIA A100-SXM4-40GB MIG 1c.3g.20gb", [2, 1, 1], [3, 1], 14, 19968],
        ["NVIDIA A100-SXM4-40GB MIG 2g.10gb", [3, 0, 2], [2, 2], 28, 9856],
    ]


def test_uuids_belong_to_card_and_place(machine: MockedMachine) -> None:
    """The same after all was destroyed and made again; the same for another size that begins at the same slice."""
    program = """
def remake(index, profile):
    global device
    device = nvmlDeviceGetHandleByIndex(index)
    nvmlDeviceSetMigMode(device, 1)
    parent = gpu_instance(9)
    made = create(parent, profile)
    found = [nvmlDeviceGetUUID(mig) for mig in devices()]
    nvmlComputeInstanceDestroy(made)
    nvmlGpuInstanceDestroy(parent)
    return found
answer = [remake(0, 2), remake(0, 2), remake(0, 0), remake(1, 2)]
"""
    whole, again, part, other = run(machine, program)
    assert whole == again == part != other
    shape = r"MIG-[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
    assert all(re.fullmatch(shape, uuid) for uuid in [*whole, *other])


@pytest.mark.parametrize("name", ["a100-80gb-x2", "h100-pcie", "rtx-pro-6000"])
def test_uuids_differ_on_a_full_machine(start_machine: Start, name: str) -> None:
    program = """
answer = []
for index in (0, 1):
    device = nvmlDeviceGetHandleByIndex(index)
    nvmlDeviceSetMigMode(device, 1)
    smallest = nvmlDeviceGetGpuInstanceProfileInfo(device, 0).id
    while nvmlDeviceGetGpuInstanceRemainingCapacity(device, smallest):
        create(gpu_instance(smallest), 0)
    answer += [nvmlDeviceGetUUID(mig) for mig in devices()]
"""
    uuids = run(start_machine(name), program)
    assert len(uuids) == len(set(uuids)) == (8 if name == "rtx-pro-6000" else 14)


def test_mig_device_that_is_gone(machine: MockedMachine) -> None:
    program = """
made = create(gpu_instance(9), 2)
(gone,) = devices()
uuid = nvmlDeviceGetUUID(gone)
nvmlComputeInstanceDestroy(made)
answer = [code(nvmlDeviceGetUUID, gone), code(nvmlDeviceGetHandleByUUID, uuid), code(nvmlDeviceGetMigDeviceHandleByIndex, device, 0)]
answer.append(code(nvmlDeviceGetMigDeviceHandleByIndex, device, 7))
"""
    assert run(machine, program) == [NOT_FOUND, NOT_FOUND, NOT_FOUND, INVALID_ARGUMENT]


def test_processes_and_memory_of_mig_devices(machine: MockedMachine) -> None:
    """Compute instances of one GPU instance share its memory, but not the list of their processes."""
    run(machine, "parent = gpu_instance(9)\ncreate(parent, 0), create(parent, 0), create(gpu_instance(14), 1)")
    machine.mock_driver("process", "add", 0, os.getpid(), "--gi", 2, "--ci", 1, "--memory", 100)
    program = """
answer = []
for mig in devices():
    pids = [[process.pid, process.gpuInstanceId, process.computeInstanceId] for process in nvmlDeviceGetComputeRunningProcesses(mig)]
    memory = nvmlDeviceGetMemoryInfo(mig)
    answer.append([pids, memory.total >> 20, memory.used >> 20, nvmlDeviceGetBAR1MemoryInfo(mig).bar1Total >> 20])
answer.append([process.pid for process in nvmlDeviceGetComputeRunningProcesses(device)])
"""
    assert run(machine, program) == [
        [[], 19968, 112, 32767],
        [[[os.getpid(), 2, 1]], 19968, 112, 32767],
        [[], 9856, 12, 16383],
        [os.getpid()],
    ]


def test_process_is_put_into_a_mig_device_by_ids_or_uuid(machine: MockedMachine) -> None:
    uuid = run(machine, "create(gpu_instance(9), 2)\nanswer = nvmlDeviceGetUUID(devices()[0])")
    machine.mock_driver("process", "add", uuid, os.getpid(), "--memory", 3)
    assert machine.mock_driver("process", "list") == f"GPU 0 2/0  pid {os.getpid()}  compute  3 MiB\n"
    assert "has no compute instance 1 in GPU instance 2; there are: 2/0" in machine.refusal(
        "process", "add", 0, os.getpid(), "--gi", 2, "--ci", 1
    )
    assert "both a GPU instance and a compute instance" in machine.refusal("process", "add", 0, 1, "--gi", 2)


def test_compute_mode_of_a_mig_device(machine: MockedMachine) -> None:
    """The card itself refuses one in MIG mode; a MIG device keeps its own, which its processes meet."""
    program = """
parent = gpu_instance(9)
create(parent, 0), create(parent, 0)
first, second = devices()
answer = [code(nvmlDeviceSetComputeMode, device, 3), code(nvmlDeviceSetComputeMode, first, 2)]
answer += [nvmlDeviceGetComputeMode(mig) for mig in (first, second, device)]
"""
    assert run(machine, program) == [NOT_SUPPORTED, 0, 2, 0, 0]
    machine.mock_driver("process", "add", 0, os.getpid(), "--gi", 2, "--ci", 1)
    assert "prohibited" in machine.refusal("process", "add", 0, 1, "--gi", 2, "--ci", 0)


def test_show_draws_the_instances(machine: MockedMachine) -> None:
    run(machine, "create(gpu_instance(9), 2), gpu_instance(14)")
    machine.mock_driver("process", "add", 0, os.getpid(), "--gi", 2, "--ci", 0)
    shown = machine.mock_driver("show").partition("\n\n")[2].splitlines()
    assert shown[0] == "GPU 0, GPU instances by slice:  3  3  .  .  2  2  2  2"
    rows = [line.split() for line in shown[1:]]
    assert rows[0] == ["GI", "PROFILE", "AT", "CI", "PROFILE", "UUID", "PROCESSES"]
    assert rows[1][:5] == ["2", "3g.20gb", "4:4", "0", "3g.20gb"]
    assert rows[1][6] == str(os.getpid())
    assert rows[2] == ["3", "2g.10gb", "0:2", "-", "-", "-", "-"]
