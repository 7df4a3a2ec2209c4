# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Plans as an operator meets them: documented orders, what purging would remove, what is busy, messages."""

from __future__ import annotations

import pytest
from ansible_collections.gpuops.sharing.plugins.module_utils._errors import BadOption, DoesNotFit, InUse
from ansible_collections.gpuops.sharing.plugins.module_utils._instance import GpuInstance, Placement
from ansible_collections.gpuops.sharing.plugins.module_utils._mig.planner import Plan
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils._mig.machines import instance
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils._mig.planning import (
    A30,
    A100,
    BUSY,
    RTX,
    Wish,
    a100,
    made,
    message,
    plan,
)


@pytest.mark.parametrize(
    ("machine", "wish", "places"),
    [
        (A100, ["1g.5gb"] * 7, [f"1g.5gb@{start}" for start in range(7)]),
        # The User Guide's "known issue": in this order the driver's own choice of places fails.
        (A100, ["1g.5gb", "1g.5gb", "2g.10gb", "3g.20gb"], ["3g.20gb@4", "2g.10gb@0", "1g.5gb@2", "1g.5gb@3"]),
        (A100, ["3g.20gb", "4g.20gb"], ["4g.20gb@0", "3g.20gb@4"]),
        (A100, ["3g.20gb", "3g.20gb"], ["3g.20gb@0", "3g.20gb@4"]),
        # One alone goes where it leaves most room.
        (A100, ["1g.5gb"], ["1g.5gb@6"]),
        (A100, ["3g.20gb"], ["3g.20gb@4"]),
        (A30, ["1g.6gb", "2g.12gb", "1g.6gb+me"], ["2g.12gb@0", "1g.6gb@2", "1g.6gb+me@3"]),
        (RTX, ["1g.24gb", "2g.48gb", "1g.24gb"], ["2g.48gb@0", "1g.24gb@6", "1g.24gb@9"]),
        (RTX, ["1g.24gb-me", "2g.48gb-me", "1g.24gb+me.all"], ["2g.48gb-me@0", "1g.24gb+me.all@6", "1g.24gb-me@9"]),
    ],
)
def test_an_empty_card(machine: str, wish: list[Wish], places: list[str]) -> None:
    assert made(plan(wish, machine=machine)) == places


def test_one_more_beside_those_that_are_there() -> None:
    result = plan(["1g.5gb", "1g.5gb", {"profile": "2g.10gb", "start": 0}], a100("1g.5gb@6", 13), protected=BUSY)
    assert [one.id for one in result.keep] == [13]
    assert made(result) == ["2g.10gb@0", "1g.5gb@2"]


def test_what_is_there_counts_by_profile_or_by_place() -> None:
    there = [a100("1g.5gb@0", 7), a100("1g.5gb@4", 11)]
    assert plan(["1g.5gb", "1g.5gb"], *there).empty
    assert plan(["1g.5gb"], *there).empty
    assert plan([{"profile": "1g.5gb", "start": 4}], *there).empty
    assert made(plan([{"profile": "1g.5gb", "start": 5}], *there)) == ["1g.5gb@5"]
    assert made(plan([{"profile": "1g.5gb", "start": 5}, {"profile": "1g.5gb", "count": 2}], *there)) == ["1g.5gb@5"]


def test_the_mode_alone_leaves_instances_alone() -> None:
    there = (a100("1g.5gb@0", 7, []),)
    assert plan(None, *there, purge=True) == Plan(keep=there)


def test_no_instances_empty_a_card_only_with_purge() -> None:
    there = (a100("1g.5gb@0", 7), a100("3g.20gb@4", 1))
    assert plan([], *there) == Plan(keep=there)
    assert plan([], *there, purge=True) == Plan(destroy=there)


def test_purge_destroys_least() -> None:
    there = [a100("1g.5gb@2", 9), a100("1g.5gb@6", 13)]
    result = plan(["1g.5gb", "1g.5gb", "3g.20gb"], *there, purge=True)
    assert [one.id for one in result.keep] == [9]
    assert [one.id for one in result.destroy] == [13]
    assert made(result) == ["3g.20gb@4", "1g.5gb@3"]


def test_an_instance_that_must_stay_decides_the_places() -> None:
    there = [a100("1g.5gb@2", 9), a100("1g.5gb@6", 13)]
    result = plan(["1g.5gb", "1g.5gb", "3g.20gb"], *there, purge=True, protected=BUSY)
    assert [one.id for one in result.keep] == [13]
    assert made(result) == ["3g.20gb@0", "1g.5gb@4"]


def test_without_purge_the_message_names_what_purging_would_remove() -> None:
    there = [a100("1g.5gb@2", 9), a100("1g.5gb@6", 13)]
    with pytest.raises(DoesNotFit) as failure:
        plan(["3g.20gb", "1g.5gb", "1g.5gb"], *there)
    assert failure.value.message == (
        "layouts[0].instances: GPU 0 (A100, GPU-1): 1 x 3g.20gb, 2 x 1g.5gb cannot be placed: there is no place for 1 x 3g.20gb "
        "(possible starts: 0, 4); purge: true would remove GPU instance 13 (1g.5gb at 6:1); "
        "slots now: |  .   |  .   |1g.5gb|  .   |  .   |  .   |1g.5gb|  .   |"
    )
    assert failure.value.details["would_remove"] == [
        {"id": 13, "profile": "1g.5gb", "placement": {"start": 6, "size": 1}}
    ]


def test_without_purge_surplus_instances_take_their_slices() -> None:
    there = [a100(f"1g.5gb@{start}", start + 7) for start in range(7)]
    text = message(DoesNotFit, ["1g.5gb+me"], *there)
    assert (
        "they need 8 compute slices, the card has 7; purge: true would remove GPU instance 7 (1g.5gb at 0:1)," in text
    )


def test_what_must_stay_and_has_no_place_in_the_wish() -> None:
    there = [a100("1g.5gb@6", 13), a100("2g.10gb@0", 3)]
    with pytest.raises(InUse) as failure:
        plan(["2g.10gb"], *there, purge=True, protected=BUSY)
    assert failure.value.message == (
        "layouts[0].instances: GPU 0 (A100, GPU-1): the wish leaves no place for what must stay (GPU instance 13 (1g.5gb at 6:1): in use by "
        "processes 41, 42); end its use first, or let the layout have it; slots now (* must stay): "
        "|    2g.10gb    |   .   |   .   |   .   |   .   |1g.5gb*|   .   |"
    )
    assert [one["id"] for one in failure.value.details["blocked_by"]] == [13]


def test_what_must_stay_lies_in_the_way() -> None:
    there = [a100("1g.5gb@2", 9), a100("1g.5gb@6", 13)]
    protected = {9: "protected by the task", **BUSY}
    with pytest.raises(DoesNotFit) as failure:
        plan(["3g.20gb", "1g.5gb", "1g.5gb"], *there, purge=True, protected=protected)
    assert (
        "it would fit, were it not for what must stay (GPU instance 13 (1g.5gb at 6:1): in use by"
        in failure.value.message
    )
    assert [one["id"] for one in failure.value.details["blocked_by"]] == [13]
    # Purging is not offered where it would not help.
    assert "purge" not in message(DoesNotFit, ["3g.20gb", "1g.5gb", "1g.5gb"], *there, protected=protected)


def test_mode_off() -> None:
    there = (a100("1g.5gb@2", 9), a100("1g.5gb@6", 13))
    text = message(DoesNotFit, None, *there, enabled=False)
    assert text.startswith(
        "layouts[0].enabled: GPU 0 (A100, GPU-1): MIG mode cannot go while there are instances; purge: true would remove GPU instance 9 "
        "(1g.5gb at 2:1), GPU instance 13 (1g.5gb at 6:1); slots now: |"
    )
    assert plan(None, *there, enabled=False, purge=True) == Plan(destroy=there)
    assert plan(None, enabled=False) == Plan()
    text = message(InUse, None, *there, enabled=False, purge=True, protected=BUSY)
    assert text.startswith(
        "layouts[0].enabled: GPU 0 (A100, GPU-1): the wish leaves no place for what must stay (GPU instance 13"
    )


@pytest.mark.parametrize(
    ("machine", "wish", "why"),
    [
        (
            A100,
            ["3g.20gb", "3g.20gb", "1g.5gb"],
            "2 x 3g.20gb, 1 x 1g.5gb cannot be placed: they need 9 slots, the card has 8",
        ),
        (A100, ["4g.20gb", "2g.10gb", "2g.10gb"], "they need 8 compute slices, the card has 7"),
        (A100, [{"profile": "1g.5gb", "count": 8}], "the card takes at most 7 of 1g.5gb"),
        (A30, ["1g.6gb+me", "2g.12gb+me"], "only one instance with +me can be on a card"),
        (
            RTX,
            ["1g.24gb+me.all", "1g.24gb"],
            "an instance with +me.all takes every media engine, so all others must be -me",
        ),
        (
            RTX,
            ["1g.24gb+me.all", "2g.48gb+me.all"],
            "an instance with +me.all takes every media engine, so all others must be -me",
        ),
        (
            A100,
            [{"profile": "3g.20gb", "start": 4}, {"profile": "1g.5gb", "start": 5}],
            "1g.5gb at start 5 and 3g.20gb at start 4 need the same slots",
        ),
        (
            A100,
            [{"profile": "1g.5gb", "start": 1}, {"profile": "1g.5gb", "start": 5}, "3g.20gb"],
            "there is no place for 1 x 3g.20gb (possible starts: 0, 4)",
        ),
        (
            A100,
            [{"profile": "1g.5gb", "start": 5}, "3g.20gb", "2g.10gb"],
            "there are places for each kind alone, but not for all together",
        ),
    ],
)
def test_what_no_card_can_do(machine: str, wish: list[Wish], why: str) -> None:
    for purge in (False, True):
        text = message(DoesNotFit, wish, machine=machine, purge=purge)
        assert f"{why}; slots now: | . |" in text


def test_a_wish_that_cannot_be_is_not_blamed_on_what_is_there() -> None:
    text = message(DoesNotFit, ["3g.20gb", "3g.20gb", "1g.5gb"], a100("1g.5gb@6", 13), protected=BUSY)
    assert "they need 9 slots, the card has 8; slots now" in text
    assert "purge" not in text


def test_an_unknown_profile() -> None:
    assert message(BadOption, ["1g.10gb+me"]) == (
        "layouts[0].instances[0].profile: '1g.10gb+me': GPU 0 (A100, GPU-1) offers no such profile; did you mean 1g.5gb+me? It offers: "
        "1g.5gb, 1g.5gb+me, 1g.10gb, 2g.10gb, 3g.20gb, 4g.20gb, 7g.40gb"
    )


def test_a_start_where_the_profile_cannot_lie() -> None:
    assert message(BadOption, ["1g.5gb", {"profile": "2g.10gb", "start": 6}]) == (
        "layouts[0].instances[1].start: 6: 2g.10gb cannot start there on GPU 0 (A100, GPU-1); it can at 0, 2, 4"
    )


def test_an_instance_whose_profile_the_driver_no_longer_offers() -> None:
    odd = GpuInstance(9, "2g.12gb+odd", Placement(2, 2))
    assert plan(["3g.20gb"], odd).destroy == ()
    assert "they need 8 compute slices" in message(DoesNotFit, ["3g.20gb", "3g.20gb"], odd)
    assert plan(["3g.20gb", "3g.20gb"], odd, purge=True).destroy == (odd,)


def test_what_the_driver_allowed_is_never_disputed() -> None:
    both = [instance(A30, ("1g.6gb+me", 0), 3), instance(A30, ("2g.12gb+me", 2), 2)]
    assert plan(["1g.6gb+me", "2g.12gb+me"], *both, machine=A30).empty
