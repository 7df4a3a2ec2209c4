# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What nvidia_mig does when the driver refuses, lies or loses a card halfway: take back what can be, and tell the rest."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.machine import LABELS, UUIDS
from harness.mig import MigMachine

Start = Callable[[str], MigMachine]
A100 = "a100-40gb-x2"
MODE = "nvmlDeviceSetMigMode"
CREATE = "nvmlDeviceCreateGpuInstanceWithPlacement"
DESTROY = "nvmlGpuInstanceDestroy"
CREATE_PART = "nvmlGpuInstanceCreateComputeInstance"
CREATE_PART_AT = "nvmlGpuInstanceCreateComputeInstanceWithPlacement"
DESTROY_PART = "nvmlComputeInstanceDestroy"


def test_the_third_create_fails(either_way: Start) -> None:
    machine = either_way(A100)
    machine.mock_driver("fault", CREATE, "INSUFFICIENT_RESOURCES", "--only", "3")
    failed = machine.cut({"profile": "1g.5gb", "count": 5})
    assert failed["error"] == "CommandFailed"
    assert f"Cannot create GPU instance 1g.5gb at 2:1 on {LABELS[0]}" in failed.message
    assert "Insufficient Resources" in failed.message
    assert (machine.mode(), machine.places()) == ((False, False), [])
    assert len(failed["done"]) == len(failed["undone"]) == 1 + 2 + 2
    assert failed["not_undone"] == []
    assert failed.message.count("Taken back: ") == 1
    assert "Not taken back" not in failed.message
    assert failed["gpus"][0]["after"] == failed["gpus"][0]["before"]


def test_what_was_there_before_is_there_again(either_way: Start) -> None:
    machine = either_way(A100)
    machine.cut("2g.10gb", {"profile": "3g.20gb", "start": 4, "compute_instances": ["1c.3g.20gb", "2c.3g.20gb"]})
    before = machine.instances()
    machine.mock_driver("fault", CREATE, "UNKNOWN", "--only", "3")
    failed = machine.cut({"profile": "1g.5gb", "count": 7}, purge=True)
    assert failed["not_undone"] == [], failed
    assert machine.instances() == before, "with the same UUIDs"


def test_a_compute_instance_fails(either_way: Start) -> None:
    machine = either_way(A100)
    machine.cut("1g.5gb")
    before = machine.instances()
    machine.mock_driver("fault", CREATE_PART_AT, "INSUFFICIENT_RESOURCES", "--only", "2")
    failed = machine.cut("1g.5gb", {"profile": "3g.20gb", "compute_instances": ["1c.3g.20gb"] * 3})
    assert "Cannot create compute instance 1c.3g.20gb in GPU instance" in failed.message
    assert [step.partition(" at ")[0] for step in failed["done"]] == [
        "create GPU instance 3g.20gb",
        "create compute instance 1c.3g.20gb in 3g.20gb",
    ]
    assert failed["undone"] == failed["done"][::-1]
    assert machine.instances() == before


def test_a_destruction_that_is_refused(either_way: Start) -> None:
    machine = either_way(A100)
    machine.cut({"profile": "1g.5gb", "count": 3})
    before = machine.instances()
    machine.mock_driver("fault", DESTROY, "IN_USE", "--only", "2")
    failed = machine.cut(purge=True)
    assert failed["error"] == "InUse"
    assert f"Cannot destroy GPU instance {before[1].id} of {LABELS[0]}" in failed.message
    assert failed["not_undone"] == []
    assert machine.instances() == before


def test_a_repair_that_fails(mig_machine: MigMachine) -> None:
    mig_machine.cut({"profile": "3g.20gb", "compute_instances": ["1c.3g.20gb", "1c.3g.20gb"]})
    before = mig_machine.instances()
    mig_machine.mock_driver("fault", CREATE_PART, "UNKNOWN", "--only", "1")
    failed = mig_machine.cut({"profile": "3g.20gb", "compute_instances": ["3g.20gb"]}, purge=True)
    assert len(failed["undone"]) == 2
    assert mig_machine.instances() == before


def test_the_second_card_fails_and_the_first_is_taken_back(either_way: Start) -> None:
    machine = either_way(A100)
    machine.mock_driver("fault", CREATE, "UNKNOWN", "--gpu", "1")
    failed = machine.mig({"gpus": ["all"], "instances": [{"profile": "7g.40gb"}]})
    assert f"on {LABELS[1]}" in failed.message
    assert failed["not_undone"] == []
    assert [(machine.mode(gpu), machine.places(gpu)) for gpu in (0, 1)] == [((False, False), [])] * 2


def test_what_cannot_be_taken_back_is_told_with_the_state(mig_machine: MigMachine) -> None:
    mig_machine.mock_driver("fault", CREATE, "UNKNOWN", "--only", "2")
    mig_machine.mock_driver("fault", DESTROY, "UNKNOWN")
    failed = mig_machine.cut({"profile": "3g.20gb", "start": 0}, "1g.5gb")
    assert [step.partition(" of GPU")[0] for step in failed["undone"]] == [
        "create compute instance 3g.20gb in 3g.20gb at 0:4"
    ]
    left, mode = failed["not_undone"]
    assert left.startswith("create GPU instance 3g.20gb at 0:4") and "taking it back failed: Cannot destroy" in left
    assert mode.startswith("enable MIG mode of GPU 0")
    assert failed.message.endswith(f"Now {LABELS[0]}: MIG mode enabled\nGPU 0  | 3g.20gb(none) | . | . | . | . |"), (
        failed.message
    )
    assert mig_machine.places() == ["3g.20gb()@0"]
    (card,) = failed["gpus"]
    assert [(one["profile"], one["compute_instances"]) for one in card["after"]["instances"]] == [("3g.20gb", [])]


def test_a_card_that_is_lost_midway(either_way: Start) -> None:
    machine = either_way(A100)
    machine.mock_driver("fault", CREATE, "GPU_IS_LOST", "--from", "2", "--gpu", "0")
    for function in (DESTROY, DESTROY_PART):
        machine.mock_driver("fault", function, "GPU_IS_LOST")
    failed = machine.mig(
        {"gpus": [1], "instances": [{"profile": "7g.40gb"}]},
        {"gpus": [0], "instances": [{"profile": "1g.5gb", "count": 2}]},
    )
    assert failed["error"] == "GpuLost"
    assert LABELS[0] in failed.message and "reset the GPU or reboot the host" in failed.message
    assert any(step.startswith("create GPU instance 1g.5gb at ") for step in failed["not_undone"])
    assert machine.mode(1) == (False, False)
    assert machine.places(1) == []


@pytest.mark.parametrize("function", [CREATE, CREATE_PART])
def test_a_driver_that_lies_about_creating(mig_machine: MigMachine, function: str) -> None:
    mig_machine.mock_driver("fault", function, "LIE")
    failed = mig_machine.cut("1g.5gb")
    assert failed.failed
    assert (mig_machine.mode(), mig_machine.places()) == ((False, False), [])


def test_a_driver_that_lies_about_destroying(either_way: Start) -> None:
    machine = either_way(A100)
    machine.cut("1g.5gb")
    machine.mock_driver("fault", DESTROY, "LIE")
    failed = machine.cut(purge=True)
    assert failed["error"] == "NotReadBack"
    assert LABELS[0] in failed.message
    assert failed["done"] == failed["not_undone"]
    assert [step.partition(" at ")[0] for step in failed["done"]] == [
        "destroy compute instance 0, 1g.5gb in 1g.5gb",
        f"destroy GPU instance {machine.instances()[0].id}, 1g.5gb",
    ]
    assert "Not taken back: destroy compute instance 0" in failed.message
    assert "1g.5gb(none)" in failed.message, "with the state now"
    (left,) = failed["gpus"][0]["after"]["instances"]
    assert (left["gi_id"], left["compute_instances"]) == (machine.instances()[0].id, [])


def test_what_was_made_before_the_answer_was_lost_is_taken_back(mig_machine: MigMachine) -> None:
    """It may be made although the call fails, or although its id cannot be read."""
    mig_machine.cut("1g.5gb")
    before = mig_machine.instances()
    for function in ("nvmlGpuInstanceGetInfo", "nvmlComputeInstanceGetInfo"):
        # The first read is of what is there; then come the new ones.
        mig_machine.mock_driver("fault", function, "UNKNOWN", "--only", "2")
        failed = mig_machine.cut("1g.5gb", "3g.20gb", "2g.10gb")
        assert "Cannot read the new" in failed.message
        assert failed["not_undone"] == []
        assert mig_machine.instances() == before
        mig_machine.mock_driver("fault", "clear")


@pytest.mark.parametrize("change", [["3g.20gb"], []], ids=["create", "destroy"])
def test_a_program_that_is_ended_after_its_work(mig_machine: MigMachine, change: list[str]) -> None:
    mig_machine.speak("nvidia-smi-535")
    mig_machine.cut("2g.10gb")
    before = mig_machine.instances()
    verb = "-cgi" if change else "-dgi"
    slow = f'case "$*" in *{verb}*) /usr/bin/nvidia-smi "$@" >/dev/null; exec sleep 60;; *) exec /usr/bin/nvidia-smi "$@";; esac'
    mig_machine.program("nvidia-smi", slow)
    failed = mig_machine.cut(*change, *(["2g.10gb"] if change else []), purge=True, timeout=2)
    assert failed["error"] == "CommandTimeout"
    assert mig_machine.instances() == before


@pytest.mark.parametrize(
    "function", ["nvmlGpuInstanceGetInfo", "nvmlComputeInstanceGetInfo", "nvmlDeviceGetMigDeviceHandleByIndex"]
)
def test_an_instance_that_vanishes_while_it_is_read(mig_machine: MigMachine, function: str) -> None:
    mig_machine.cut("1g.5gb")
    mig_machine.mock_driver("fault", function, "INVALID_ARGUMENT", "--only", "1")
    assert not mig_machine.cut("1g.5gb").changed, "it is looked for once more"
    mig_machine.mock_driver("fault", "clear")
    mig_machine.mock_driver("fault", function, "INVALID_ARGUMENT")
    with mig_machine.untouched():
        assert mig_machine.cut("1g.5gb")["error"] == "CommandFailed"


@pytest.mark.parametrize(
    "function",
    [
        "nvmlDeviceGetMigMode",
        "nvmlDeviceGetGpuInstanceProfileInfoV",
        "nvmlDeviceGetGpuInstancePossiblePlacements",
        "nvmlDeviceGetGpuInstances",
        "nvmlGpuInstanceGetComputeInstanceProfileInfoV",
        "nvmlGpuInstanceGetComputeInstances",
        "nvmlDeviceGetMaxMigDeviceCount",
        "nvmlDeviceGetComputeRunningProcesses",
    ],
)
def test_a_card_that_is_lost_while_it_is_read(mig_machine: MigMachine, function: str) -> None:
    mig_machine.cut("1g.5gb")
    mig_machine.mock_driver("fault", function, "GPU_IS_LOST")
    with mig_machine.untouched():
        failed = mig_machine.cut("1g.5gb", "2g.10gb")
    assert failed["error"] == "GpuLost", failed


def test_a_lost_card(either_way: Start) -> None:
    machine = either_way(A100)
    machine.mock_driver("lose", "1")
    with machine.untouched():
        refused = machine.mig({"gpus": [0, 1]})
    assert refused["error"] == "GpuLost"
    assert "layouts[0].gpus: '1'" in refused.message
    result = machine.mig({"gpus": ["all"], "instances": [{"profile": "1g.5gb"}]})
    assert result.changed, result
    assert [card["uuid"] for card in result["gpus"]] == [UUIDS[0]]
    assert "GPU 1" in result.warnings and "was left out" in result.warnings


def test_not_root(either_way: Start) -> None:
    machine = either_way(A100)
    stranger = {"MOCK_DRIVER_UID": "4242"}
    refused = machine.cut("1g.5gb", environment=stranger)
    assert refused["error"] == "PermissionMissing"
    assert "become: true" in refused.message
    assert machine.mode() == (False, False)
    assert machine.mig({"gpus": [0]}, check=True, environment=stranger).changed, "to look and plan needs no root"


@pytest.mark.parametrize("code", ["UNKNOWN", "TIMEOUT"])
def test_letting_go_of_the_driver_fails(mig_machine: MigMachine, code: str) -> None:
    mig_machine.mock_driver("fault", "nvmlShutdown", code)
    assert mig_machine.cut("1g.5gb").changed
