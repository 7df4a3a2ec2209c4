# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What nvidia_mig keeps, adds, removes and refuses, on cards that hold instances already."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harness.machine import LABELS, UUIDS
from harness.mig import Instance, MigMachine

Start = Callable[[str], MigMachine]
A100 = "a100-40gb-x2"
SEVEN = {"profile": "1g.5gb", "count": 7}


def name(instance: Instance, size: int) -> str:
    """How messages name a GPU instance."""
    return f"GPU instance {instance.id} ({instance.profile} at {instance.start}:{size})"


def test_one_more_beside_a_busy_one(either_way: Start) -> None:
    machine = either_way(A100)
    machine.cut("2g.10gb")
    (busy,) = machine.instances()
    machine.job(0, busy)
    calls = machine.setter_calls()
    result = machine.cut("2g.10gb", "3g.20gb", "1g.5gb")
    assert result.changed, result
    assert busy in machine.instances()
    assert sorted(one.profile for one in machine.instances()) == ["1g.5gb", "2g.10gb", "3g.20gb"]
    assert machine.setter_calls() == {
        **calls,
        "nvmlDeviceCreateGpuInstanceWithPlacement": 3,
        "nvmlGpuInstanceCreateComputeInstance": 3,
    }


def test_what_is_there_counts_and_stays(either_way: Start) -> None:
    machine = either_way(A100)
    machine.cut({"profile": "1g.5gb", "start": 5}, "2g.10gb")
    there = machine.instances()
    with machine.untouched():
        assert not machine.cut("1g.5gb").changed
        assert not machine.cut("2g.10gb", "1g.5gb", purge=True).changed
        assert not machine.mig({"gpus": [0]}, purge=True).changed, "instances left out: only the mode is asked for"
    assert machine.cut({"profile": "1g.5gb", "count": 3}).changed
    assert set(there) < set(machine.instances())


def test_shrink(either_way: Start) -> None:
    machine = either_way(A100)
    machine.cut(SEVEN)
    busy = machine.instances()[2]
    machine.job(0, busy)
    calls = sum(machine.setter_calls().values())
    assert machine.cut({"profile": "1g.5gb", "count": 3}, purge=True).changed
    assert len(machine.instances()) == 3
    assert busy in machine.instances()
    assert sum(machine.setter_calls().values()) == calls + 4 * 2


def test_without_purge_what_is_in_the_way_is_named(either_way: Start) -> None:
    machine = either_way(A100)
    machine.cut(SEVEN)
    with machine.untouched():
        refused = machine.cut("3g.20gb")
    assert refused["error"] == "DoesNotFit"
    assert LABELS[0] in refused.message
    assert "purge: true would remove" in refused.message
    for instance in machine.instances():
        assert name(instance, 1) in refused.message
    assert [entry["id"] for entry in refused["would_remove"]] == [one.id for one in machine.instances()]
    assert "|1g.5gb|1g.5gb|1g.5gb|1g.5gb|1g.5gb|1g.5gb|1g.5gb|" in refused.message
    assert machine.cut("3g.20gb", purge=True).changed
    assert [one.profile for one in machine.instances()] == ["3g.20gb"]


def test_an_empty_list_empties_the_card_only_with_purge(mig_machine: MigMachine) -> None:
    mig_machine.cut("3g.20gb", "3g.20gb")
    with mig_machine.untouched():
        assert not mig_machine.cut().changed
    assert mig_machine.cut(purge=True).changed
    assert (mig_machine.mode(), mig_machine.places()) == ((True, True), [])


def test_disable(either_way: Start) -> None:
    machine = either_way(A100)
    machine.cut("3g.20gb", "1g.5gb")
    with machine.untouched():
        refused = machine.mig({"gpus": [0], "enabled": False})
    assert refused["error"] == "DoesNotFit"
    small, large = machine.instances()
    assert f"purge: true would remove {name(small, 1)}, {name(large, 4)}" in refused.message
    assert machine.mig({"gpus": [0], "enabled": False}, purge=True).changed
    assert (machine.mode(), machine.places()) == ((False, False), [])


@pytest.mark.parametrize("wish", [{"instances": []}, {"enabled": False}, {"instances": [{"profile": "7g.40gb"}]}])
def test_a_busy_one_never_goes(either_way: Start, wish: dict[str, Any]) -> None:
    machine = either_way(A100)
    machine.cut("1g.5gb", "2g.10gb")
    busy = machine.instances()[0]
    pid = machine.job(0, busy)
    with machine.untouched():
        refused = machine.mig({"gpus": [0], **wish}, purge=True)
    assert refused["error"] in ("InUse", "DoesNotFit")
    assert f"{pid} (sleep)" in refused.message


@pytest.mark.parametrize("spelling", ["uuid", "index", "gpu"])
def test_protect(mig_machine: MigMachine, spelling: str) -> None:
    mig_machine.cut("1g.5gb", "2g.10gb", "3g.20gb")
    (kept,) = (one for one in mig_machine.instances() if one.profile == "2g.10gb")
    names = {"uuid": kept.parts[0].uuid, "index": f"0/{kept.id}", "gpu": f"{UUIDS[0]}/{kept.id}"}
    with mig_machine.untouched():
        refused = mig_machine.cut(purge=True, protect=[names[spelling]])
    assert refused["error"] == "InUse"
    assert f"GPU instance {kept.id} ({kept.profile} at {kept.start}:2): protected by this task" in refused.message
    assert "* must stay" in refused.message
    assert mig_machine.cut(kept.profile, purge=True, protect=names[spelling]).changed
    assert mig_machine.instances() == [kept]


@pytest.mark.parametrize("unknown", ["0/9", "MIG-93eed348-de85-5e04-a2e6-000000000000", "0000:07:00.0/9"])
def test_protect_what_is_not_there(mig_machine: MigMachine, unknown: str) -> None:
    mig_machine.cut("1g.5gb")
    with mig_machine.untouched():
        refused = mig_machine.cut(purge=True, protect=[unknown])
    assert f"protect: {unknown}: there is no such MIG device or GPU instance" in refused.message


def test_protect_on_a_card_of_no_layout(mig_machine: MigMachine) -> None:
    assert mig_machine.cut("1g.5gb", protect=["1/7", f"{UUIDS[1]}/7", ""]).changed


def test_an_instance_with_a_daemon_stays(mig_machine: MigMachine) -> None:
    mig_machine.cut("1g.5gb", "2g.10gb")
    (served,) = (one for one in mig_machine.instances() if one.profile == "2g.10gb")
    mig_machine.serve(served.parts[0].uuid)
    with mig_machine.untouched():
        refused = mig_machine.cut("1g.5gb", purge=True)
    assert "served by the MPS control daemon" in refused.message
    assert mig_machine.cut("2g.10gb", purge=True).changed
    assert mig_machine.instances() == [served]


def test_a_gpu_instance_without_compute_instance_is_repaired(either_way: Start) -> None:
    machine = either_way(A100)
    machine.cut({"profile": "1g.5gb", "start": 0})
    machine.nvml(
        "place = c_nvmlGpuInstancePlacement_t(4, 4)\nnvmlDeviceCreateGpuInstanceWithPlacement(card, 9, byref(place))"
    )
    assert machine.places() == ["1g.5gb@0", "3g.20gb()@4"]
    calls = sum(machine.setter_calls().values())
    result = machine.cut("1g.5gb", "3g.20gb")
    assert result.changed
    assert machine.places() == ["1g.5gb@0", "3g.20gb@4"]
    assert sum(machine.setter_calls().values()) == calls + 1
    assert result["steps"] == ["create compute instance 3g.20gb in 3g.20gb at 4:4 of GPU 0"]
    assert "3g.20gb(none)" in result["diff"]["before"]
    with machine.untouched():
        assert not machine.cut("1g.5gb", "3g.20gb").changed


def test_other_compute_instances(either_way: Start) -> None:
    machine = either_way(A100)
    machine.cut("3g.20gb")
    halves = {"profile": "3g.20gb", "compute_instances": ["1c.3g.20gb", "2c.3g.20gb"]}
    with machine.untouched():
        assert "purge: true would remove" in machine.cut(halves).message
    assert machine.cut(halves, purge=True).changed
    assert machine.places() == ["3g.20gb(2c.3g.20gb,1c.3g.20gb)@4"]
    with machine.untouched():
        assert not machine.cut(halves, purge=True).changed
        assert not machine.cut("3g.20gb", purge=True).changed, "any compute instance will do"


def test_a_busy_compute_instance_stays(mig_machine: MigMachine) -> None:
    mig_machine.cut({"profile": "3g.20gb", "compute_instances": ["1c.3g.20gb", "1c.3g.20gb"]})
    (instance,) = mig_machine.instances()
    mig_machine.job(0, instance, 1)
    with mig_machine.untouched():
        refused = mig_machine.cut({"profile": "3g.20gb", "compute_instances": ["3g.20gb"]}, purge=True)
    assert "(sleep)" in refused.message
    third = ["1c.3g.20gb"] * 3
    assert mig_machine.cut({"profile": "3g.20gb", "compute_instances": third}).changed
    assert mig_machine.instances()[0].parts[:2] == instance.parts


@pytest.mark.parametrize("on", [False, True])
def test_an_unknown_profile(either_way: Start, on: bool) -> None:
    machine = either_way(A100)
    machine.mig({"gpus": [0], "enabled": on})
    refused = machine.cut("1g.5gb", "1g.10g")
    assert (machine.mode(), machine.places()) == ((on, on), [])
    assert refused.message.startswith(f"layouts[0].instances[1].profile: '1g.10g': {LABELS[0]} offers no such profile")
    offered = "1g.5gb, 2g.10gb, 3g.20gb, 4g.20gb, 7g.40gb, 1g.5gb+me, 1g.10gb"
    assert "did you mean 1g.10gb?" in refused.message
    assert all(profile in refused.message for profile in offered.split(", "))


def test_a_layout_that_is_too_large(either_way: Start) -> None:
    machine = either_way(A100)
    refused = machine.cut("4g.20gb", "4g.20gb")
    assert refused["error"] == "DoesNotFit"
    assert "the card takes at most 1 of 4g.20gb" in refused.message
    assert machine.mode() == (False, False)


def test_media_extensions_are_a_part_of_the_name(mig_machine: MigMachine) -> None:
    assert mig_machine.cut("1g.5gb+me", "1g.5gb").changed
    assert sorted(one.profile for one in mig_machine.instances()) == ["1g.5gb", "1g.5gb+me"]
    with mig_machine.untouched():
        assert "at most 1 of 1g.5gb+me" in mig_machine.cut({"profile": "1g.5gb+me", "count": 2}).message


def test_a_card_in_two_layouts(mig_machine: MigMachine) -> None:
    with mig_machine.untouched():
        refused = mig_machine.mig({"gpus": ["all"]}, {"gpus": [UUIDS[1]], "enabled": False})
    assert refused["error"] == "BadOption"
    assert f"layouts[1].gpus: '{UUIDS[1]}': {LABELS[1]} already stands in layouts[0]" in refused.message


def test_a_card_without_mig(new_mig_machine: Start) -> None:
    machine = new_mig_machine("mixed")
    with machine.untouched():
        refused = machine.mig({"gpus": [0, 1]})
        assert refused["error"] == "DoesNotFit"
        assert "GPU 1 (Tesla T4" in refused.message and "has no MIG mode; leave it out" in refused.message
        for off in ({"enabled": False}, {"enabled": False, "instances": []}):
            assert not machine.mig({"gpus": ["all"], **off}, purge=True).changed
    result = machine.mig({"gpus": ["all"]})
    assert [card["index"] for card in result["gpus"]] == [0, 2]
    assert "GPU 1 (Tesla T4" in result.warnings and "was left out: it has no MIG mode" in result.warnings


def test_whole_cards_with_an_empty_list(either_way: Start) -> None:
    machine = either_way(A100)
    whole: dict[str, Any] = {"gpus": [0], "enabled": False, "instances": []}
    with machine.untouched():
        assert not machine.mig(whole).changed
    machine.cut("1g.5gb")
    assert machine.mig(whole, purge=True).changed
    assert (machine.mode(), machine.places()) == ((False, False), [])


@pytest.mark.parametrize("spelling", [UUIDS[0].upper().replace("GPU", "gpu"), "0000:07:00.0", "00", " 0 "])
def test_protect_in_every_spelling_of_the_card(mig_machine: MigMachine, spelling: str) -> None:
    mig_machine.cut("1g.5gb", "2g.10gb")
    (kept,) = (one for one in mig_machine.instances() if one.profile == "1g.5gb")
    with mig_machine.untouched():
        refused = mig_machine.cut("2g.10gb", purge=True, protect=[f"{spelling}/{kept.id}"])
        assert "protected by this task" in refused.message
        refused = mig_machine.cut("2g.10gb", purge=True, protect=[f"{UUIDS[0][:12]}/{kept.id}"])
        assert refused["error"] == "BadOption" and "there is no GPU" in refused.message
        assert mig_machine.cut("2g.10gb", purge=True, protect=[kept.parts[0].uuid.upper()]).failed


@pytest.mark.parametrize("names", ["short", "old"])
def test_an_instance_whose_daemon_names_it_otherwise_stays(mig_machine: MigMachine, names: str) -> None:
    mig_machine.cut("1g.5gb", "2g.10gb")
    (served,) = (one for one in mig_machine.instances() if one.profile == "2g.10gb")
    mig_machine.serve(served.parts[0].uuid[:12] if names == "short" else f"MIG-{UUIDS[0]}/{served.id}/0")
    with mig_machine.untouched():
        assert "served by the MPS control daemon" in mig_machine.cut("1g.5gb", purge=True).message


def test_a_mode_that_cannot_be_read_is_no_mode(mig_machine: MigMachine) -> None:
    mig_machine.cut("1g.5gb")
    mig_machine.mock_driver("fault", "nvmlDeviceGetMigMode", "UNKNOWN")
    with mig_machine.untouched():
        for enabled in (True, False):
            failed = mig_machine.mig({"gpus": [0], "enabled": enabled}, purge=True)
            assert f"the driver cannot tell the MIG mode of {LABELS[0]}" in failed.message


GAP = [
    "place = c_nvmlGpuInstancePlacement_t(4, 4)",
    "instance = nvmlDeviceCreateGpuInstanceWithPlacement(card, 9, byref(place))",
    "part = c_nvmlComputeInstancePlacement_t(1, 1)",
    "nvmlGpuInstanceCreateComputeInstanceWithPlacement(instance, 0, byref(part))",
]


def test_compute_instances_keep_their_places(either_way: Start) -> None:
    """One lies in the middle: the larger one needs its slice, and what is written down brings it back there."""
    machine = either_way(A100)
    machine.mig({"gpus": [0]})
    machine.nvml("\n".join(GAP))
    (before,) = machine.instances()
    both = {"profile": "3g.20gb", "compute_instances": ["1c.3g.20gb", "2c.3g.20gb"]}
    with machine.untouched():
        assert "other compute instances than the wished ones are in the way" in machine.cut(both).message
        same = machine.cut("3g.20gb")
    assert same["layouts"][0]["instances"][0]["compute_instances"] == ["1c.3g.20gb:1"]
    machine.mock_driver("reboot")
    machine.mig(*same["layouts"])
    assert machine.instances() == [before], "with the same UUID"
    grown = machine.cut({"profile": "3g.20gb", "compute_instances": "1c.3g.20gb:1,1c.3g.20gb"})
    assert [part.start for part in machine.instances()[0].parts] == [1, 0]
    machine.mock_driver("reboot")
    now = machine.mig(*grown["layouts"])
    assert now.changed and sorted(part.start for part in machine.instances()[0].parts) == [0, 1]
    assert machine.cut(both, purge=True).changed
    parts = machine.instances()[0].parts
    assert sorted((part.start, part.profile) for part in parts) == [(0, "2c.3g.20gb"), (2, "1c.3g.20gb")]
