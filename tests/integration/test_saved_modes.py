# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The compute mode from before: remembered before the first change, set back after the last daemon, and left where somebody else had a hand in it."""

from __future__ import annotations

import json
import os

import pytest

from harness.machine import LABELS, UUIDS, Machine

ABSENT = {"name": "render", "state": "absent"}


def remembered(machine: Machine) -> dict[str, tuple[str, list[str]]]:
    """Mode from before and owners, by UUID."""
    cards = json.loads((machine.var / "compute_modes.json").read_text())["cards"]
    return {uuid: (entry["before"], entry["owners"]) for uuid, entry in cards.items()}


@pytest.mark.parametrize("before", ["default", "prohibited"])
def test_back_to_what_was_before(machine: Machine, before: str) -> None:
    machine.compute_mode(before, gpus=[0])
    machine.mps(machine.daemon())
    assert machine.compute_modes() == ["exclusive_process", "default"]
    assert remembered(machine) == {UUIDS[0]: (before, ["render"])}
    machine.mps(ABSENT)
    assert machine.compute_modes() == [before, "default"]
    assert not (machine.var / "compute_modes.json").exists()


def test_exclusive_before(machine: Machine) -> None:
    machine.compute_mode("exclusive_process", gpus=[0])
    calls = machine.counters()["setter_calls"]
    machine.mps(machine.daemon())
    machine.mps(ABSENT)
    assert machine.compute_modes()[0] == "exclusive_process"
    assert machine.counters()["setter_calls"] == calls


def test_unchanged(machine: Machine) -> None:
    entry = machine.daemon(compute_mode="unchanged")
    machine.mps(entry)
    assert machine.compute_modes()[0] == "default"
    machine.mps(ABSENT)
    assert machine.counters()["setter_calls"] == 0


def test_unchanged_is_refused_on_a_prohibited_card(machine: Machine) -> None:
    machine.compute_mode("prohibited", gpus=[0])
    with machine.untouched():
        refused = machine.mps(machine.daemon(compute_mode="unchanged"))
    assert "prohibited" in refused.message and "use exclusive_process" in refused.message


def test_later_unchanged_gives_the_mode_back(machine: Machine) -> None:
    machine.mps(machine.daemon())
    machine.mps(machine.daemon(compute_mode="unchanged"))
    assert machine.compute_modes()[0] == "default"
    assert len(machine.daemons()) == 1


def test_changed_by_somebody_else_is_left_and_told(machine: Machine) -> None:
    machine.mps(machine.daemon())
    machine.compute_mode("prohibited", gpus=[0])
    result = machine.mps(ABSENT)
    assert machine.compute_modes()[0] == "prohibited"
    assert f"{LABELS[0]} is in mode prohibited, not in exclusive_process" in result.warnings
    assert not (machine.var / "compute_modes.json").exists()


def test_changed_by_somebody_else_is_set_again_and_before_is_kept(machine: Machine) -> None:
    machine.mps(machine.daemon())
    machine.compute_mode("prohibited", gpus=[0])
    assert machine.mps(machine.daemon()).changed
    assert machine.compute_modes()[0] == "exclusive_process"
    assert remembered(machine) == {UUIDS[0]: ("default", ["render"])}
    machine.mps(ABSENT)
    assert machine.compute_modes()[0] == "default"


def test_after_a_reboot(machine: Machine) -> None:
    machine.mps(machine.daemon())
    machine.kill(machine.daemons()[0])
    machine.mock_driver("reboot")
    assert machine.compute_modes()[0] == "default"
    assert machine.mps(machine.daemon()).changed
    assert machine.compute_modes()[0] == "exclusive_process"
    machine.mps(ABSENT)
    assert machine.compute_modes()[0] == "default"


def test_the_mode_is_on_disk_before_it_is_changed(machine: Machine) -> None:
    machine.mock_driver("fault", "nvmlDeviceSetComputeMode", "UNKNOWN")
    failed = machine.mps(machine.daemon())
    assert any(step.startswith("remember") for step in failed["undone"])
    machine.mock_driver("fault", "clear")
    machine.mps(machine.daemon())
    assert remembered(machine) == {UUIDS[0]: ("default", ["render"])}


def test_a_busy_card_is_refused(machine: Machine) -> None:
    machine.mock_driver("process", "add", "0", str(os.getpid()))
    with machine.untouched():
        refused = machine.mps(machine.daemon())
    assert refused["error"] == "InUse"
    assert [entry["pid"] for entry in refused["processes"]] == [os.getpid()]
    for part in ("GPU 0", str(os.getpid()), "end them before the card is shared, or use compute_mode: unchanged"):
        assert part in refused.message
    assert not machine.mps(machine.daemon(compute_mode="unchanged")).failed


def test_a_busy_card_that_is_exclusive_already(machine: Machine) -> None:
    """A daemon on a card that a process holds exclusively would serve nobody."""
    machine.compute_mode("exclusive_process", gpus=[0])
    machine.mock_driver("process", "add", "0", str(os.getpid()))
    with machine.untouched():
        refused = machine.mps(machine.daemon())
    assert str(os.getpid()) in refused.message


def test_nvidia_compute_mode_warns_of_a_shared_card(machine: Machine) -> None:
    machine.mps(machine.daemon())
    result = machine.compute_mode("default")
    assert result.changed
    assert f"{LABELS[0]} is shared by the MPS daemon render" in result.warnings
