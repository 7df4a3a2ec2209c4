# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How many instances fit: on empty cards as the User Guide says, and beside what is there exactly."""

from __future__ import annotations

import pytest
from ansible_collections.gpuops.sharing.plugins.module_utils._mig.capacity import capacity, fitting
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils._mig import machines
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils._mig.machines import Place, instance
from hypothesis import given, settings
from hypothesis import strategies as st


@pytest.mark.parametrize("machine", machines.MACHINES)
def test_an_empty_card_takes_what_its_driver_says(machine: str) -> None:
    card = machines.card(machine)
    most = {profile.name: profile.most for profile in card.profiles}
    assert capacity(card, free=False) == capacity(card, free=True) == most


def test_what_is_free() -> None:
    there = [instance("A100-40GB", ("1g.5gb", 4), 11), instance("A100-40GB", ("1g.5gb", 6), 13)]
    card = machines.card("A100-40GB", *there)
    assert capacity(card, free=True) == {
        "1g.5gb": 5,
        "1g.5gb+me": 1,
        "1g.10gb": 2,
        "2g.10gb": 2,
        "3g.20gb": 1,
        "4g.20gb": 1,
        "7g.40gb": 0,
    }
    assert capacity(card, free=False)["7g.40gb"] == 1


def test_media_engines_count() -> None:
    card = machines.card("RTX-PRO-6000-Blackwell", instance("RTX-PRO-6000-Blackwell", ("1g.24gb+me.all", 0), 3))
    assert {name: number for name, number in capacity(card, free=True).items() if number} == {
        "1g.24gb-me": 3,
        "2g.48gb-me": 1,
    }


@pytest.mark.parametrize("machine", ["A100-40GB", "A30-24GB", "RTX-PRO-6000-Blackwell"])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_no_more_and_no_less_than_can_be_made(machine: str, data: st.DataObject) -> None:
    every = [(profile.name, place.start) for profile in machines.profiles(machine) for place in profile.placements]
    there: list[Place] = []
    for place in data.draw(st.lists(st.sampled_from(every), max_size=4)):
        if machines.possible(machine, [*there, place]):
            there.append(place)
    card = machines.card(machine, *(instance(machine, place, number) for number, place in enumerate(there)))
    profile = data.draw(st.sampled_from(card.profiles))

    def most(state: list[Place]) -> int:
        more = [(profile.name, place.start) for place in profile.placements]
        return max((1 + most([*state, one]) for one in more if machines.possible(machine, [*state, one])), default=0)

    assert fitting(card, profile, free=True) == most(there)
