# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Compute instances: made, repaired, added, changed only with purge, and never in what must stay."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.gpuops.sharing.plugins.module_utils._errors import BadOption, DoesNotFit
from ansible_collections.gpuops.sharing.plugins.module_utils._instance import ComputeProfile
from ansible_collections.gpuops.sharing.plugins.module_utils._mig import compute, planner
from ansible_collections.gpuops.sharing.plugins.module_utils._mig.layout import InstanceWish
from ansible_collections.gpuops.sharing.plugins.module_utils._mig.planner import Plan
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils._mig import machines
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils._mig.planning import (
    A100,
    BUSY,
    Wish,
    a100,
    message,
    plan,
    wanted,
)


def repairs(result: Plan) -> list[tuple[int, list[str], list[str]]]:
    assert not result.destroy and not result.create
    return [
        (one.instance.id, [part.profile for part in one.destroy], [compute.show(share) for share in one.create])
        for one in result.repair
    ]


def shared(*names: str, profile: str = "3g.20gb", **more: t.Any) -> dict[str, t.Any]:
    return {"profile": profile, "compute_instances": list(names), **more}


def test_a_new_instance_gets_the_one_that_fills_it_or_those_wished_largest_first() -> None:
    result = plan([shared("1c.3g.20gb", "MIG 2C.3g.20gb"), "4g.20gb"])
    made = [[compute.show(share) for share in one.compute] for one in result.create]
    assert made == [["4g.20gb"], ["2c.3g.20gb", "1c.3g.20gb"]]


def test_a_wished_instance_without_any_is_repaired() -> None:
    there = [a100("3g.20gb@4", 1, []), a100("1g.5gb@0", 7, [])]
    assert repairs(plan(["3g.20gb"], *there)) == [(1, [], ["3g.20gb"])]


def test_of_several_the_sound_ones_count_first() -> None:
    there = [a100("1g.5gb@0", 7, []), a100("1g.5gb@1", 8), a100("1g.5gb@2", 9, [])]
    assert plan(["1g.5gb"], *there).empty


def test_any_compute_instances_will_do_where_none_are_wished() -> None:
    assert plan(["3g.20gb"], a100("3g.20gb@4", 1, ["1c.3g.20gb"]), purge=True).empty


def test_additions_need_no_purge() -> None:
    there = a100("3g.20gb@4", 1, ["1c.3g.20gb"])
    wish = shared("1c.3g.20gb", "1c.3g.20gb")
    assert repairs(plan([wish], there)) == [(1, [], ["1c.3g.20gb:1"])]
    assert repairs(plan([wish], there, protected={1: "busy"})) == [(1, [], ["1c.3g.20gb:1"])]


def test_an_addition_that_finds_no_place_beside_what_is_there() -> None:
    # Two slices are free, but 2c.3g.20gb can start at 0 only.
    there = a100("3g.20gb@4", 1, ["1c.3g.20gb:0"])
    wish = shared("2c.3g.20gb", "1c.3g.20gb")
    assert "compute instances than the wished ones are in the way" in message(DoesNotFit, [wish], there)
    assert repairs(plan([wish], there, purge=True)) == [(1, ["1c.3g.20gb"], ["2c.3g.20gb:0", "1c.3g.20gb:2"])]
    beside = a100("3g.20gb@4", 1, ["1c.3g.20gb:2"])
    assert repairs(plan([wish], beside)) == [(1, [], ["2c.3g.20gb:0"])]


def test_no_more_is_destroyed_than_has_to_be() -> None:
    there = a100("4g.20gb@0", 1, ["2c.4g.20gb:0", "1c.4g.20gb:2", "1c.4g.20gb:3"])
    wish = shared("2c.4g.20gb", "2c.4g.20gb", profile="4g.20gb")
    assert repairs(plan([wish], there, purge=True)) == [(1, ["1c.4g.20gb", "1c.4g.20gb"], ["2c.4g.20gb:2"])]


def test_a_start_that_is_wished() -> None:
    there = a100("3g.20gb@4", 1, ["1c.3g.20gb:0"])
    assert plan([shared("1c.3g.20gb:0")], there, purge=True).empty
    assert repairs(plan([shared("1c.3g.20gb:2")], there)) == [(1, [], ["1c.3g.20gb:2"])]
    assert repairs(plan([shared("1c.3g.20gb:2")], there, purge=True)) == [(1, ["1c.3g.20gb"], ["1c.3g.20gb:2"])]
    assert repairs(plan([shared("1c.3g.20gb:0", "1c.3g.20gb")], there)) == [(1, [], ["1c.3g.20gb:1"])]


def test_places_in_a_new_instance() -> None:
    profile = next(one for one in machines.profiles(A100) if one.name == "4g.20gb")
    kinds = machines.compute_profiles(A100)["4g.20gb"]

    def starts(*names: str, offered: t.Sequence[ComputeProfile] = kinds) -> list[int]:
        wish = InstanceWish("layouts[0].instances[0]", "4g.20gb", compute=names)
        return [place.start for place in compute.place(compute.check(wish, profile, offered), profile, offered)]

    assert starts("1c.4g.20gb", "2c.4g.20gb") == [0, 2]  # the larger one first
    assert starts("1c.4g.20gb", "2c.4g.20gb:2", "1c.4g.20gb:0") == [2, 1, 0]
    assert starts("2c.4g.20gb:2", "2c.4g.20gb") == [0, 2]
    told_later = compute.check(InstanceWish("", "4g.20gb", compute=("2c.4g.20gb:1",)), profile, ())
    with pytest.raises(
        DoesNotFit, match="2c.4g.20gb:1 cannot lie side by side in 4g.20gb; possible starts: 2c.4g.20gb at 0, 2"
    ):
        compute.place(told_later, profile, kinds)


def test_without_purge_surplus_ones_stay() -> None:
    there = a100("3g.20gb@4", 1, ["1c.3g.20gb", "1c.3g.20gb"])
    assert plan([shared("1c.3g.20gb")], there).empty
    assert repairs(plan([shared("1c.3g.20gb")], there, purge=True)) == [(1, ["1c.3g.20gb"], [])]


def test_a_change_needs_purge() -> None:
    there = a100("3g.20gb@4", 1)
    wish = shared("1c.3g.20gb", "1c.3g.20gb")
    text = message(DoesNotFit, [wish], there)
    assert (
        "other compute instances than the wished ones are in the way; purge: true would remove compute instance 0 (3g.20gb) of "
        "GPU instance 1 (3g.20gb at 4:4)" in text
    )
    assert repairs(plan([wish], there, purge=True)) == [(1, ["3g.20gb"], ["1c.3g.20gb:0", "1c.3g.20gb:1"])]


def test_what_must_stay_is_not_changed() -> None:
    there = a100("3g.20gb@4", 13)
    text = message(DoesNotFit, [shared("1c.3g.20gb")], there, purge=True, protected=BUSY)
    assert "were it not for what must stay (GPU instance 13 (3g.20gb at 4:4): in use by processes 41, 42)" in text


def test_the_instance_that_has_the_wished_ones_is_kept() -> None:
    # At start 4 it would leave more room.
    there = [a100("3g.20gb@4", 2), a100("3g.20gb@0", 1, ["2c.3g.20gb", "1c.3g.20gb"])]
    result = plan([shared("2c.3g.20gb", "1c.3g.20gb")], *there, purge=True)
    assert [one.id for one in result.keep] == [1]
    assert not result.repair


def test_each_layout_finds_its_instance() -> None:
    there = [a100("2g.10gb@0", 3), a100("2g.10gb@2", 4, ["1c.2g.10gb"]), a100("2g.10gb@4", 5, [])]
    wishes: list[Wish] = [
        shared("1c.2g.10gb", "1c.2g.10gb", profile="2g.10gb"),
        {"profile": "2g.10gb", "start": "4"},
        "2g.10gb",
    ]
    assert repairs(plan(wishes, *there)) == [(4, [], ["1c.2g.10gb:1"]), (5, [], ["2g.10gb"])]


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (["1c.4g.20gb"], "'1c.4g.20gb': 3g.20gb has no such compute instance; did you mean 1c.3g.20gb?"),
        (["3c.3g.20gb"], "'3c.3g.20gb': 3g.20gb has no such compute instance; did you mean 2c.3g.20gb?"),
        (["4g.20gb"], "'4g.20gb': 3g.20gb has no such compute instance; did you mean 3g.20gb?"),
        (["2c.3g.20gb"] * 2, "'2c.3g.20gb, 2c.3g.20gb': 3g.20gb takes at most 1 of 2c.3g.20gb"),
        (["1c.3g.20gb"] * 2 + ["2c.3g.20gb"], "'1c.3g.20gb, 1c.3g.20gb, 2c.3g.20gb': these take 4 compute slices, 3g"),
        (["2c.3g.20gb:1"], "'2c.3g.20gb:1': 2c.3g.20gb cannot start there in 3g.20gb; it can at 0"),
        (["1c.3g.20gb:3"], "'1c.3g.20gb:3': 1c.3g.20gb cannot start there in 3g.20gb; it can at 0, 1, 2"),
        (["1c.3g.20gb:1"] * 2, "'1c.3g.20gb:1, 1c.3g.20gb:1': 1c.3g.20gb:1 stands there 2 times"),
        (
            ["2c.3g.20gb", "1c.3g.20gb:1"],
            "'2c.3g.20gb, 1c.3g.20gb:1': these cannot lie side by side in 3g.20gb; possible",
        ),
    ],
)
def test_layouts_that_cannot_be(names: list[str], problem: str) -> None:
    text = message(BadOption, [shared(*names)])
    assert text.startswith(f"layouts[0].instances[0].compute_instances: {problem}")


def test_before_the_driver_could_be_asked_only_what_is_certain_is_refused() -> None:
    card = machines.card(A100)._replace(compute_profiles={})
    assert planner.make(card, wanted([shared("3c.4g.20gb:1", profile="4g.20gb")])).create
    with pytest.raises(BadOption, match=r"did you mean 1g.5gb\? \(like 1g.5gb\)"):
        planner.make(card, wanted([shared("1c.1g.5gb", profile="1g.5gb")]))
    with pytest.raises(BadOption, match="these take 4 compute slices, 3g.20gb has 3"):
        planner.make(card, wanted([shared("2c.3g.20gb", "2c.3g.20gb")]))
    with pytest.raises(BadOption, match=r"did you mean 2c.4g.20gb\? \(like 1c.4g.20gb, 2c.4g.20gb, 4g.20gb\)"):
        plan([shared("3c.4g.20gb", profile="4g.20gb")])
