# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""GPU instances on the mocked driver: where they go, how many fit, what they are called, when they may go."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from mocked_machine import MockedMachine

Start = Callable[[str], MockedMachine]
INVALID_ARGUMENT, NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND, IN_USE, INSUFFICIENT_RESOURCES = 2, 3, 4, 6, 19, 23

# Definitions for programs: card(n) switches MIG on; a card's instances as [profile, id, start, size].
PRELUDE = """
from ctypes import *
def card(index=0):
    device = nvmlDeviceGetHandleByIndex(index)
    nvmlDeviceSetMigMode(device, 1)
    return device
def place(instance):
    info = nvmlGpuInstanceGetInfo(instance)
    return [info.profileId, info.id, info.placement.start, info.placement.size]
def create(device, profile, start=None, size=None):
    if start is None:
        return nvmlDeviceCreateGpuInstance(device, profile)
    where = c_nvmlGpuInstancePlacement_t(start, size)
    return nvmlDeviceCreateGpuInstanceWithPlacement(device, profile, byref(where))
def tried(device, profile, start=None, size=None):
    try:
        return place(create(device, profile, start, size))[2]
    except NVMLError as error:
        return -error.value
def instances(device, profile):
    count, handles = c_uint(), (c_nvmlGpuInstance_t * 8)()
    nvmlDeviceGetGpuInstances(device, profile, handles, byref(count))
    return list(handles[: count.value])
"""


def run(machine: MockedMachine, program: str, **variables: str) -> Any:
    return machine.nvml(PRELUDE + program, True, **variables)


@pytest.mark.parametrize(
    ("machine_name", "profiles", "starts", "ids"),
    [
        ("a100-40gb", [19, 14, 5], [6, 4, 0], [13, 5, 1]),
        ("a100-40gb", [19, 19, 14, 9], [6, 4, 0, -INSUFFICIENT_RESOURCES], [13, 11, 3]),
        ("a100-40gb", [9, 19, 14, 19], [4, 0, 2, 1], [2, 7, 4, 8]),
        ("a100-40gb", [14, 19, 19, 19, 19, 19], [4, 6, 0, 1, 2, 3], [5, 13, 7, 8, 9, 10]),
        ("a100-40gb", [19] * 7, [6, 4, 5, 0, 1, 2, 3], [13, 11, 12, 7, 8, 9, 10]),
        ("h100-sxm", [9, 14], [4, 0], [2, 3]),
        ("h100-pcie", [19] * 7, [6, 4, 5, 0, 1, 2, 3], [9, 7, 8, 11, 12, 13, 14]),
        ("h100-nvl", [9, 15, 19], [4, 0, 2], [1, 5, 13]),
        ("rtx-pro-6000", [14, 14, 14, 14], [0, 3, 6, 9], [3, 4, 5, 6]),
        ("rtx-pro-6000", [5, 14, 14], [0, 6, 9], [1, 5, 6]),
        ("a30", [14, 14], [0, 1], [3, 4]),
    ],
)
def test_driver_chooses_the_places_that_real_cards_show(
    start_machine: Start, machine_name: str, profiles: list[int], starts: list[int], ids: list[int]
) -> None:
    """Orders of creation that NVIDIA's MIG User Guide and published listings of real cards document."""
    program = f"""
device = card()
answer = [[tried(device, profile) for profile in {profiles}], []]
for start in answer[0]:
    answer[1] += [place(one)[1] for profile in {sorted(set(profiles))} for one in instances(device, profile) if place(one)[2] == start]
"""
    assert run(start_machine(machine_name), program) == [starts, ids]


def test_numbering_belongs_to_the_board(start_machine: Start) -> None:
    """Two cards of one model, with other ids at the same places."""
    program = (
        "answer = [[place(create(device, profile))[1:] for profile in (9, 14, 19)] for device in (card(0), card(1))]"
    )
    normal, swapped = run(start_machine("a100-80gb-x2"), program)
    assert normal == [[2, 4, 4], [3, 0, 2], [9, 2, 1]]
    assert swapped == [[1, 4, 4], [5, 0, 2], [13, 2, 1]]


def test_place_that_is_asked_for(machine: MockedMachine) -> None:
    program = """
device = card()
answer = [tried(device, *wish) for wish in [(19, 2, 1), (9, 4, 4), (19, 2, 1), (14, 2, 2), (9, 3, 4), (19, 7, 1), (14, 0, 1), (14, 0, 2)]]
"""
    taken, invalid = -INSUFFICIENT_RESOURCES, -INVALID_ARGUMENT
    assert run(machine, program) == [2, 4, taken, taken, invalid, invalid, invalid, 0]


def test_capacity_falls_and_rises(machine: MockedMachine) -> None:
    program = """
device, profiles = card(), (19, 20, 15, 14, 9, 5, 0)
def capacity():
    return [nvmlDeviceGetGpuInstanceRemainingCapacity(device, profile) for profile in profiles]
answer = [capacity()]
made = create(device, 9)
answer += [place(made)[2], capacity()]
create(device, 20)
answer.append(capacity())
nvmlGpuInstanceDestroy(made)
answer.append(capacity())
"""
    assert run(machine, program) == [
        [7, 1, 4, 3, 2, 1, 1],
        4,
        [4, 1, 2, 2, 1, 1, 0],
        [3, 0, 1, 1, 0, 0, 0],
        [6, 0, 3, 2, 1, 0, 0],
    ]


def test_more_than_a_profile_allows(machine: MockedMachine) -> None:
    """There is room, but only one instance may have the media extensions."""
    program = "device = card()\nanswer = [tried(device, 20), tried(device, 20), tried(device, 19)]"
    assert run(machine, program) == [6, -INSUFFICIENT_RESOURCES, 4]


def test_media_engines_of_rtx_pro(start_machine: Start) -> None:
    """+me.all takes all of them: beside it only -me fits, and +me goes but once."""
    program = """
first, second = card(0), card(1)
answer = [[tried(first, profile) for profile in (65, 14, 21, 67, 66, 65)], [tried(second, profile) for profile in (21, 65, 21, 64, 14, 5)]]
"""
    none = -INSUFFICIENT_RESOURCES
    assert run(start_machine("rtx-pro-6000"), program) == [[0, none, none, 3, 6, none], [0, none, none, none, 3, 6]]


def test_one_after_another_is_not_atomic(machine: MockedMachine) -> None:
    program = """
device = card()
answer = [code(nvmlDeviceCreateGpuInstance, device, profile) for profile in (9, 9, 19)]
answer.append([len(instances(device, profile)) for profile in (9, 19)])
"""
    assert run(machine, program) == [0, 0, INSUFFICIENT_RESOURCES, [2, 0]]


def test_without_mig_mode_there_are_profiles_but_no_capacity(machine: MockedMachine) -> None:
    program = """
device = nvmlDeviceGetHandleByIndex(0)
functions = (nvmlDeviceGetGpuInstanceRemainingCapacity, nvmlDeviceCreateGpuInstance, nvmlDeviceGetGpuInstanceById)
answer = [code(nvmlDeviceGetGpuInstanceProfileInfoByIdV, device, 19), *(code(function, device, 19) for function in functions)]
count = c_uint()
answer += [code(nvmlDeviceGetGpuInstancePossiblePlacements, device, 19, None, byref(count)), count.value]
answer.append(code(nvmlDeviceGetMigDeviceHandleByIndex, device, 0))
"""
    assert run(machine, program) == [0, NOT_SUPPORTED, NOT_SUPPORTED, NOT_SUPPORTED, 0, 7, NOT_SUPPORTED]


def test_unknown_profile(machine: MockedMachine) -> None:
    program = """
device, count = card(), c_uint()
answer = [code(nvmlDeviceCreateGpuInstance, device, 99), code(instances, device, 99)]
answer += [code(nvmlDeviceGetGpuInstanceRemainingCapacity, device, 99), code(nvmlDeviceGetGpuInstanceProfileInfoByIdV, device, 99)]
answer.append(code(nvmlDeviceGetGpuInstancePossiblePlacements, device, 99, None, byref(count)))
"""
    assert run(machine, program) == [INVALID_ARGUMENT, INVALID_ARGUMENT, NOT_SUPPORTED, NOT_SUPPORTED, INVALID_ARGUMENT]


def test_instance_that_is_gone(machine: MockedMachine) -> None:
    """Its handle is no longer valid, also after another one came to its place; its id is not found."""
    program = """
device = card()
gone = create(device, 19)
number = place(gone)[1]
nvmlGpuInstanceDestroy(gone)
answer = [code(nvmlGpuInstanceGetInfo, gone), code(nvmlGpuInstanceDestroy, gone), code(nvmlDeviceGetGpuInstanceById, device, number)]
again = create(device, 19)
answer += [place(again)[1] == number, code(nvmlGpuInstanceGetInfo, gone), code(nvmlDeviceGetGpuInstanceById, device, number)]
answer.append(place(nvmlDeviceGetGpuInstanceById(device, number)) == place(again))
"""
    assert run(machine, program) == [INVALID_ARGUMENT, INVALID_ARGUMENT, NOT_FOUND, True, INVALID_ARGUMENT, 0, True]


def test_in_use_by_compute_instances_or_processes(machine: MockedMachine) -> None:
    made = """
device = card()
made = create(device, 9)
nvmlGpuInstanceCreateComputeInstance(made, 2)
answer = [code(nvmlGpuInstanceDestroy, made), code(nvmlDeviceSetMigMode, device, 0)]
"""
    assert run(machine, made) == [IN_USE, IN_USE]
    machine.mock_driver("process", "add", 0, os.getpid(), "--gi", 2, "--ci", 0)
    found = """
device = nvmlDeviceGetHandleByIndex(0)
made = nvmlDeviceGetGpuInstanceById(device, 2)
compute = nvmlGpuInstanceGetComputeInstanceById(made, 0)
answer = [code(nvmlComputeInstanceDestroy, compute), code(nvmlGpuInstanceDestroy, made)]
"""
    assert run(machine, found) == [IN_USE, IN_USE]
    machine.mock_driver("process", "remove", 0, os.getpid())
    assert run(machine, found) == [0, 0]
    assert run(machine, "answer = code(nvmlDeviceSetMigMode, card(), 0)") == 0


def test_setters_and_lists_need_privileges(machine: MockedMachine) -> None:
    """As nvml.h says of each; a handle's info and MIG devices are for all."""
    assert run(machine, "made = create(card(), 9)\nnvmlGpuInstanceCreateComputeInstance(made, 2)") is None
    program = """
device, count = nvmlDeviceGetHandleByIndex(0), c_uint()
answer = [code(nvmlDeviceCreateGpuInstance, device, 19), code(create, device, 19, 0, 1), code(instances, device, 9)]
answer += [code(nvmlDeviceGetGpuInstanceById, device, 2), code(nvmlDeviceGetGpuInstanceRemainingCapacity, device, 9)]
answer.append(code(nvmlDeviceGetGpuInstancePossiblePlacements, device, 9, None, byref(count)))
answer += [code(nvmlDeviceGetMemoryInfo, device), code(nvmlDeviceGetComputeRunningProcesses, device)]
answer += [code(nvmlDeviceGetGpuInstanceProfileInfo, device, 0), code(nvmlDeviceGetMigMode, device)]
mig = nvmlDeviceGetMigDeviceHandleByIndex(device, 0)
answer += [code(nvmlDeviceGetUUID, mig), code(nvmlDeviceGetMemoryInfo, mig), code(nvmlDeviceGetComputeRunningProcesses, mig)]
"""
    assert run(machine, program, MOCK_DRIVER_UID="1234") == [NO_PERMISSION] * 8 + [0] * 5
    assert machine.calls()["functions"]["nvmlDeviceCreateGpuInstance"]["setter"]


def test_profile_with_graphics_says_so(start_machine: Start) -> None:
    program = """
class Info(Structure):
    _fields_ = [("version", c_uint), ("numbers", c_uint * 9), ("memory", c_ulonglong), ("name", c_char * 96), ("capabilities", c_uint)]
answer = []
for profile in (47, 14):
    info = Info(version=sizeof(Info) | 3 << 24)
    CDLL("libnvidia-ml.so.1").nvmlDeviceGetGpuInstanceProfileInfoByIdV(card(), profile, byref(info))
    answer.append([info.name.decode(), info.capabilities])
"""
    assert run(start_machine("rtx-pro-6000"), program) == [["MIG 1g.24gb+gfx", 2], ["MIG 1g.24gb", 0]]
