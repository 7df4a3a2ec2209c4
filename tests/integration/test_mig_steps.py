# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The twelve steps of nvidia_mig, on Ampere and Hopper, by NVML and by NVIDIA's nvidia-smi."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harness import snapshot
from harness.mig import MigMachine
from harness.steps import VERBS, Twelve, by_ansible, follow, one_by_one

# Small, medium and large profile of each machine.
PROFILES = {
    "a100-40gb-x2": ("1g.5gb", "2g.10gb", "3g.20gb"),
    "h100-sxm": ("1g.10gb", "2g.20gb", "3g.40gb"),
    "h100-pcie": ("1g.10gb", "2g.20gb", "3g.40gb"),
}

SLOTS = {
    "a100": (
        "GPU 0  |1g.5gb|1g.5gb|  .   |  .   |          3g.20gb          |",
        "GPU 0  |1g.5gb|  .   |   2g.10gb   |          3g.20gb          |",
    ),
    "h100": (
        "GPU 0  |1g.10gb|1g.10gb|   .   |   .   |            3g.40gb            |",
        "GPU 0  |1g.10gb|   .   |    2g.20gb    |            3g.40gb            |",
    ),
}


def wishes(machine: MigMachine, name: str) -> dict[str, dict[str, Any]]:
    small, medium, large = PROFILES[name]
    layouts: dict[str, dict[str, Any]] = {
        "create": {"gpus": [0], "instances": [{"profile": small, "count": 2}, {"profile": large, "start": 4}]},
        "change": {"gpus": [0], "instances": [{"profile": small}, {"profile": medium}, {"profile": large}]},
        "delete": {"gpus": [0], "enabled": False},
    }
    return {verb: {"layouts": [layouts[verb]], "purge": True, "backend": machine.backend} for verb in VERBS}


@pytest.mark.parametrize(
    ("name", "twelve", "program"),
    [
        ("a100-40gb-x2", by_ansible, "nvml"),
        ("a100-40gb-x2", one_by_one, "nvidia-smi-535"),
        ("h100-sxm", one_by_one, "nvml"),
        ("h100-pcie", one_by_one, "nvidia-smi-535"),
    ],
)
def test_create_change_delete(
    new_mig_machine: Callable[[str], MigMachine], name: str, twelve: Twelve, program: str
) -> None:
    machine = new_mig_machine(name)
    machine.speak(program)
    before = snapshot.take(machine.folder)
    steps = twelve(machine, "nvidia_mig", wishes(machine, name))
    # nvidia-smi tells what a card offers only once its MIG mode is on.
    foretold = VERBS if program == "nvml" else VERBS[1:]
    texts = follow(steps, before, {"create": 1 + 3 + 3, "change": 2 + 2, "delete": 1 + 3 + 3}, foretold)

    created, changed, deleted = (steps[verb, "do"].result for verb in VERBS)
    card = created["gpus"][0]
    label = f"GPU 0 ({card['name']}, {card['uuid']}, {card['pci_bus_id']}): MIG mode"
    cut, other = SLOTS[name.partition("-")[0]]
    pictures = [
        f"{label} disabled\n",
        f"{label} enabled\n{cut}\n",
        f"{label} enabled\n{other}\n",
        f"{label} disabled\n",
    ]
    done = [(result["diff"]["before"], result["diff"]["after"]) for result in (created, changed, deleted)]
    assert done == list(zip(pictures, pictures[1:]))
    assert texts["change"] == {"before": pictures[1], "after": pictures[2]}
    assert (machine.mode(), machine.places()) == ((False, False), [])


def test_steps_are_told_in_order(mig_machine: MigMachine) -> None:
    mig_machine.cut({"profile": "1g.5gb", "start": 6}, {"profile": "3g.20gb", "start": 0})
    result = mig_machine.cut("1g.5gb", "2g.10gb", "4g.20gb", purge=True, check=True)
    assert [step.partition(" of GPU")[0] for step in result["steps"]] == [
        "destroy compute instance 0, 3g.20gb in 3g.20gb at 0:4",
        f"destroy GPU instance {result['gpus'][0]['before']['instances'][0]['gi_id']}, 3g.20gb at 0:4",
        "create GPU instance 4g.20gb at 0:4",
        "create compute instance 4g.20gb in 4g.20gb at 0:4",
        "create GPU instance 2g.10gb at 4:2",
        "create compute instance 2g.10gb in 2g.10gb at 4:2",
    ]
    cut = [{"profile": "1g.5gb"}, {"profile": "2g.10gb"}, {"profile": "4g.20gb"}]
    both = [{"gpus": [0], "instances": cut}, {"gpus": [1], "instances": [{"profile": "7g.40gb"}]}]
    foretold = mig_machine.mig(*both, purge=True, check=True)
    mig_machine.mock_driver("trace", "on")
    assert mig_machine.mig(*both, purge=True)["steps"] == foretold["steps"]
    assert foretold["steps"][0] == "enable MIG mode of GPU 1", "modes come first"
    assert len(mig_machine.changes()) == len(foretold["steps"])


def test_a_reset_is_a_step(new_mig_machine: Callable[[str], MigMachine]) -> None:
    machine = new_mig_machine("a100-reset-needed")
    steps = machine.cut("7g.40gb", allow_reset=True)["steps"]
    assert steps[:2] == ["enable MIG mode of GPU 0", "reset GPU 0"]
    assert len(steps) == 4


def test_by_the_stand_in(mig_machine: MigMachine) -> None:
    mig_machine.speak("stand-in")
    assert mig_machine.cut("3g.20gb").changed
    assert not mig_machine.cut("3g.20gb").changed
    assert [one.profile for one in mig_machine.instances()] == ["3g.20gb"]
