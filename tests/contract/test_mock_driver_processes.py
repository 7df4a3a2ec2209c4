# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Processes on the cards of the mocked driver."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from mocked_machine import MockedMachine

WAIT = [sys.executable, "-c", "import sys; sys.stdin.read()"]

LISTS = """
device = nvmlDeviceGetHandleByIndex(0)
lists = (nvmlDeviceGetComputeRunningProcesses, nvmlDeviceGetGraphicsRunningProcesses, nvmlDeviceGetMPSComputeRunningProcesses)
answer = [sorted([process.pid, process.usedGpuMemory // 2**20] for process in found(device)) for found in lists]
"""


@pytest.fixture
def jobs() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Three processes that wait."""
    started = [subprocess.Popen(WAIT, stdin=subprocess.PIPE) for _ in range(3)]
    yield started
    for job in started:
        job.kill()
        job.communicate()


Jobs = list[subprocess.Popen[bytes]]


def test_each_kind_is_in_its_list(machine: MockedMachine, jobs: Jobs) -> None:
    """An MPS client is in the compute list as well: so nvidia-smi shows M+C."""
    compute, graphics, client = (job.pid for job in jobs)
    machine.mock_driver("process", "add", 0, compute, "--memory", 500)
    machine.mock_driver("process", "add", 0, graphics, "--kind", "graphics", "--memory", 30)
    machine.mock_driver("process", "add", 0, client, "--kind", "mps-client", "--memory", 7)
    lists = [sorted([[compute, 500], [client, 7]]), [[graphics, 30]], [[client, 7]]]
    assert machine.nvml(LISTS) == lists
    used = "answer = nvmlDeviceGetMemoryInfo(nvmlDeviceGetHandleByIndex(0), nvmlMemory_v2).used // 2**20"
    assert machine.nvml(used) == 537
    assert machine.nvml(used.replace("(0)", "(1)")) == 0


@pytest.mark.parametrize("version", ["", "_v2", "_v3"])
def test_list_that_is_too_short_tells_how_long_it_must_be(machine: MockedMachine, jobs: Jobs, version: str) -> None:
    for job in jobs:
        machine.mock_driver("process", "add", 0, job.pid)
    program = f"""
from ctypes import *
function = CDLL("libnvidia-ml.so.1").nvmlDeviceGetComputeRunningProcesses{version}
device, answer = nvmlDeviceGetHandleByIndex(0), []
size = {16 if version == "" else 24}
for room in (0, 2, 3, 9):
    count, buffer = c_uint(room), (c_ubyte * (size * 10))()
    answer.append([function(device, byref(count), buffer if room else None), count.value])
pids = [int.from_bytes(buffer[place * size : place * size + 4], "little") for place in range(4)]
answer.append(pids)
"""
    answers = [[7, 3], [7, 3], [0, 3], [0, 3], [*(job.pid for job in jobs), 0]]
    assert machine.nvml(program) == answers


def test_killed_process_disappears_at_once(machine: MockedMachine, jobs: Jobs) -> None:
    """Even as a zombie, which its parent has not looked after yet."""
    machine.mock_driver("process", "add", 0, jobs[0].pid, "--memory", 100)
    jobs[0].kill()
    os.waitid(os.P_PID, jobs[0].pid, os.WEXITED | os.WNOWAIT)
    assert machine.nvml(LISTS) == [[], [], []]
    assert machine.mock_driver("process", "list") == ""


def test_name_of_a_process(machine: MockedMachine, jobs: Jobs) -> None:
    assert machine.nvml(f"answer = nvmlSystemGetProcessName({jobs[0].pid})") == sys.executable
    jobs[0].kill()
    jobs[0].communicate()
    assert machine.nvml(f"answer = code(nvmlSystemGetProcessName, {jobs[0].pid})") == 6


def test_process_can_leave_and_come_back_as_another_kind(machine: MockedMachine, jobs: Jobs) -> None:
    pid = jobs[0].pid
    machine.mock_driver("process", "add", 0, pid)
    machine.mock_driver("process", "add", 0, pid, "--kind", "mps-server", "--memory", 9)
    assert machine.mock_driver("process", "list") == f"GPU 0  pid {pid}  mps-server  9 MiB\n"
    machine.mock_driver("process", "remove", 0, pid)
    assert machine.mock_driver("process", "list") == ""
    assert f"process {pid} is not on GPU 0" in machine.refusal("process", "remove", 0, pid)


def test_prohibited_refuses_all_that_compute(machine: MockedMachine, jobs: Jobs) -> None:
    machine.nvml("nvmlDeviceSetComputeMode(nvmlDeviceGetHandleByIndex(0), 2)")
    for kind in ("compute", "mps-server", "mps-client"):
        assert "compute mode is prohibited" in machine.refusal("process", "add", 0, jobs[0].pid, "--kind", kind)
    machine.mock_driver("process", "add", 0, jobs[0].pid, "--kind", "graphics")
    machine.mock_driver("process", "add", 1, jobs[0].pid)


def test_exclusive_process_is_for_one_and_the_clients_of_its_server(machine: MockedMachine, jobs: Jobs) -> None:
    server, client, other = (job.pid for job in jobs)
    machine.nvml("nvmlDeviceSetComputeMode(nvmlDeviceGetHandleByIndex(0), 3)")
    machine.mock_driver("process", "add", 0, server, "--kind", "mps-server")
    machine.mock_driver("process", "add", 0, client, "--kind", "mps-client")
    refusal = machine.refusal("process", "add", 0, other)
    assert f"refuses process {other}" in refusal
    assert f"{server} has it" in refusal
    jobs[0].kill()
    jobs[0].communicate()
    machine.mock_driver("process", "add", 0, other)


def test_process_that_does_not_live_is_refused(machine: MockedMachine, jobs: Jobs) -> None:
    jobs[0].kill()
    jobs[0].communicate()
    assert "does not live" in machine.refusal("process", "add", 0, jobs[0].pid)


@pytest.mark.parametrize("gpu", ["2", "GPU-nope", "10:00.0"])
def test_unknown_card_is_refused(machine: MockedMachine, gpu: str) -> None:
    assert f"unknown GPU '{gpu}'" in machine.refusal("process", "add", gpu, os.getpid())


@pytest.mark.parametrize("gpu", ["1", "GPU-283ac3e4-651c-534a-a922-7909abbd0be0", "00000000:0F:00.0", "0000:0f:00.0"])
def test_card_is_named_in_any_way(machine: MockedMachine, gpu: str) -> None:
    machine.mock_driver("process", "add", gpu, os.getpid())
    assert machine.mock_driver("process", "list").startswith("GPU 1  ")
