# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Bad days of the driver and of its cards."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from harness.machine import LABELS, UUIDS, Machine
from harness.modules import MOCK_DRIVER

NewMachine = Callable[[str], Machine]
SET = "nvmlDeviceSetComputeMode"
BACKENDS = pytest.mark.parametrize("backend", ["nvml", "nvidia_smi"])
MODULES = pytest.mark.parametrize("module", ["nvidia_compute_mode", "nvidia_mps"])
# The backends are the same for both modules, so one of them tries both.
WAYS = pytest.mark.parametrize(
    ("module", "backend"),
    [("nvidia_compute_mode", "nvml"), ("nvidia_compute_mode", "nvidia_smi"), ("nvidia_mps", "nvml")],
)


def exclusive(machine: Machine, module: str, gpus: Any = 0, **options: Any) -> Any:
    """Make cards exclusive by either module."""
    if module == "nvidia_mps":
        return machine.mps(machine.daemon(gpus=gpus), **options)
    return machine.compute_mode("exclusive_process", gpus=gpus, **options)


def altered(machine_file: str, change: Callable[[list[dict[str, Any]]], None], machine: Machine) -> str:
    """A machine file with other cards; its path."""
    content = yaml.safe_load((MOCK_DRIVER / "machines" / f"{machine_file}.yaml").read_text())
    change(content["gpus"])
    path = machine.folder / "bin" / "machine.yaml"
    path.write_text(json.dumps(content))
    return str(path)


@WAYS
@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        ("NO_PERMISSION", "PermissionMissing", "run as root (become: true)"),
        ("NOT_SUPPORTED", "NotSupported", "Not Supported"),
        ("IN_USE", "InUse", "end the processes that use it"),
        ("GPU_IS_LOST", "GpuLost", "reset the GPU or reboot the host"),
        ("LIE", "NotReadBack", "reads default, not exclusive_process"),
    ],
)
def test_setter_that_refuses_or_lies(
    machine: Machine, module: str, backend: str, code: str, kind: str, words: str
) -> None:
    machine.mock_driver("fault", SET, code)
    before = machine.files()
    refused = exclusive(machine, module, backend=backend)
    assert refused["error"] == kind
    assert LABELS[0] in refused.message
    assert words.lower() in refused.message.lower()
    assert machine.compute_modes() == ["default", "default"]
    assert (machine.files(), machine.daemons()) == (before, [])


@WAYS
def test_not_root(machine: Machine, module: str, backend: str) -> None:
    with machine.untouched(attempts=1):
        refused = exclusive(machine, module, backend=backend, environment={"MOCK_DRIVER_UID": "4242"})
    assert refused["error"] == "PermissionMissing"
    assert "become: true" in refused.message


def test_not_root_may_look_and_plan(machine: Machine) -> None:
    stranger = {"MOCK_DRIVER_UID": "4242"}
    with machine.untouched():
        assert len(machine.run("nvidia_gpu_info", environment=stranger)["gpus"]) == 2
        assert machine.compute_mode("prohibited", check=True, environment=stranger).changed
        assert not machine.compute_mode("default", environment=stranger).changed


@BACKENDS
def test_the_second_card_fails_and_the_first_is_taken_back(machine: Machine, backend: str) -> None:
    machine.mock_driver("fault", SET, "UNKNOWN", "--gpu", "1")
    failed = machine.compute_mode("prohibited", backend=backend)
    step = f"set the compute mode of {LABELS[0]} to prohibited"
    assert (failed["done"], failed["undone"], failed["not_undone"]) == ([step], [step], [])
    assert LABELS[1] in failed.message and f"Taken back: {step}" in failed.message
    assert machine.compute_modes() == ["default", "default"]


def test_what_cannot_be_taken_back_is_told(machine: Machine) -> None:
    machine.mock_driver("fault", SET, "UNKNOWN", "--from", "2")
    failed = machine.compute_mode("prohibited")
    assert failed["undone"] == []
    assert "Not taken back: set the compute mode of GPU 0" in failed.message
    assert machine.compute_modes() == ["prohibited", "default"]


@WAYS
def test_a_lost_card_that_is_named(machine: Machine, module: str, backend: str) -> None:
    machine.mock_driver("lose", "1")
    with machine.untouched():
        refused = exclusive(machine, module, [0, 1], backend=backend)
    assert refused["error"] == "GpuLost"
    for part in ("gpus: '1'", "does not answer", "leave it out, or reset or reboot"):
        assert part in refused.message


@WAYS
def test_a_lost_card_that_is_not_named(machine: Machine, module: str, backend: str) -> None:
    machine.mock_driver("lose", "1")
    assert exclusive(machine, module, 0, backend=backend).changed
    assert machine.compute_modes()[0] == "exclusive_process"


@BACKENDS
def test_all_cards_but_the_lost_one(machine: Machine, backend: str) -> None:
    machine.mock_driver("lose", "1")
    result = machine.compute_mode("prohibited", backend=backend)
    assert [entry["index"] for entry in result["gpus"]] == [0]
    assert "GPU 1" in result.warnings and "was left out" in result.warnings


@BACKENDS
def test_a_lost_card_is_no_reason_to_restart_the_daemon_of_all(machine: Machine, backend: str) -> None:
    entry = machine.daemon(gpus="all", active_thread_percentage=50)
    (before,) = machine.mps(entry, backend=backend)["daemons"]
    machine.mock_driver("lose", "1")
    result = machine.mps(entry, backend=backend)
    assert not result.changed
    assert result["daemons"][0]["pid"] == before["pid"]
    assert result["daemons"][0]["gpus"] == list(UUIDS)
    assert "GPU 1" in result.warnings and "was left as it is" in result.warnings


def test_a_lost_card_gets_its_mode_back_when_it_answers_again(machine: Machine) -> None:
    machine.mps(machine.daemon(gpus="all"))
    machine.mock_driver("lose", "1")
    result = machine.mps({"name": "render", "state": "absent"})
    assert f"{UUIDS[1]} does not answer" in result.warnings
    assert machine.daemons() == []
    machine.mock_driver("find", "1")
    assert machine.compute_modes() == ["default", "exclusive_process"]
    machine.mps({"name": "render", "state": "absent"})
    assert machine.compute_modes() == ["default", "default"]


@pytest.mark.parametrize("state", ["started", "absent"])
def test_an_index_that_means_another_card_by_now(machine: Machine, state: str) -> None:
    machine.mps(machine.daemon(gpus=["0"]))

    def swap(gpus: list[dict[str, Any]]) -> None:
        gpus[0]["uuid"], gpus[1]["uuid"] = gpus[1]["uuid"], gpus[0]["uuid"]

    machine.mock_driver("down")
    machine.mock_driver("up", altered("a100-40gb-x2", swap, machine))
    machine.compute_mode("exclusive_process", gpus=[UUIDS[0]])
    if state == "started":
        with machine.untouched():
            refused = machine.mps(machine.daemon(gpus=["0"]))
        for part in ("daemons[0].gpus: '0'", f"meant {UUIDS[0]}", f"means {UUIDS[1]} now", "name the card by its UUID"):
            assert part in refused.message
    else:
        assert machine.mps({"name": "render", "state": "absent"}).changed
        assert {entry["uuid"]: entry["compute_mode"] for entry in machine.run("nvidia_gpu_info")["gpus"]}[
            UUIDS[0]
        ] == "default"


@MODULES
def test_a_card_in_mig_mode(machine: Machine, module: str) -> None:
    machine.mock_driver("down")
    machine.mock_driver("up", altered("a100-40gb-x2", lambda gpus: gpus[0].update(mig_mode=True), machine))
    with machine.untouched():
        refused = exclusive(machine, module, "all")
    assert refused["error"] == "DoesNotFit"
    for part in (LABELS[0], "is in MIG mode", "disable"):
        assert part in refused.message
    assert exclusive(machine, module, 1).changed


@MODULES
def test_nvidia_smi_that_sleeps(machine: Machine, module: str) -> None:
    machine.mock_driver("fault", "nvidia-smi", "HANG")
    with machine.untouched():
        refused = exclusive(machine, module, backend="nvidia_smi", timeout=0.3)
    assert refused["error"] == "CommandTimeout"
    for part in ("nvidia-smi", "did not end within 0.3 s", "raise timeout"):
        assert part in refused.message
    assert machine.programs("nvidia-smi") == []


def test_nvidia_smi_that_ignores_the_end(machine: Machine) -> None:
    machine.program("nvidia-smi", "trap '' TERM; exec sleep 1000")
    assert machine.compute_mode("prohibited", backend="nvidia_smi", timeout=0.3)["error"] == "CommandTimeout"
    assert machine.programs("sleep") == []


@pytest.mark.parametrize("module", ["nvidia_compute_mode", "nvidia_mps", "nvidia_gpu_info"])
def test_nvidia_smi_that_talks_nonsense(machine: Machine, module: str) -> None:
    machine.mock_driver("fault", "nvidia-smi", "GARBAGE")
    with machine.untouched():
        refused = (
            machine.run(module, backend="nvidia_smi")
            if module == "nvidia_gpu_info"
            else exclusive(machine, module, backend="nvidia_smi")
        )
    assert refused["error"] == "CommandFailed"
    assert "Cannot understand what nvidia-smi says" in refused.message


def test_nvidia_smi_that_lies(machine: Machine) -> None:
    machine.mock_driver("fault", "nvidia-smi", "LIE")
    assert machine.compute_mode("prohibited", backend="nvidia_smi")["error"] == "NotReadBack"


@WAYS
@pytest.mark.parametrize("host", ["no-driver", "no-gpu", "mismatch"])
def test_no_card_at_all(new_machine: NewMachine, module: str, backend: str, host: str) -> None:
    machine = new_machine(host)
    with machine.untouched():
        refused = exclusive(machine, module, "all", backend=backend)
    assert refused["error"] == ("NoGpu" if host == "no-gpu" else "DriverAbsent")


@pytest.mark.parametrize("host", ["no-driver", "no-gpu"])
def test_absent_without_a_card(new_machine: NewMachine, host: str) -> None:
    machine = new_machine(host)
    assert not machine.mps({"name": "render", "state": "absent"}).changed
