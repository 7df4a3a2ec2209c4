# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Both driver backends answer alike, whichever nvidia-smi it is: the stand-in, NVIDIA's 535 or NVIDIA's 550."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from _resident import MOCK_DRIVER
from mocked_machine import MockedMachine

# name: backend, path of nvidia-smi, where the real one comes from
BACKENDS = {
    "nvml": ("nvml", "", ""),
    "stand-in": ("nvidia_smi", str(MOCK_DRIVER / "programs" / "nvidia-smi"), ""),
    "real-535": ("nvidia_smi", "/usr/bin/nvidia-smi", "Debian 12's package nvidia-smi (non-free)"),
    "real-550": (
        "nvidia_smi",
        os.environ.get("NVIDIA_SMI_550", ""),
        "$NVIDIA_SMI_550, the program out of Debian 13's package nvidia-smi",
    ),
}
MACHINES = ["a100-40gb-x2", "mixed", "t4", "dgx-a100", "h100-sxm"]

Ask = Callable[..., dict[str, Any]]


@pytest.fixture(params=BACKENDS)
def ask(request: pytest.FixtureRequest) -> Ask:
    """Ask one backend about a machine."""
    backend, program, origin = BACKENDS[request.param]
    if origin and not os.access(program, os.X_OK):
        text = f"nvidia-smi is missing: {origin}"
        pytest.fail(text) if os.environ.get("GPUOPS_REQUIRE_REAL") == "1" else pytest.skip(text)
    return asker(backend, program)


def asker(backend: str, program: str = "") -> Ask:
    """Return a function that asks a backend."""

    def asking(machine: MockedMachine, *arguments: str, **variables: str) -> dict[str, Any]:
        done = machine.run_loaded("backend", backend, program or "-", *arguments, **variables)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    return asking


@pytest.fixture
def job() -> Iterator[int]:
    """A process that lives as long as the test."""
    process = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    yield process.pid
    process.communicate()


@pytest.mark.parametrize("name", MACHINES)
def test_every_gpu_with_all_that_is_known_of_it(
    ask: Ask, start_machine: Callable[[str], MockedMachine], name: str
) -> None:
    machine = start_machine(name)
    found = ask(machine, "read")["answer"]
    assert found == asker("nvml")(machine, "read")["answer"]
    assert all(gpu["uuid"] and gpu["compute_capability"] and gpu["compute_mode"] == "default" for gpu in found)


def test_no_gpu_is_no_error(ask: Ask, start_machine: Callable[[str], MockedMachine]) -> None:
    assert ask(start_machine("no-gpu"), "read") == {"answer": []}


@pytest.mark.parametrize("name", ["no-driver", "mismatch"])
def test_no_driver_is_an_error_of_its_own(ask: Ask, start_machine: Callable[[str], MockedMachine], name: str) -> None:
    assert ask(start_machine(name), "read")["error"] == "DriverAbsent"


def test_processes(ask: Ask, machine: MockedMachine, job: int) -> None:
    machine.mock_driver("process", "add", 1, job, "--memory", 500)
    first, second = ask(machine, "read")["answer"]
    assert first["processes"] == []
    [process] = second["processes"]
    pid, name, memory, kind = process
    assert (pid, memory, kind) == (job, 500, "C")
    assert name.endswith("cat")


@pytest.mark.parametrize("mode", ["exclusive_process", "prohibited", "default"])
def test_a_compute_mode_is_set_and_read_back(ask: Ask, machine: MockedMachine, mode: str) -> None:
    assert ask(machine, "set", "1", mode) == {"answer": mode}
    modes = [gpu["compute_mode"] for gpu in ask(machine, "read")["answer"]]
    assert modes == ["default", mode]


@pytest.mark.parametrize(
    "code, error",
    [
        ("NOT_SUPPORTED", "NotSupported"),
        ("NO_PERMISSION", "PermissionMissing"),
        ("IN_USE", "InUse"),
        ("GPU_IS_LOST", "GpuLost"),
        ("UNKNOWN", "CommandFailed"),
    ],
)
def test_a_refusal_is_the_same_kind_of_error(ask: Ask, machine: MockedMachine, code: str, error: str) -> None:
    machine.mock_driver("fault", "nvmlDeviceSetComputeMode", code)
    found = ask(machine, "set", "0", "prohibited")
    assert found["error"] == error
    assert "set the compute mode of GPU 0 (NVIDIA A100-SXM4-40GB" in found["message"]


def test_a_setter_that_lies_is_seen_by_reading_back(ask: Ask, machine: MockedMachine) -> None:
    machine.mock_driver("fault", "nvmlDeviceSetComputeMode", "LIE")
    assert ask(machine, "set", "0", "prohibited") == {"answer": "default"}


def test_an_ordinary_user_may_read_and_not_set(ask: Ask, machine: MockedMachine) -> None:
    stranger = {"MOCK_DRIVER_UID": "4242"}
    assert len(ask(machine, "read", **stranger)["answer"]) == 2
    assert ask(machine, "set", "0", "prohibited", **stranger)["error"] == "PermissionMissing"


@pytest.mark.parametrize("lost, healthy", [(0, 1), (1, 0)])
def test_a_lost_gpu_hides_no_other(ask: Ask, machine: MockedMachine, lost: int, healthy: int) -> None:
    machine.mock_driver("lose", lost)
    found = ask(machine, "read")["answer"]
    assert [gpu["error"] for gpu in found] == [index == lost for index in (0, 1)]
    assert found[healthy]["compute_mode"] == "default"
    assert ask(machine, "set", str(healthy), "prohibited") == {"answer": "prohibited"}
