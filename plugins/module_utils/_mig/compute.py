# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. Compute instances in GPU instances: wished layouts, and what leads to them. Pure functions.

The compute instance that fills a GPU instance bears the profile's own name (3g.20gb), a smaller one says its slices (1c.3g.20gb).
"""

from __future__ import annotations

import re
import typing as t
from collections import Counter

from .._errors import BadOption
from .._instance import ComputeInstance, ComputeProfile, GpuInstance, Profile
from .layout import InstanceWish, nearest

Names = tuple[str, ...]  # a layout, largest first; empty: any will do
Cost = tuple[int, int]  # compute instances destroyed, created

_UNWISHED: Names = ("",)  # sorts among layouts, and is none


class Repair(t.NamedTuple):
    """What is to be done to the compute instances of a GPU instance that stays."""

    instance: GpuInstance
    destroy: tuple[ComputeInstance, ...] = ()
    create: Names = ()

    @property
    def cost(self) -> Cost:
        """What it takes."""
        return len(self.destroy), len(self.create)


class Rules(t.NamedTuple):
    """What may be done to what is there: ``purge`` allows to remove, but never from a protected GPU instance."""

    purge: bool
    protected: t.Mapping[int, str]  # id of GPU instance -> why it must stay


def check(wish: InstanceWish, profile: Profile, offered: t.Sequence[ComputeProfile]) -> Names:
    """Return a wish's layout in the driver's spelling; ``offered`` is empty where no driver could be asked yet."""
    option = f"{wish.option}.compute_instances"
    sizes = {name: _slices(name, profile) for name in wish.compute}
    known = {kind.name.lower(): kind for kind in offered}
    for name, slices in sizes.items():
        if slices is None or (known and name not in known):
            examples = [kind.name for kind in offered] or [f"1c.{profile.name}", profile.name]
            raise BadOption(
                option,
                name,
                f"{profile.name} has no such compute instance; did you mean {nearest(name, examples)}? (like {', '.join(examples)})",
            )
        if name in known and wish.compute.count(name) > known[name].most:
            raise BadOption(
                option, ", ".join(wish.compute), f"{profile.name} takes at most {known[name].most} of {name}"
            )
    total = sum(sizes[name] or 0 for name in wish.compute)
    if total > profile.slices:
        raise BadOption(
            option, ", ".join(wish.compute), f"these take {total} compute slices, {profile.name} has {profile.slices}"
        )
    # One slice cannot be shared: there is but one layout.
    names = [] if profile.slices == 1 else [_spell(name, profile) for name in wish.compute]
    return tuple(sorted(names, key=lambda name: (-(_slices(name, profile) or 0), name)))


def default(layout: Names, profile: Profile) -> Names:
    """Return the compute instances to make in a new GPU instance."""
    return layout or (profile.name,)


def repair(instance: GpuInstance, layout: Names, profile: Profile, rules: Rules) -> Repair | None:
    """Return what leads a GPU instance to a layout, or None where the rules forbid it."""
    there = instance.compute_instances
    if not layout:
        return Repair(instance, create=() if there else default(layout, profile))
    have = Counter(compute.profile for compute in there)
    missing = sorted((Counter(layout) - have).elements(), key=layout.index)
    if not rules.purge or instance.id in rules.protected:
        slices = sum(_slices(compute.profile, profile) or compute.placement.size for compute in there)
        slices += sum(_slices(name, profile) or 0 for name in missing)
        too_many = missing and slices > profile.slices
        in_the_way = rules.purge and have - Counter(layout)
        return None if too_many or in_the_way else Repair(instance, create=tuple(missing))
    surplus = _surplus(there, layout)
    if surplus and any((_slices(name, profile) or 0) > 1 for name in missing):
        # What stays might lie in the way of a larger one: places within a GPU instance are the driver's choice.
        return Repair(instance, there, layout)
    return Repair(instance, surplus, tuple(missing))


def match(
    slots: t.Mapping[int, GpuInstance | None],
    profile: Profile,
    bound: t.Mapping[int, Names],
    free: t.Sequence[Names],
    rules: Rules,
) -> tuple[Cost, dict[int, Names]] | None:
    """Give each GPU instance of a profile (by start; None where it is still to be made) a layout, so that least is changed.

    ``bound`` layouts are wished at a start, ``free`` ones anywhere. Instances that nobody wished get none. None: the rules forbid it.
    """
    starts = [start for start in sorted(slots) if start not in bound]
    known: dict[tuple[int, tuple[Names, ...]], tuple[Cost, tuple[Names, ...]] | None] = {}

    def price(start: int, layout: Names) -> Cost | None:
        instance = slots[start]
        if instance is None or layout == _UNWISHED:
            return 0, 0
        change = repair(instance, layout, profile, rules)
        return change.cost if change else None

    def cheapest(position: int, left: tuple[Names, ...]) -> tuple[Cost, tuple[Names, ...]] | None:
        if position == len(starts):
            return (0, 0), ()
        if (position, left) not in known:
            found = []
            for layout in dict.fromkeys(left):
                cost = price(starts[position], layout)
                number = left.index(layout)
                rest = cheapest(position + 1, left[:number] + left[number + 1 :]) if cost else None
                if cost and rest:
                    found.append((_sum(cost, rest[0]), (layout, *rest[1])))
            known[position, left] = min(found, default=None)
        return known[position, left]

    unwished = [_UNWISHED] * (len(starts) - len(free))
    best = cheapest(0, tuple(sorted([*free, *unwished])))
    fixed = [price(start, layout) for start, layout in bound.items()]
    if best is None or None in fixed:
        return None
    total = best[0]
    for cost in fixed:
        total = _sum(total, cost or (0, 0))
    layouts = {start: layout for start, layout in zip(starts, best[1]) if layout != _UNWISHED}
    return total, {**layouts, **bound}


def _sum(one: Cost, other: Cost) -> Cost:
    return one[0] + other[0], one[1] + other[1]


def _slices(name: str, profile: Profile) -> int | None:
    """Return the compute slices of a compute instance by its name, None if it is none of this profile's."""
    if name.lower() == profile.name.lower():
        return profile.slices
    size = re.match(r"^([1-9])c\.(.*)$", name.lower())
    if not size or size.group(2) != profile.name.lower() or int(size.group(1)) >= profile.slices:
        return None
    return int(size.group(1))


def _spell(name: str, profile: Profile) -> str:
    slices = _slices(name, profile) or profile.slices
    return profile.name if slices == profile.slices else f"{slices}c.{profile.name}"


def _surplus(there: t.Sequence[ComputeInstance], layout: Names) -> tuple[ComputeInstance, ...]:
    """Return those that are more than the layout has; of equal ones the last."""
    left = Counter(layout)
    surplus = []
    for compute in sorted(there, key=lambda one: one.id):
        if left[compute.profile]:
            left[compute.profile] -= 1
        else:
            surplus.append(compute)
    return tuple(surplus)
