# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""nvidia_mig on cards of every kind, and on many cards of one host."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.gpuops.sharing.plugins.filter.from_mig_parted import from_mig_parted
from ansible_collections.gpuops.sharing.plugins.filter.mig_capacity import mig_capacity
from ansible_collections.gpuops.sharing.plugins.filter.to_mig_parted import to_mig_parted

from harness.mig import MigMachine
from harness.modules import MOCK_DRIVER

Start = Callable[[str], MigMachine]
EIGHT = "dgx-a100"
# The smallest profile of each machine's first card, how many a card takes, and their starts.
SMALLEST = {
    "a30": ("1g.6gb", [0, 1, 2, 3]),
    "a100-40gb": ("1g.5gb", [0, 1, 2, 3, 4, 5, 6]),
    "a100-80gb-x2": ("1g.10gb", [0, 1, 2, 3, 4, 5, 6]),
    "h100-sxm": ("1g.10gb", [0, 1, 2, 3, 4, 5, 6]),
    "h100-pcie": ("1g.10gb", [0, 1, 2, 3, 4, 5, 6]),
    "h100-nvl": ("1g.12gb", [0, 1, 2, 3, 4, 5, 6]),
    "h200": ("1g.18gb", [0, 1, 2, 3, 4, 5, 6]),
    "b200": ("1g.23gb", [0, 1, 2, 3, 4, 5, 6]),
    "rtx-pro-6000": ("1g.24gb", [0, 3, 6, 9]),
}


@pytest.mark.parametrize("name", list(SMALLEST))
def test_cards_of_every_kind(new_mig_machine: Start, name: str) -> None:
    machine = new_mig_machine(name)
    profile, starts = SMALLEST[name]
    wish = {"profile": profile, "count": len(starts)}
    result = machine.cut(wish)
    assert result.changed, result
    assert machine.places() == [f"{profile}@{start}" for start in starts]
    assert not machine.cut(wish).changed


@pytest.mark.parametrize(
    ("name", "ids"),
    [("h100-sxm", [7, 8, 9, 10, 11, 12, 13]), ("h100-pcie", [11, 12, 13, 14, 7, 8, 9])],
)
def test_ids_are_read_whatever_their_order(either_way: Start, name: str, ids: list[int]) -> None:
    """As published listings show them: H100 PCIe numbers the halves of the card the other way."""
    machine = either_way(name)
    result = machine.cut({"profile": "1g.10gb", "count": 7})
    told = [
        (one["gi_id"], one["placement"]["start"], one["compute_instances"][0]["uuid"])
        for one in result["gpus"][0]["after"]["instances"]
    ]
    assert told == [(one.id, one.start, one.parts[0].uuid) for one in machine.instances()]
    assert [number for number, _start, _uuid in told] == ids
    last = machine.instances()[-1]
    assert machine.cut(purge=True, protect=[f"0/{last.id}"])["error"] == "InUse"
    assert machine.cut({"profile": "1g.10gb", "start": 6}, purge=True).changed
    assert machine.instances() == [last]


def test_one_of_eight_cards_while_jobs_run_on_the_others(new_mig_machine: Start) -> None:
    machine = new_mig_machine(EIGHT)
    machine.cut("3g.20gb", gpu=0)
    (there,) = machine.instances(0)
    machine.job(0, there)
    for gpu in (1, 2, 4, 5, 6, 7):
        machine.job(gpu)
    machine.mock_driver("trace", "on")
    assert machine.cut("3g.20gb", "3g.20gb", gpu=3).changed
    changed = [line for line in machine.changes() if not line.startswith("GPU 3")]
    assert changed == []
    assert len(machine.changes()) == 1 + 2 + 2
    assert machine.instances(0) == [there]


def test_eight_cards_from_off_to_fifty_six_instances(new_mig_machine: Start) -> None:
    machine = new_mig_machine(EIGHT)
    wish = {"gpus": ["all"], "instances": [{"profile": "1g.5gb", "count": 7}]}
    assert machine.mig(wish).changed
    assert machine.setter_calls() == {
        "nvmlDeviceSetMigMode": 8,
        "nvmlDeviceCreateGpuInstanceWithPlacement": 56,
        "nvmlGpuInstanceCreateComputeInstance": 56,
    }
    assert sum(len(machine.instances(gpu)) for gpu in range(8)) == 56
    with machine.untouched():
        assert not machine.mig(wish).changed
        assert not machine.mig(wish, purge=True).changed


def test_a_host_of_several_layouts(either_way: Start) -> None:
    machine = either_way("mixed")
    layouts: list[dict[str, Any]] = [
        {"gpus": [2], "instances": [{"profile": "2g.12gb", "count": 2}]},
        {"gpus": ["0"], "instances": [{"profile": "4g.20gb"}, {"profile": "3g.20gb"}]},
        {"gpus": [1], "enabled": False},
    ]
    result = machine.mig(*layouts)
    assert [card["index"] for card in result["gpus"]] == [0, 1, 2]
    assert [machine.places(gpu) for gpu in range(3)] == [["4g.20gb@0", "3g.20gb@4"], [], ["2g.12gb@0", "2g.12gb@2"]]
    assert not machine.mig(*layouts).changed


def test_every_value_a_string(either_way: Start) -> None:
    machine = either_way("a100-40gb-x2")
    strings: list[dict[str, Any]] = [
        {
            "gpus": "0",
            "enabled": "true",
            "instances": [
                {"profile": "MIG 1G.5GB", "count": "2"},
                {"profile": "3g.20gb", "start": "4", "count": "1", "compute_instances": "1c.3g.20gb,2c.3g.20gb"},
            ],
        },
        {"gpus": "1", "enabled": "no"},
    ]
    result = machine.mig(*strings, purge="false", allow_reset="no", protect="", timeout="20")
    assert result.changed, result
    assert machine.places() == ["1g.5gb@0", "1g.5gb@1", "3g.20gb(2c.3g.20gb,1c.3g.20gb)@4"]
    typed: list[dict[str, Any]] = [
        {
            "gpus": [0],
            "instances": [
                {"profile": "1g.5gb", "count": 2},
                {"profile": "3g.20gb", "start": 4, "compute_instances": ["2c.3g.20gb", "1c.3g.20gb"]},
            ],
        },
        {"gpus": [1], "enabled": False},
    ]
    with machine.untouched():
        assert not machine.mig(*typed, purge=True).changed


@pytest.mark.parametrize("name", ["a100-40gb-x2", "h100-pcie"])
def test_layouts_bring_back_the_same_instances_after_a_reboot(new_mig_machine: Start, name: str) -> None:
    machine = new_mig_machine(name)
    large, small = {"a": ("3g.20gb", "1g.5gb"), "h": ("3g.40gb", "1g.10gb")}[name[0]]
    parts = {"profile": large, "compute_instances": [f"1c.{large}", f"2c.{large}"]}
    foretold = machine.cut(parts, small, check=True)
    result = machine.cut(parts, small)
    told = json.dumps(result["layouts"])
    # Where a compute instance goes can be asked only when its GPU instance is there.
    assert re.sub(r'(c\.[^":]+):\d', r"\1", told) == json.dumps(foretold["layouts"])
    before = machine.instances()
    machine.mock_driver("reboot")
    assert machine.instances() == []
    assert machine.mig(*result["layouts"]).changed
    assert machine.instances() == before
    with machine.untouched():
        assert not machine.mig(*result["layouts"], purge=True).changed


def test_the_result_is_what_the_filter_reads(either_way: Start) -> None:
    machine = either_way("a100-40gb-x2")
    (card,) = machine.cut({"profile": "3g.20gb", "start": 0})["gpus"]
    assert mig_capacity(card, "2g.10gb") == 3
    assert mig_capacity(card, free=True) == {
        "1g.5gb": 3,
        "1g.5gb+me": 1,
        "1g.10gb": 2,
        "2g.10gb": 1,
        "3g.20gb": 1,
        "4g.20gb": 0,
        "7g.40gb": 0,
    }


def test_a_card_of_which_only_the_mode_was_asked_tells_no_profiles(mig_machine: MigMachine) -> None:
    (card,) = mig_machine.mig({"gpus": [1], "enabled": True})["gpus"]
    with pytest.raises(AnsibleFilterError, match="only if its layout gives instances"):
        mig_capacity(card)
    (card,) = mig_machine.mig({"gpus": [1], "instances": []})["gpus"]
    assert mig_capacity(card, "7g.40gb") == 1


def test_a_configuration_of_mig_parted(mig_machine: MigMachine) -> None:
    entries = [
        {"devices": [0], "mig-enabled": False},
        {"devices": [1], "mig-enabled": True, "mig-devices": {"1g.5gb": 2, "1c.3g.20gb": 3}},
    ]
    layouts = from_mig_parted({"version": "v1", "mig-configs": {"mine": entries}}, "mine")
    result = mig_machine.mig(*layouts, purge=True)
    assert result.changed
    # What the task returns is by UUID and with every place, and says the same.
    back = to_mig_parted(result["layouts"], "mine", gpus=result["gpus"], drop_starts=True)
    assert back["mig-configs"]["mine"] == entries
    assert mig_machine.places(0) == []
    assert sorted(place.partition("@")[0] for place in mig_machine.places(1)) == [
        "1g.5gb",
        "1g.5gb",
        "3g.20gb(1c.3g.20gb,1c.3g.20gb,1c.3g.20gb)",
    ]
    assert not mig_machine.mig(*layouts, purge=True).changed


def test_check_mode_needs_no_lock_and_leaves_nothing(mig_machine: MigMachine) -> None:
    with mig_machine.untouched():
        foretold = mig_machine.cut({"profile": "1g.5gb", "count": 7}, check=True)
    assert foretold.changed
    assert not mig_machine.var.exists()
    card = foretold["gpus"][0]
    assert card["after"] == card["before"]
    assert len(foretold["steps"]) == 1 + 7 + 7


def test_machines_are_all_tried() -> None:
    """A new machine with cards that can be cut belongs into the table above."""
    cut = {path.stem for path in (MOCK_DRIVER / "machines").glob("*.yaml") if "model: t4" not in path.read_text()}
    others = {"a100-40gb-x2", "a100-reset-needed", "a100-vm", EIGHT, "hgx-a100", "mismatch", "no-driver", "no-gpu"}
    assert cut - others == set(SMALLEST)
