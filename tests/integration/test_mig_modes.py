# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The MIG mode: pending, in use, refused, and brought into force by a reset."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
import yaml

from harness.machine import LABELS, MOCK_DRIVER, UUIDS
from harness.mig import MigMachine

Start = Callable[[str], MigMachine]
NEEDS_RESET = "a100-reset-needed"
MODE = "nvmlDeviceSetMigMode"


def pending_with(machine: MigMachine, activation: str) -> None:
    """Let the driver say something else of a mode that it could not activate."""
    content = yaml.safe_load((MOCK_DRIVER / "machines" / f"{NEEDS_RESET}.yaml").read_text())
    for gpu in content["gpus"]:
        gpu["mig_activation"] = activation
    path = machine.folder / "bin" / "machine.yaml"
    path.write_text(json.dumps(content))
    machine.mock_driver("down")
    machine.mock_driver("up", str(path))


def test_a_mode_that_needs_a_reset(either_way: Start) -> None:
    machine = either_way(NEEDS_RESET)
    refused = machine.cut("1g.5gb")
    assert refused["error"] == "ChangePending"
    assert (refused["reset_required"], refused["reboot_required"]) == (True, False)
    assert LABELS[0] in refused.message
    assert "set allow_reset: true" in refused.message
    assert refused["undone"] == ["enable MIG mode of GPU 0"]
    assert (machine.mode(), machine.resets()) == ((False, False), 0)


@pytest.mark.parametrize("persistent", [True, False])
def test_reset_of_just_that_card(new_mig_machine: Start, persistent: bool) -> None:
    machine = new_mig_machine(NEEDS_RESET)
    machine.nvml(f"nvmlDeviceSetPersistenceMode(card, {int(persistent)})")
    job = machine.job(1)
    result = machine.cut("1g.5gb", "3g.20gb", allow_reset=True)
    assert result.changed, result
    assert (machine.mode(), machine.resets()) == ((True, True), 1)
    assert sorted(one.profile for one in machine.instances()) == ["1g.5gb", "3g.20gb"]
    assert machine.mode(1) == (False, False)
    cards = machine.run("nvidia_gpu_info")["gpus"]
    assert [card["persistence_mode"] for card in cards] == [persistent, False]
    assert [process["pid"] for process in cards[1]["processes"]] == [job]
    with machine.untouched():
        assert not machine.cut("1g.5gb", "3g.20gb", allow_reset=True).changed
    assert machine.mig({"gpus": [0], "enabled": False}, purge=True, allow_reset=True).changed
    assert (machine.mode(), machine.resets()) == ((False, False), 2)


def test_the_driver_is_let_go_of_before_a_reset(new_mig_machine: Start) -> None:
    """A client of the driver is in a reset's way, and the module itself is one."""
    machine = new_mig_machine(NEEDS_RESET)
    machine.mock_driver("trace", "on")
    assert machine.mig({"gpus": [0]}, allow_reset=True).changed
    calls = [line.split()[1:3] for line in machine.mock_driver("trace", "show").splitlines()]
    module = calls[0][0]
    clients = [name[:8] for pid, name in calls if pid == module and name.startswith(("nvmlInit", "nvmlShutdown"))]
    assert clients == ["nvmlInit", "nvmlShut"] * 2
    began = next(number for number, (pid, _name) in enumerate(calls) if pid != module)
    assert calls[began - 1] == [module, "nvmlShutdown"]


@pytest.mark.parametrize("code", ["HANG", "LIE"])
def test_a_reset_that_comes_to_nothing(new_mig_machine: Start, code: str) -> None:
    machine = new_mig_machine(NEEDS_RESET)
    machine.nvml("nvmlDeviceSetPersistenceMode(card, 1)")
    machine.mock_driver("fault", "nvidia-smi", code)
    refused = machine.cut("1g.5gb", allow_reset=True, timeout=0.5)
    assert refused["error"] == {"HANG": "CommandTimeout", "LIE": "ChangePending"}[code]
    assert machine.mode() == (False, False)
    assert machine.run("nvidia_gpu_info")["gpus"][0]["persistence_mode"] is True


def test_a_failure_after_a_reset_takes_the_mode_back_by_another(new_mig_machine: Start) -> None:
    machine = new_mig_machine(NEEDS_RESET)
    machine.mock_driver("fault", "nvmlDeviceCreateGpuInstanceWithPlacement", "UNKNOWN")
    failed = machine.cut("1g.5gb", allow_reset=True)
    assert failed["undone"] == ["enable MIG mode of GPU 0"]
    assert (machine.mode(), machine.resets()) == ((False, False), 2)


def test_cards_that_can_only_be_reset_together(new_mig_machine: Start) -> None:
    machine = new_mig_machine("hgx-a100")
    refused = machine.cut("7g.40gb", allow_reset=True)
    assert "must be reset together" in refused.message
    assert (refused["reset_required"], refused["reboot_required"]) == (True, False)
    assert (machine.mode(), machine.resets()) == ((False, False), 0)
    assert machine.cut("7g.40gb", gpu="all", allow_reset=True).changed
    assert [machine.places(gpu) for gpu in range(4)] == [["7g.40gb@0"]] * 4
    assert machine.resets() == 4


@pytest.mark.parametrize("allow_reset", [False, True])
def test_a_virtual_machine(either_way: Start, allow_reset: bool) -> None:
    machine = either_way("a100-vm")
    refused = machine.cut("1g.5gb", allow_reset=allow_reset)
    assert refused["error"] == "ChangePending"
    assert (refused["reset_required"], refused["reboot_required"]) == (False, True)
    assert "reboot the machine, and run again" in refused.message
    assert machine.mode() == (False, False)


def test_a_virtual_machine_that_learns_of_it_only_by_the_reset(new_mig_machine: Start) -> None:
    machine = new_mig_machine("a100-vm")
    content = yaml.safe_load((MOCK_DRIVER / "machines" / "a100-vm.yaml").read_text())
    content["gpus"][0]["mig_activation"] = "RESET_REQUIRED"
    path = machine.folder / "bin" / "machine.yaml"
    path.write_text(json.dumps(content))
    machine.mock_driver("down")
    machine.mock_driver("up", str(path))
    assert machine.cut("1g.5gb")["reset_required"]
    refused = machine.cut("1g.5gb", allow_reset=True)
    assert (refused["error"], refused["reset_required"], refused["reboot_required"]) == ("ChangePending", False, True)
    assert machine.mode() == (False, False)


@pytest.mark.parametrize(("name", "profile"), [("a100-40gb-x2", "7g.40gb"), ("h100-sxm", "7g.80gb")])
def test_a_card_in_use(either_way: Start, name: str, profile: str) -> None:
    machine = either_way(name)
    pid = machine.job(0)
    with machine.untouched():
        refused = machine.cut(profile)
    assert refused["error"] == "InUse"
    assert f"is in use by {pid} (sleep)" in refused.message
    assert refused["holders"] == [{"pid": pid, "name": "sleep", "service": None}]


def test_a_card_of_which_only_the_driver_knows_that_it_is_in_use(either_way: Start) -> None:
    machine = either_way(NEEDS_RESET)
    pending_with(machine, "IN_USE")
    refused = machine.cut("1g.5gb", allow_reset=True)
    assert refused["error"] == "InUse"
    assert "somebody who does not show" in refused.message
    assert (machine.mode(), machine.resets()) == ((False, False), 0)


def test_a_mode_that_somebody_left_pending(either_way: Start) -> None:
    machine = either_way(NEEDS_RESET)
    machine.nvml("nvmlDeviceSetMigMode(card, 1)")
    assert machine.mode() == (False, True)
    assert machine.mig({"gpus": [0]})["reset_required"]
    assert machine.mode() == (False, True), "as it was before"
    assert machine.mig({"gpus": [0], "enabled": False}).changed
    assert machine.mode() == (False, False)


@pytest.mark.parametrize("by", ["nvidia_mps", "nvidia_compute_mode", "hand"])
def test_a_card_that_is_shared(mig_machine: MigMachine, by: str) -> None:
    if by == "nvidia_mps":
        mig_machine.mps(mig_machine.daemon(compute_mode="unchanged"))
    elif by == "hand":
        mig_machine.serve(None)
    else:
        mig_machine.compute_mode("exclusive_process", gpus=[0])
    with mig_machine.untouched():
        refused = mig_machine.cut("1g.5gb")
    if by == "nvidia_compute_mode":
        assert refused["error"] == "DoesNotFit"
        assert f"{LABELS[0]} is in compute mode exclusive_process; end its sharing with nvidia_mps" in refused.message
    else:
        assert refused["error"] == "InUse"
        assert f"{LABELS[0]} is served by the MPS control daemon" in refused.message
    assert mig_machine.cut("1g.5gb", gpu=1).failed == (by == "hand")


def test_a_daemon_that_names_the_card_by_its_index(mig_machine: MigMachine) -> None:
    mig_machine.serve("1")
    assert mig_machine.cut("1g.5gb").changed
    assert mig_machine.cut("1g.5gb", gpu=UUIDS[1])["error"] == "InUse"


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("NO_PERMISSION", "PermissionMissing"),
        ("NOT_SUPPORTED", "NotSupported"),
        ("IN_USE", "InUse"),
        ("LIE", "NotReadBack"),
    ],
)
def test_a_driver_that_refuses_or_lies(either_way: Start, code: str, kind: str) -> None:
    machine = either_way("a100-40gb-x2")
    machine.mock_driver("fault", MODE, code)
    refused = machine.mig({"gpus": [0]})
    assert refused["error"] == kind
    assert LABELS[0] in refused.message
    assert machine.mode() == (False, False)
