# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Many processes that make and destroy MIG instances on one mocked machine."""

from __future__ import annotations

import json

from _resident import MOCK_DRIVER
from mocked_machine import MockedMachine

WORKERS, ROUNDS = 8, 20000
INVALID_ARGUMENT, NOT_FOUND = 2, 6
# Makes and destroys at random; what it has made is its own, so nothing but a full card may refuse it anything.
WORKER = """
import random
chance = random.Random({seed})
devices = [nvmlDeviceGetHandleByIndex(index) for index in range(2)]
whole = {{19: 0, 20: 0, 15: 0, 14: 1, 9: 2, 5: 3, 0: 4}}
mine = []
input()
for _ in range({rounds}):
    if mine and chance.random() < 0.5:
        made, compute = mine.pop(chance.randrange(len(mine)))
        nvmlComputeInstanceDestroy(compute)
        nvmlGpuInstanceDestroy(made)
        continue
    profile = chance.choice(list(whole))
    try:
        made = nvmlDeviceCreateGpuInstance(chance.choice(devices), profile)
    except NVMLError_InsufficientResources:
        continue
    mine.append((made, nvmlGpuInstanceCreateComputeInstance(made, whole[profile])))
for made, compute in mine:
    nvmlComputeInstanceDestroy(compute)
    nvmlGpuInstanceDestroy(made)
"""
# Looks at the whole machine at once, and at single instances, which may go between two calls, until it is told to stop.
WATCHER = """
import json, select, sys
sys.path.insert(0, {home!r})
from library.state import open_state
device, layouts, codes = nvmlDeviceGetHandleByIndex(0), set(), set()
print("ready", flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    with open_state() as state:
        for gpu in state.gpus[:2]:
            places = [(one.start, one.size) for one in gpu.gpu_instances if one.used]
            taken = [slice for start, size in places for slice in range(start, start + size)]
            assert len(taken) == len(set(taken)), places
            assert all(slice < 8 for slice in taken), places
            layouts.add(tuple(places))
    for number in range(15):
        try:
            instance = nvmlDeviceGetGpuInstanceById(device, number)
            nvmlGpuInstanceGetInfo(instance)
        except NVMLError as error:
            codes.add(error.value)
print(json.dumps([len(layouts), sorted(codes)]))
"""


def test_instances_of_eight_processes_never_overlap(machine: MockedMachine) -> None:
    machine.nvml("for index in range(2): nvmlDeviceSetMigMode(nvmlDeviceGetHandleByIndex(index), 1)")
    watcher = machine.start(WATCHER.format(home=str(MOCK_DRIVER)))
    workers = [machine.start(WORKER.format(seed=seed, rounds=ROUNDS)) for seed in range(WORKERS)]
    assert watcher.stdout
    assert watcher.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin
        worker.stdin.write("\n")
        worker.stdin.flush()
    for worker in workers:
        worker.wait()
    layouts, codes = json.loads(watcher.communicate("\n")[0])
    assert [process.returncode for process in [*workers, watcher]] == [0] * (WORKERS + 1)
    assert layouts > 10
    assert set(codes) <= {INVALID_ARGUMENT, NOT_FOUND}
    free = "answer = [nvmlDeviceGetGpuInstanceRemainingCapacity(nvmlDeviceGetHandleByIndex(index), 19) for index in range(2)]"
    assert machine.nvml(free) == [7, 7]
