# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""NVIDIA's nvidia-smi as backend, and NVIDIA's control daemon with limits that change."""

from __future__ import annotations

import os

import pytest

from harness import real
from harness.machine import LABELS, Machine

SET = "nvmlDeviceSetComputeMode"


@pytest.fixture
def smi(machine: Machine) -> Machine:
    """A machine with NVIDIA's nvidia-smi."""
    real.use(machine, "nvidia-smi")
    return machine


@pytest.fixture
def control(machine: Machine) -> Machine:
    """A machine with NVIDIA's control daemon."""
    real.use(machine, "nvidia-cuda-mps-control")
    return machine


def test_nvidia_smi_tells_what_nvml_tells(smi: Machine) -> None:
    smi.mock_driver("process", "add", "0", str(os.getpid()), "--memory", "512")
    smi.compute_mode("prohibited", gpus=[1])
    by_smi, by_nvml = (smi.run("nvidia_gpu_info", backend=backend)["gpus"] for backend in ("nvidia_smi", "nvml"))
    assert by_smi == by_nvml


def test_nvidia_smi_of_mixed_generations(smi: Machine) -> None:
    smi.mock_driver("down")
    smi.mock_driver("up", "mixed")
    by_smi, by_nvml = (smi.run("nvidia_gpu_info", backend=backend)["gpus"] for backend in ("nvidia_smi", "nvml"))
    assert by_smi == by_nvml


@pytest.mark.parametrize("host", ["no-driver", "no-gpu", "mismatch"])
def test_nvidia_smi_without_a_card(smi: Machine, host: str) -> None:
    smi.mock_driver("down")
    smi.mock_driver("up", host)
    result = smi.run("nvidia_gpu_info", backend="nvidia_smi")
    assert result["driver"]["present"] == (host == "no-gpu")
    assert result["gpus"] == []


def test_nvidia_smi_sets_and_reads_back(smi: Machine) -> None:
    for mode in ("exclusive_process", "prohibited", "default"):
        calls = smi.counters()["setter_calls"]
        assert smi.compute_mode(mode, backend="nvidia_smi", check=True).changed
        assert smi.counters()["setter_calls"] == calls
        assert smi.compute_mode(mode, backend="nvidia_smi").changed
        assert smi.compute_modes() == [mode, mode]
        assert smi.counters()["setter_calls"] == calls + 2
        assert not smi.compute_mode(mode, backend="nvidia_smi").changed


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("NO_PERMISSION", "PermissionMissing"),
        ("NOT_SUPPORTED", "NotSupported"),
        ("IN_USE", "InUse"),
        ("GPU_IS_LOST", "GpuLost"),
        ("LIE", "NotReadBack"),
    ],
)
def test_nvidia_smi_that_refuses(smi: Machine, code: str, kind: str) -> None:
    smi.mock_driver("fault", SET, code)
    refused = smi.compute_mode("prohibited", gpus=[0], backend="nvidia_smi")
    assert refused["error"] == kind
    assert LABELS[0] in refused.message


def test_nvidia_smi_beside_a_lost_card(smi: Machine) -> None:
    smi.mock_driver("lose", "0")
    assert smi.compute_mode("prohibited", gpus=[1], backend="nvidia_smi").changed
    lost, healthy = smi.run("nvidia_gpu_info", backend="nvidia_smi")["gpus"]
    assert "lost" in lost["error"].lower()
    assert healthy["compute_mode"] == "prohibited"


def test_control_daemon_from_start_to_end(control: Machine) -> None:
    wish = control.daemon(gpus="all", active_thread_percentage=33.3, memory_limits=[{"gpu": 1, "size": "512M"}])
    assert control.mps(wish, check=True).changed
    (daemon,) = control.mps(wish)["daemons"]
    assert daemon["default"] == {"active_thread_percentage": 33.3, "memory": {"1": "512M"}}
    with control.untouched():
        assert not control.mps(wish).changed
    (changed,) = control.mps(control.daemon(gpus="all", clients=5))["daemons"]
    assert (changed["pid"], changed["default"]) == (
        daemon["pid"],
        {"active_thread_percentage": 20.0, "memory": {"0": "8G", "1": "8G"}},
    )
    assert control.mps(control.daemon(gpus=[1])).changed
    assert control.mps(control.daemon(state="absent")).changed
    assert control.daemons() == []
    assert set(control.files()) <= {"run"}


def test_control_daemon_with_a_server_that_will_not_end(control: Machine) -> None:
    control.mps(control.daemon())
    control.control(f"start_server -uid {os.getuid()}")
    (server,) = control.programs("nvidia-cuda-mps-server")
    (entry,) = control.mps(control.daemon())["daemons"][0]["in_force"]
    assert entry == {"pid": server, "clients": [], "limits": {"active_thread_percentage": None, "memory": {}}}
    assert control.mps(control.daemon(state="absent"), stop_timeout=1).changed
    assert control.programs("nvidia-cuda-mps") == []


def test_control_daemon_that_was_killed(control: Machine) -> None:
    control.mps(control.daemon(active_thread_percentage=50))
    control.kill(control.daemons()[0])
    result = control.mps(control.daemon(active_thread_percentage=50))
    assert result["daemons"][0]["default"]["active_thread_percentage"] == 50.0
    assert control.daemons() == [result["daemons"][0]["pid"]]
