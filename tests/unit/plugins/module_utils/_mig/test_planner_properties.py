# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What holds for every plan on every card: the end is the wish, least is destroyed, no step is refused, what must stay stays."""

from __future__ import annotations

import itertools
import typing as t
from collections import Counter

import pytest
from ansible_collections.gpuops.sharing.plugins.module_utils._errors import DoesNotFit, InUse
from ansible_collections.gpuops.sharing.plugins.module_utils._instance import GpuInstance, Placement
from ansible_collections.gpuops.sharing.plugins.module_utils._mig import planner
from ansible_collections.gpuops.sharing.plugins.module_utils._mig.layout import InstanceWish, Layout
from ansible_collections.gpuops.sharing.plugins.module_utils._mig.planner import Plan
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils._mig import machines
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils._mig.machines import Place, Simulation
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

# Cards that differ in more than names: the oracle is slow.
SHAPES = ["A100-40GB", "A30-24GB", "RTX-PRO-6000-Blackwell"]
each_machine = pytest.mark.parametrize("machine", machines.MACHINES)
each_shape = pytest.mark.parametrize("machine", SHAPES)
some = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])


class Case(t.NamedTuple):
    """A card, a wish and what must stay."""

    machine: str
    instances: tuple[GpuInstance, ...]
    wishes: tuple[InstanceWish, ...]
    protected: dict[int, str]

    def plan(self, purge: bool) -> Plan:
        layout = Layout("layouts[0]", ("0",), True, self.wishes)
        return planner.make(machines.card(self.machine, *self.instances), layout, purge, self.protected)

    def done(self, plan: Plan) -> Simulation:
        """The card after the plan; the simulation refuses a step that is not valid at its time."""
        card = Simulation(self.machine, self.instances, self.protected)
        card.apply(plan)
        return card


def places(machine: str) -> st.SearchStrategy[list[Place]]:
    """How a card may be cut."""
    every = [(profile.name, place.start) for profile in machines.profiles(machine) for place in profile.placements]

    def fill(order: list[Place], most: int) -> list[Place]:
        chosen: list[Place] = []
        for place in order:
            if len(chosen) < most and machines.possible(machine, [*chosen, place]):
                chosen.append(place)
        return chosen

    return st.builds(fill, st.permutations(every), st.integers(0, 7))


@st.composite
def cuts(draw: st.DrawFn, machine: str, profile: str, starts: bool = True) -> tuple[str, ...]:
    """Compute instances that lie side by side in a GPU instance, each with its start, or some without."""
    kinds = machines.compute_profiles(machine)[profile]
    every = [(kind.name, place) for kind in kinds for place in kind.placements]
    chosen: list[tuple[str, Placement]] = []
    for name, place in draw(st.lists(st.sampled_from(every), max_size=5)):
        if not any(place.overlaps(other) for _name, other in chosen):
            chosen.append((name, place))
    return tuple(name if not starts and draw(st.booleans()) else f"{name}:{place.start}" for name, place in chosen)


@st.composite
def cases(draw: st.DrawFn, machine: str, compute: bool = True, most: int = 7) -> Case:
    """A cut card and a wish: where compute instances count, one that an empty card can grant."""
    instances = []
    for number, place in enumerate(draw(places(machine))):
        inside = draw(cuts(machine, place[0])) if compute and draw(st.booleans()) else None
        instances.append(machines.instance(machine, place, number, inside))
    wishes: list[InstanceWish] = []
    every = [(profile.name, place.start) for profile in machines.profiles(machine) for place in profile.placements]
    any_places = st.lists(st.sampled_from(every), max_size=most, unique=True)
    wished_places = places(machine) if compute else places(machine) | any_places
    for profile, start in draw(wished_places)[:most]:
        wished = draw(cuts(machine, profile, starts=False)) if compute and draw(st.booleans()) else ()
        pinned = start if draw(st.integers(0, 3)) == 0 else None
        wishes.append(InstanceWish(f"layouts[0].instances[{len(wishes)}]", profile, 1, pinned, wished))
    most_stay = draw(st.sampled_from([0, 0, 1, 2]))
    stay = draw(st.permutations(instances))[:most_stay]
    return Case(machine, tuple(instances), tuple(wishes), {one.id: "in use by process 7" for one in stay})


def feasible(case: Case, purge: bool) -> Plan:
    try:
        return case.plan(purge)
    except (DoesNotFit, InUse):
        assume(False)
        raise


def satisfied(card: Simulation, wishes: t.Sequence[InstanceWish], exactly: bool) -> bool:
    """Whether each wish can be given an instance of its own that is as wished (all orders are tried: they are few)."""
    if not wishes:
        return not exactly or not card.instances
    by_profile: dict[str, list[InstanceWish]] = {}
    for wish in wishes:
        by_profile.setdefault(wish.profile, []).append(wish)
    have = Counter(one.profile for one in card.instances.values())
    want = Counter(wish.profile for wish in wishes)
    if exactly and have != want:
        return False
    return all(_given(card, profile, list(group), exactly) for profile, group in by_profile.items())


def _given(card: Simulation, profile: str, wishes: list[InstanceWish], exactly: bool) -> bool:
    candidates = [one for one in card.instances.values() if one.profile == profile]

    def fits(wish: InstanceWish, one: GpuInstance) -> bool:
        there = Counter(card.compute(one.id))
        wished = Counter(text.partition(":")[0] for text in wish.compute)
        surplus = there - wished if wish.compute else Counter[str]()
        # One slice cannot be shared, so its place needs no saying.
        bound = {text for text in wish.compute if ":" in text}
        return (
            wish.start in (None, one.placement.start)
            and bool(there)
            and not wished - there
            and bound <= card.compute_places(one.id)
            and not (exactly and surplus)
        )

    def give(left: list[InstanceWish], free: list[GpuInstance]) -> bool:
        if not left:
            return True
        return any(fits(left[0], one) and give(left[1:], [other for other in free if other is not one]) for one in free)

    return give(wishes, candidates)


@each_machine
@some
@given(data=st.data())
def test_with_purge_the_end_is_the_wish(machine: str, data: st.DataObject) -> None:
    case = data.draw(cases(machine))
    card = case.done(feasible(case, purge=True))
    assert satisfied(card, case.wishes, exactly=True)


@each_machine
@some
@given(data=st.data())
def test_without_purge_nothing_goes_and_the_wish_is_met(machine: str, data: st.DataObject) -> None:
    case = data.draw(cases(machine, most=3))
    plan = feasible(case, purge=False)
    assert not plan.destroy
    assert not any(change.destroy for change in plan.repair)
    assert satisfied(case.done(plan), case.wishes, exactly=False)


@each_machine
@some
@given(data=st.data())
def test_a_matching_card_gets_an_empty_plan(machine: str, data: st.DataObject) -> None:
    case = data.draw(cases(machine))
    purge = data.draw(st.booleans())
    after = case.done(feasible(case, purge))
    again = case._replace(instances=tuple(after.instances.values())).plan(purge)
    assert again.empty
    assert set(again.keep) == set(after.instances.values())


@each_machine
@some
@given(data=st.data())
def test_the_order_of_wishes_and_instances_does_not_matter(machine: str, data: st.DataObject) -> None:
    case = data.draw(cases(machine))
    purge = data.draw(st.booleans())
    plan = feasible(case, purge)
    wishes = tuple(data.draw(st.permutations(case.wishes)))
    instances = tuple(data.draw(st.permutations(case.instances)))
    other = case._replace(wishes=wishes, instances=instances).plan(purge)
    assert other._replace(destroy=()) == plan._replace(destroy=())
    assert set(other.destroy) == set(plan.destroy)


def endings(case: Case) -> t.Iterator[frozenset[Place]]:
    """Every way in which a card can be cut as wished, with all that must stay."""
    table = {profile.name: [place.start for place in profile.placements] for profile in machines.profiles(case.machine)}
    choices = [[wish.start] if wish.start is not None else table[wish.profile] for wish in case.wishes]
    stay = {(one.profile, one.placement.start) for one in case.instances if one.id in case.protected}
    for starts in itertools.product(*choices):
        state = [(wish.profile, start) for wish, start in zip(case.wishes, starts) if start is not None]
        if stay <= set(state) and machines.possible(case.machine, state):
            yield frozenset(state)


def open_places(machine: str, state: t.Collection[Place]) -> int:
    """How many single instances could still be made."""
    every = [(profile.name, place.start) for profile in machines.profiles(machine) for place in profile.placements]
    return sum(1 for place in every if machines.possible(machine, [*state, place]))


@each_shape
@settings(some, max_examples=50)
@given(data=st.data())
def test_most_instances_are_kept_and_the_rest_stays_most_useful(machine: str, data: st.DataObject) -> None:
    case = data.draw(cases(machine, compute=False, most=4))
    there = {(one.profile, one.placement.start) for one in case.instances}
    every = set(endings(case))
    try:
        plan = case.plan(purge=True)
    except (DoesNotFit, InUse):
        assert not every
        return
    state = frozenset(case.done(plan).state())
    assert state in every
    assert len(plan.keep) == len(state & there) == max(len(ending & there) for ending in every)
    best = [ending for ending in every if len(ending & there) == len(plan.keep)]
    assert open_places(machine, state) == max(open_places(machine, ending) for ending in best)


@each_shape
@settings(some, max_examples=50)
@given(data=st.data())
def test_without_purge_a_plan_is_found_wherever_there_is_one(machine: str, data: st.DataObject) -> None:
    case = data.draw(cases(machine, compute=False, most=3))
    there = [(one.profile, one.placement.start) for one in case.instances]
    # An instance that is there counts towards a wish without a start; those wished at a start count first.
    pinned = {(wish.profile, wish.start) for wish in case.wishes if wish.start is not None}
    left = Counter(profile for profile, start in there if (profile, start) not in pinned)
    missing = [wish for wish in case.wishes if wish.start is not None and (wish.profile, wish.start) not in there]
    for wish in case.wishes:
        if wish.start is None:
            missing += [] if left[wish.profile] > 0 else [wish]
            left[wish.profile] -= 1
    beside = case._replace(wishes=tuple(missing), protected={})
    possible = any(machines.possible(machine, [*there, *ending]) for ending in endings(beside))
    try:
        plan = case.plan(purge=False)
    except DoesNotFit:
        assert not possible
        return
    assert possible
    assert len(plan.create) == len(missing)


@each_machine
@some
@given(data=st.data())
def test_creation_is_largest_first(machine: str, data: st.DataObject) -> None:
    case = data.draw(cases(machine))
    sizes = [creation.placement.size for creation in feasible(case, purge=True).create]
    assert sizes == sorted(sizes, reverse=True)
