# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Many processes on one mocked machine."""

from __future__ import annotations

import random
import time

from mocked_machine import MockedMachine

WORKERS, ROUNDS = 8, 2000
# Sets and reads on random cards until told to stop; every answer has to make sense.
WORKER = """
import random, sys
chance = random.Random({seed})
devices = [nvmlDeviceGetHandleByIndex(index) for index in range(nvmlDeviceGetCount())]
print("ready", flush=True)
for _ in range({rounds}):
    device = chance.choice(devices)
    nvmlDeviceSetComputeMode(device, chance.choice((0, 2, 3)))
    nvmlDeviceSetPersistenceMode(device, chance.choice((0, 1)))
    assert nvmlDeviceGetComputeMode(device) in (0, 2, 3)
    assert nvmlDeviceGetPersistenceMode(device) in (0, 1)
    assert nvmlDeviceGetUUID(device).startswith("GPU-283ac")
"""


def test_eight_processes_at_once_do_not_corrupt_the_state(machine: MockedMachine) -> None:
    """Nothing is lost: every call of every process was counted."""
    workers = [machine.start(WORKER.format(seed=seed, rounds=ROUNDS)) for seed in range(WORKERS)]
    for worker in workers:
        worker.communicate()
    assert [worker.returncode for worker in workers] == [0] * WORKERS
    functions = machine.calls()["functions"]
    for name in ("SetComputeMode", "GetComputeMode", "SetPersistenceMode", "GetPersistenceMode", "GetUUID"):
        assert functions[f"nvmlDevice{name}"]["calls"] == WORKERS * ROUNDS
        assert functions[f"nvmlDevice{name}"]["failed"] == 0


def test_killed_processes_block_nobody(machine: MockedMachine) -> None:
    """Killed at random moments, some while they hold the lock."""
    chance = random.Random(1)
    for seed in range(25):
        with machine.start(WORKER.format(seed=seed, rounds=10**9)) as worker:
            assert worker.stdout
            worker.stdout.readline()
            # Not waiting for anything: this chooses the moment of death.
            time.sleep(chance.random() / 50)
            worker.kill()
    before = machine.calls()["functions"]["nvmlDeviceGetUUID"]["calls"]
    assert before > 0
    with machine.start(WORKER.format(seed=0, rounds=100)) as survivor:
        survivor.communicate(timeout=30)
    assert survivor.returncode == 0
    assert machine.calls()["functions"]["nvmlDeviceGetUUID"]["calls"] == before + 100


def test_change_is_seen_by_a_process_that_is_there_already(machine: MockedMachine) -> None:
    program = "device = nvmlDeviceGetHandleByIndex(0)\nprint(nvmlDeviceGetComputeMode(device), flush=True)\n"
    with machine.start(program + "input()\nprint(nvmlDeviceGetComputeMode(device), flush=True)") as client:
        assert client.stdout
        assert client.stdout.readline() == "0\n"
        machine.nvml("nvmlDeviceSetComputeMode(nvmlDeviceGetHandleByIndex(0), 3)")
        assert client.communicate("\n")[0] == "3\n"


def test_fork_after_init(machine: MockedMachine) -> None:
    """Parent and child go on at the same time, and the child's lock is its own."""
    program = """
import os
device = nvmlDeviceGetHandleByIndex(0)
child = os.fork()
for _ in range(2000):
    nvmlDeviceSetComputeMode(device, 3 if child else 2)
if child == 0:
    os._exit(0)
answer = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""
    assert machine.nvml(program) == 0
    assert machine.calls()["functions"]["nvmlDeviceSetComputeMode"]["calls"] == 4000


def test_forked_child_does_not_hold_the_lock_of_its_killed_parent(machine: MockedMachine) -> None:
    program = """
import os
device = nvmlDeviceGetHandleByIndex(0)
if os.fork() == 0:
    print(os.getpid(), flush=True)
    input()
    os._exit(0)
while True:
    nvmlDeviceGetComputeMode(device)
"""
    for _ in range(10):
        with machine.start(program) as parent:
            assert parent.stdout
            child = int(parent.stdout.readline())
            parent.kill()
            parent.wait()
            # The child lives on; with the parent's lock in its hands this would never answer.
            assert machine.nvml("answer = nvmlDeviceGetCount()") == 2
            assert parent.stdin
            parent.stdin.write("\n")
            parent.stdin.flush()
        assert child


def test_machine_that_goes_down_and_comes_up_again(machine: MockedMachine) -> None:
    program = """
print("ready", flush=True)
for _ in range(2):
    input()
    try:
        print(nvmlDeviceGetCount(), flush=True)
    except NVMLError as error:
        print("error", error.value, flush=True)
nvmlShutdown()
nvmlInit()
print(nvmlDeviceGetCount(), flush=True)
"""
    with machine.start(program) as client:
        assert client.stdout and client.stdin
        client.stdout.readline()
        machine.mock_driver("down")
        client.stdin.write("\n")
        client.stdin.flush()
        assert client.stdout.readline() == "error 9\n"
        machine.mock_driver("up", "mixed")
        assert client.communicate("\n")[0] == "error 9\n3\n"
