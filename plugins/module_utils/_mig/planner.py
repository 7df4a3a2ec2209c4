# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. The plan that leads a card to its layout and destroys least: pure functions on what was read.

An instance's kind and place say all that matters, so the plan is a choice of places: what lies at a chosen place already is kept.
"""

from __future__ import annotations

import typing as t
from collections import Counter

from .._errors import BadOption, DoesNotFit, InUse
from .._instance import GpuInstance, Placement, Profile
from . import compute, picture, search
from .card import Card, describe
from .compute import Repair, Rules, Shares
from .layout import Layout
from .search import Cost, Kind, Starts

ANYTHING = Rules(purge=True, protected={})  # the most that could be allowed


class Creation(t.NamedTuple):
    """A GPU instance to make, and the compute instances in it; the one with the profile's own name fills it."""

    profile: Profile
    placement: Placement
    compute: Shares


class Plan(t.NamedTuple):
    """The steps in order: destroy, create largest first, then repair. Each is valid at its time."""

    keep: tuple[GpuInstance, ...] = ()
    destroy: tuple[GpuInstance, ...] = ()
    create: tuple[Creation, ...] = ()
    repair: tuple[Repair, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether there is nothing to do."""
        return not (self.destroy or self.create or self.repair)


class Wanted(t.NamedTuple):
    """What is wished of a profile: compute layouts by start, and those that may lie anywhere."""

    profile: Profile
    bound: dict[int, Shares]
    free: list[Shares]

    @property
    def number(self) -> int:
        """How many instances."""
        return len(self.bound) + len(self.free)


def make(card: Card, layout: Layout, purge: bool = False, protected: t.Mapping[int, str] | None = None) -> Plan:
    """Return the plan for a card. ``protected`` says why a GPU instance (by id) must stay.

    Raises BadOption for a value that this card does not know, InUse where what must stay would have to go, DoesNotFit where there is no
    room; each before anything is changed.
    """
    rules = Rules(purge, protected or {})
    if layout.instances is None and layout.enabled:
        return Plan(keep=card.instances)
    return _Planner(card, layout, rules).plan()


def blocks(plan: Plan, protected: t.Container[int] = ()) -> list[picture.Block]:
    """Return what lies on a card after a plan, to be drawn."""
    changed = {change.instance.id: change for change in plan.repair}
    found = []
    for instance in plan.keep:
        names = [one.profile for one in instance.compute_instances]
        if instance.id in changed:
            change = changed[instance.id]
            names = [one.profile for one in instance.compute_instances if one not in change.destroy]
            names += [share.name for share in change.create]
        found.append(picture.block(instance.profile, instance.placement, names, instance.id in protected))
    for one in plan.create:
        found.append(picture.block(one.profile.name, one.placement, [share.name for share in one.compute]))
    return found


class _Planner:
    """One card, one layout; ``rules`` can be others than the task's, to say what they would lead to."""

    def __init__(self, card: Card, layout: Layout, rules: Rules) -> None:
        self.card = card
        self.layout = layout
        self.rules = rules
        self.wanted = _wanted(card, layout)
        self.place = f"{layout.option}.{'instances' if layout.enabled else 'enabled'}: {card.gpu.label}"

    def plan(self) -> Plan:
        if not self.layout.enabled and self.card.instances and not self.rules.purge:
            raise DoesNotFit(
                f"{self.place}: MIG mode cannot go while there are instances; purge: true would remove "
                f"{_list(self.card.instances)}{self._map()}",
                would_remove=_details(self.card.instances),
            )
        kinds = self._kinds()
        self._refuse_surplus(kinds)
        trouble = self._trouble(kinds)
        starts = None if trouble else self._search(kinds)
        if starts is None:
            raise self._failure(kinds, trouble)
        return self._steps(kinds, starts)

    def _wish_for(self, profile: Profile) -> Wanted:
        return self.wanted.get(profile.name, Wanted(profile, {}, []))

    def _kinds(self) -> list[Kind]:
        there: dict[str, dict[int, GpuInstance]] = {}
        profiles = {name: wanted.profile for name, wanted in self.wanted.items()}
        for instance in self.card.instances:
            profile = self.card.profile_of(instance)
            profiles[profile.name] = profile
            there.setdefault(profile.name, {})[instance.placement.start] = instance
        return search.order(self._kind(profile, there.get(name, {})) for name, profile in profiles.items())

    def _kind(self, profile: Profile, there: dict[int, GpuInstance]) -> Kind:
        wanted = self._wish_for(profile)
        stay = {start for start, one in there.items() if not self.rules.purge or one.id in self.rules.protected}
        must = frozenset(stay | set(wanted.bound))
        return Kind(profile, max(wanted.number, len(must)), must, there)

    def _refuse_surplus(self, kinds: t.Sequence[Kind]) -> None:
        """What must stay counts towards the wish; what is more than that would have to go."""
        surplus: list[GpuInstance] = []
        for kind in kinds if self.rules.purge else ():
            wanted = self._wish_for(kind.profile)
            others = [kind.there[start] for start in kind.must if start in kind.there and start not in wanted.bound]
            surplus += others if len(others) > len(wanted.free) else []
        if surplus:
            raise InUse(
                f"{self.place}: the wish leaves no place for what must stay ({self._reasons(surplus)}); end its use first, or let the "
                f"layout have it{self._map()}",
                slots=self._slots(),
                blocked_by=_details(surplus),
            )

    def _trouble(self, kinds: t.Sequence[Kind]) -> str | None:
        """Return why the numbers or the wished starts cannot be, wherever the rest lies."""
        now = Counter(instance.profile for instance in self.card.instances)
        counts = {kind.profile.name: kind.total for kind in kinds}
        # What is there the driver has allowed, whatever is thought here.
        more = any(number > now[name] for name, number in counts.items())
        trouble = self.card.complaint(counts) if more else None
        pinned = [
            (kind, start, masks[start]) for kind in kinds for masks in [kind.masks] for start in sorted(kind.must)
        ]
        for number, (kind, start, mask) in enumerate(pinned):
            for other, beside, others in pinned[:number]:
                if trouble is None and mask & others:
                    trouble = f"{_pin(kind, start)} and {_pin(other, beside)} need the same slots"
        return trouble

    def _search(self, kinds: t.Sequence[Kind]) -> list[Starts] | None:
        counts = {kind.profile.name: kind.total for kind in kinds}
        room = self.card.room(counts) if any(kind.total > len(kind.must) for kind in kinds) else ()
        return search.best(kinds, room, self._price)

    def _price(self, kind: Kind, starts: Starts) -> Cost | None:
        matched = self._match(kind, starts)
        return matched[0] if matched else None

    def _match(self, kind: Kind, starts: Starts) -> tuple[Cost, dict[int, Shares]] | None:
        wanted = self._wish_for(kind.profile)
        slots = {start: kind.there.get(start) for start in starts}
        return compute.match(slots, kind.profile, wanted.bound, wanted.free, self.rules, self._offered(kind))

    def _offered(self, kind: Kind) -> compute.Offered:
        return self.card.compute_profiles.get(kind.profile.name, ())

    def _steps(self, kinds: t.Sequence[Kind], chosen: t.Sequence[Starts]) -> Plan:
        keep: list[GpuInstance] = []
        create: list[Creation] = []
        repairs: list[Repair] = []
        for kind, starts in zip(kinds, chosen):
            matched = self._match(kind, starts)
            layouts = matched[1] if matched else {}
            for start in starts:
                instance = kind.there.get(start)
                if instance is None:
                    place = next(place for place in kind.profile.placements if place.start == start)
                    create.append(Creation(kind.profile, place, compute.default(layouts[start], kind.profile)))
                    continue
                keep.append(instance)
                if start not in layouts:
                    continue
                change = compute.repair(instance, layouts[start], kind.profile, self.rules, self._offered(kind))
                if change and change.cost != (0, 0):
                    repairs.append(change)
        destroy = [instance for instance in self.card.instances if instance not in keep]
        keep.sort(key=lambda instance: instance.placement)
        repairs.sort(key=lambda change: change.instance.placement)
        return Plan(tuple(keep), tuple(destroy), tuple(create), tuple(repairs))

    def _failure(self, kinds: t.Sequence[Kind], trouble: str | None) -> DoesNotFit:
        """Say why there is no plan, and what would have to go for there to be one."""
        why = f"{self.place}: {_wish(self.wanted)} cannot be placed: {trouble or self._lacking(kinds)}"
        if self.rules == ANYTHING:
            return DoesNotFit(f"{why}{self._map()}", slots=self._slots())
        try:
            plan = _Planner(self.card, self.layout, ANYTHING).plan()
        except DoesNotFit as exc:
            return exc
        if not self.rules.purge:
            try:
                plan = _Planner(self.card, self.layout, self.rules._replace(purge=True)).plan()
            except (DoesNotFit, InUse):
                pass
            else:
                return DoesNotFit(
                    f"{why}; purge: true would remove {_removals(plan)}{self._map()}",
                    slots=self._slots(),
                    would_remove=_details(plan.destroy),
                )
        blockers = [one for one in self._touched(plan) if one.id in self.rules.protected]
        return DoesNotFit(
            f"{why}; it would fit, were it not for what must stay ({self._reasons(blockers)}); end its use first, or change the layout"
            f"{self._map()}",
            slots=self._slots(),
            blocked_by=_details(blockers),
        )

    def _lacking(self, kinds: t.Sequence[Kind]) -> str:
        """Return what finds no place, though the numbers could be together."""
        fixed = [kind._replace(total=len(kind.must)) for kind in kinds]
        for number, kind in enumerate(kinds):
            if _placeable([*fixed[:number], kind, *fixed[number + 1 :]]) is None:
                more = kind.total - len(kind.must)
                places = ", ".join(str(place.start) for place in kind.profile.placements)
                return f"there is no place for {more} x {kind.profile.name} (possible starts: {places})"
        if _placeable(kinds) is None:
            return "there are places for each kind alone, but not for all together"
        return "other compute instances than the wished ones are in the way"

    def _touched(self, plan: Plan) -> list[GpuInstance]:
        return [*plan.destroy, *(change.instance for change in plan.repair if change.destroy)]

    def _reasons(self, instances: t.Sequence[GpuInstance]) -> str:
        ordered = sorted(instances, key=lambda one: one.placement)
        return "; ".join(f"{describe(one)}: {self.rules.protected[one.id]}" for one in ordered)

    def _slots(self) -> str:
        return picture.show(self.card, self.rules.protected)

    def _map(self) -> str:
        marked = any(instance.id in self.rules.protected for instance in self.card.instances)
        return f"; slots now{' (* must stay)' if marked else ''}: {self._slots()}"


def _wanted(card: Card, layout: Layout) -> dict[str, Wanted]:
    """Return the wishes by profile. Raises BadOption for what this card does not offer."""
    wanted: dict[str, Wanted] = {}
    for wish in layout.instances or ():
        profile = card.find(wish.profile, f"{wish.option}.profile")
        names = compute.check(wish, profile, card.compute_profiles.get(profile.name, ()))
        entry = wanted.setdefault(profile.name, Wanted(profile, {}, []))
        if wish.start is None:
            entry.free.extend([names] * wish.number)
            continue
        starts = [place.start for place in profile.placements]
        if wish.start not in starts:
            raise BadOption(
                f"{wish.option}.start",
                wish.start,
                f"{profile.name} cannot start there on {card.gpu.label}; it can at {', '.join(map(str, starts))}",
            )
        entry.bound[wish.start] = names
    return wanted


def _placeable(kinds: t.Sequence[Kind]) -> list[Starts] | None:
    return search.best(kinds, (), lambda _kind, _starts: (0, 0))


def _wish(wanted: t.Mapping[str, Wanted]) -> str:
    ordered = sorted(wanted.values(), key=lambda one: search.size(one.profile))
    return ", ".join(f"{one.number} x {one.profile.name}" for one in ordered)


def _pin(kind: Kind, start: int) -> str:
    return describe(kind.there[start]) if start in kind.there else f"{kind.profile.name} at start {start}"


def _list(instances: t.Sequence[GpuInstance]) -> str:
    return ", ".join(describe(one) for one in sorted(instances, key=lambda one: one.placement))


def _removals(plan: Plan) -> str:
    """What a plan removes: GPU instances, and compute instances of those that stay."""
    parts = [describe(one) for one in sorted(plan.destroy, key=lambda one: one.placement)]
    for change in plan.repair:
        parts += [f"compute instance {one.id} ({one.profile}) of {describe(change.instance)}" for one in change.destroy]
    return ", ".join(parts)


def _details(instances: t.Sequence[GpuInstance]) -> list[dict[str, t.Any]]:
    return [
        {"id": one.id, "profile": one.profile, "placement": one.placement._asdict()}
        for one in sorted(instances, key=lambda one: one.placement)
    ]
