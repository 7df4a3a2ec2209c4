# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""nvidia_gpu_info: an answer on every host, never a crash, and nothing changed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.machine import UUIDS, Machine
from harness.modules import COLLECTIONS, Modules, Result
from harness.playbook import play

NewMachine = Callable[[str], Machine]
BACKENDS = pytest.mark.parametrize("backend", ["nvml", "nvidia_smi"])

A100 = {
    "name": "NVIDIA A100-SXM4-40GB",
    "architecture": "ampere",
    "compute_capability": "8.0",
    "memory_total_mib": 40960,
    "compute_mode": "default",
    "persistence_mode": False,
    "mig": {"capable": True, "current": False, "pending": False},
    "processes": [],
    "error": None,
}


def info(machine: Machine, **options: Any) -> Result:
    """Run the module and see that it changes nothing."""
    with machine.untouched():
        result = machine.run("nvidia_gpu_info", **options)
    assert not result.failed, result
    assert not result.changed
    return result


@pytest.fixture(scope="session")
def modules_without_pynvml(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Modules]:
    """An interpreter to which nvidia-ml-py is as good as not installed."""
    folder = tmp_path_factory.mktemp("without-pynvml")
    (folder / "pynvml.py").write_text("raise ImportError('No module named pynvml')\n")
    server = Modules(f"{folder}:{COLLECTIONS}")
    yield server
    server.close()


@pytest.fixture
def machine_without_pynvml(modules_without_pynvml: Modules) -> Iterator[Machine]:
    machine = Machine("a100-40gb-x2", modules_without_pynvml)
    yield machine
    machine.close()


@BACKENDS
def test_two_cards(machine: Machine, backend: str) -> None:
    result = info(machine, backend=backend)
    assert result["driver"] == {
        "present": True,
        "reason": None,
        "version": "535.309.01",
        "nvml_version": "12.535.309.01" if backend == "nvml" else None,
        "cuda_version": "12.2",
        "backend": backend,
    }
    assert result["gpus"] == [
        {"index": 0, "uuid": UUIDS[0], "pci_bus_id": "0000:07:00.0", **A100},
        {"index": 1, "uuid": UUIDS[1], "pci_bus_id": "0000:0f:00.0", **A100},
    ]


def test_one_card(machine: Machine) -> None:
    assert [gpu["uuid"] for gpu in info(machine, gpus=1)["gpus"]] == [UUIDS[1]]


@BACKENDS
def test_mixed_generations(new_machine: NewMachine, backend: str) -> None:
    gpus = info(new_machine("mixed"), backend=backend)["gpus"]
    seen = [
        (gpu["name"], gpu["architecture"], gpu["compute_capability"], gpu["memory_total_mib"], gpu["mig"]["capable"])
        for gpu in gpus
    ]
    assert seen == [
        ("NVIDIA A100-SXM4-40GB", "ampere", "8.0", 40960, True),
        ("Tesla T4", "turing", "7.5", 15360, False),
        ("NVIDIA A30", "ampere", "8.0", 24576, True),
    ]


@BACKENDS
def test_processes(machine: Machine, backend: str) -> None:
    machine.mock_driver("process", "add", "0", str(os.getpid()), "--kind", "compute", "--memory", "512")
    first, second = info(machine, backend=backend)["gpus"]
    assert [(entry["pid"], entry["memory_mib"], entry["type"]) for entry in first["processes"]] == [
        (os.getpid(), 512, "C")
    ]
    assert second["processes"] == []


@BACKENDS
@pytest.mark.parametrize(
    ("host", "reason"),
    [("no-driver", "kernel module is not loaded|couldn't communicate with the NVIDIA driver"), ("mismatch", "version")],
)
def test_no_driver(new_machine: NewMachine, backend: str, host: str, reason: str) -> None:
    result = info(new_machine(host), backend=backend)
    assert not result["driver"]["present"]
    assert any(part in result["driver"]["reason"] for part in reason.split("|")), result
    assert result["gpus"] == []


def test_no_driver_by_ansible(new_machine: NewMachine) -> None:
    machine = new_machine("no-driver")
    run = play(machine, [{"name": "read", "gpuops.sharing.nvidia_gpu_info": {}}])
    assert run.status == 0, run.output
    result = run.named("read").result
    assert (result["driver"]["present"], result["gpus"], run.recap["changed"]) == (False, [], 0)


@BACKENDS
def test_no_gpu(new_machine: NewMachine, backend: str) -> None:
    result = info(new_machine("no-gpu"), backend=backend)
    assert result["driver"]["present"]
    assert result["driver"]["version"] == ("535.309.01" if backend == "nvml" else None), (
        "without a GPU nvidia-smi names no version"
    )
    assert result["gpus"] == []


def test_without_pynvml(machine_without_pynvml: Machine) -> None:
    result = info(machine_without_pynvml)
    assert result["driver"]["backend"] == "nvidia_smi"
    assert [gpu["uuid"] for gpu in result["gpus"]] == list(UUIDS)


def test_without_pynvml_but_asked_for_it(machine_without_pynvml: Machine) -> None:
    refused = machine_without_pynvml.run("nvidia_gpu_info", backend="nvml")
    for part in ("backend: 'nvml'", "nvidia-ml-py is not installed", "use backend nvidia_smi"):
        assert part in refused.message


def test_without_nvidia_smi(machine: Machine) -> None:
    machine.only("timeout")
    assert [gpu["uuid"] for gpu in info(machine)["gpus"]] == list(UUIDS)
    driver = info(machine, backend="nvidia_smi")["driver"]
    assert not driver["present"]
    assert driver["reason"] == "nvidia-smi was not found"


def test_without_any_means(machine_without_pynvml: Machine) -> None:
    machine_without_pynvml.only("timeout")
    result = info(machine_without_pynvml)
    assert not result["driver"]["present"]
    assert result["driver"]["reason"] == "neither nvidia-smi nor the Python package nvidia-ml-py was found"
    assert result["gpus"] == []


@BACKENDS
def test_lost_card(machine: Machine, backend: str) -> None:
    machine.mock_driver("lose", "0")
    lost, healthy = info(machine, backend=backend)["gpus"]
    assert (lost["index"], lost["uuid"]) == (0, None)
    assert "lost" in lost["error"].lower()
    assert healthy == {"index": 1, "uuid": UUIDS[1], "pci_bus_id": "0000:0f:00.0", **A100}
    assert info(machine, gpus=[0], backend=backend)["gpus"] == [lost]


@BACKENDS
def test_daemons(machine: Machine, backend: str) -> None:
    machine.mps(machine.daemon(gpus=[1], active_thread_percentage=50, memory_limits=[{"size": "8G"}]))
    client = machine.client(CUDA_VISIBLE_DEVICES=UUIDS[1])
    result = info(machine, backend=backend)
    daemon = next(entry for entry in result["mps_daemons"] if entry["pipe_directory"] == machine.pipe())
    server = daemon["servers"][0]
    assert daemon == {
        "pid": machine.daemons()[0],
        "uid": os.getuid(),
        "pipe_directory": machine.pipe(),
        "gpus": [UUIDS[1]],
        "servers": [
            {
                "pid": server["pid"],
                "clients": [client.pid],
                "limits": {"active_thread_percentage": 50.0, "memory": {"0": "8G"}},
            }
        ],
        "limits": {"active_thread_percentage": 50.0, "memory": {"0": "8G"}},
        "error": None,
    }
    shared = result["gpus"][1]
    assert shared["compute_mode"] == "exclusive_process"
    assert {(entry["pid"], entry["type"]) for entry in shared["processes"]} == {
        (server["pid"], "C"),
        (client.pid, "M+C"),
    }


def test_daemon_that_does_not_answer(machine: Machine) -> None:
    machine.mps(machine.daemon())
    shutil.rmtree(Path(machine.pipe()))
    result = machine.run("nvidia_gpu_info")
    daemon = next(entry for entry in result["mps_daemons"] if entry["pipe_directory"] == machine.pipe())
    assert daemon["error"] == f"it does not answer on {machine.pipe()}"
