# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. Compute instances in GPU instances: wished layouts, and what leads to them. Pure functions.

The compute instance that fills a GPU instance bears the profile's own name (3g.20gb), a smaller one says its slices (1c.3g.20gb).
"""

from __future__ import annotations

import typing as t
from collections import Counter

from .._errors import BadOption, DoesNotFit
from .._instance import ComputeInstance, ComputeProfile, GpuInstance, Placement, Profile, compute_name
from . import search
from .layout import InstanceWish, nearest
from .search import Cost, Kind

ANYWHERE = -1


class Share(t.NamedTuple):
    """A compute instance that is to be, at a start (in compute slices of its GPU instance) or anywhere."""

    name: str
    start: int = ANYWHERE


Shares = tuple[Share, ...]  # a layout, largest first; empty: any will do
Offered = t.Sequence[ComputeProfile]  # empty where no driver could be asked yet

_UNWISHED: Shares = (Share(""),)  # sorts among layouts, and is none


class Repair(t.NamedTuple):
    """What is to be done to the compute instances of a GPU instance that stays."""

    instance: GpuInstance
    destroy: tuple[ComputeInstance, ...] = ()
    create: Shares = ()

    @property
    def cost(self) -> Cost:
        """What it takes."""
        return len(self.destroy), len(self.create)


class Rules(t.NamedTuple):
    """What may be done to what is there: ``purge`` allows to remove, but never from a protected GPU instance."""

    purge: bool
    protected: t.Mapping[int, str]  # id of GPU instance -> why it must stay


def check(wish: InstanceWish, profile: Profile, offered: Offered) -> Shares:
    """Return a wish's layout in the driver's spelling."""
    option = f"{wish.option}.compute_instances"
    known = {kind.name.lower(): kind for kind in offered}
    shares = [_read(text, option, profile, known) for text in wish.compute]
    shown = ", ".join(wish.compute)
    for share, number in Counter(shares).items():
        if share.start != ANYWHERE and number > 1:
            raise BadOption(option, shown, f"{show(share)} stands there {number} times")
    for name, number in Counter(share.name for share in shares).items():
        kind = known.get(name.lower())
        if kind and number > kind.most:
            raise BadOption(option, shown, f"{profile.name} takes at most {kind.most} of {name}")
    total = sum(slices_of(share.name, profile) for share in shares)
    if total > profile.slices:
        raise BadOption(option, shown, f"these take {total} compute slices, {profile.name} has {profile.slices}")
    # One slice cannot be shared: there is but one layout.
    layout = tuple(sorted(shares if profile.slices > 1 else (), key=lambda share: _order(share, profile)))
    if layout and _best(layout, profile, offered, (), ()) is None:
        raise BadOption(
            option, shown, f"these cannot lie side by side in {profile.name}; {_places(layout, profile, offered)}"
        )
    return layout


def _read(text: str, option: str, profile: Profile, known: t.Mapping[str, ComputeProfile]) -> Share:
    name, _colon, start = text.partition(":")
    slices = _slices(name, profile)
    if slices is None or (known and name not in known):
        told = [kind.name for kind in known.values()]
        examples = told or [f"1c.{profile.name}"] * (profile.slices > 1) + [profile.name]
        raise BadOption(
            option,
            text,
            f"{profile.name} has no such compute instance; did you mean {nearest(name, examples)}? (like {', '.join(examples)})",
        )
    share = Share(
        profile.name if slices == profile.slices else f"{slices}c.{profile.name}", int(start) if start else ANYWHERE
    )
    starts = [place.start for place in _candidates(share.name, profile, tuple(known.values()))]
    if start and int(start) not in starts:
        raise BadOption(
            option, text, f"{share.name} cannot start there in {profile.name}; it can at {', '.join(map(str, starts))}"
        )
    return share


def place(layout: Shares, profile: Profile, offered: Offered) -> list[Placement]:
    """Return where the compute instances of a layout go in a GPU instance that has none. Raises DoesNotFit where they cannot."""
    found = _best(layout, profile, offered, (), ())
    if found is None:
        names = ", ".join(map(show, layout))
        raise DoesNotFit(f"{names} cannot lie side by side in {profile.name}; {_places(layout, profile, offered)}")
    return _in_order(layout, profile, offered, found)


def show(share: Share) -> str:
    """Return how a layout names a compute instance."""
    return share.name if share.start == ANYWHERE else f"{share.name}:{share.start}"


def known_as(offered: Offered, profile: str) -> tuple[ComputeProfile, ...]:
    """Return the kinds of compute instances of a GPU instance by the names that layouts give them."""
    return tuple(kind._replace(name=compute_name(kind.name, profile)) for kind in offered)


def default(layout: Shares, profile: Profile) -> Shares:
    """Return the compute instances to make in a new GPU instance."""
    return layout or (Share(profile.name),)


def repair(instance: GpuInstance, layout: Shares, profile: Profile, rules: Rules, offered: Offered) -> Repair | None:
    """Return what leads a GPU instance to a layout, or None where the rules forbid it."""
    there = instance.compute_instances
    if not layout:
        return Repair(instance, create=() if there else default(layout, profile))
    stay = there if not rules.purge or instance.id in rules.protected else ()
    found = _best(layout, profile, offered, there, stay)
    wished = Counter(share.name for share in layout)
    if found is None or (rules.purge and any(len(starts) > wished[name] for name, starts in found.items())):
        return None
    kept = {(name, start) for name, starts in found.items() for start in starts}
    have = {(one.profile, one.placement.start) for one in there}
    # One that fills the GPU instance needs no start, and to a driver that knows no places only a wished one matters.
    free = {profile.name, *(kind.name for kind in offered if not kind.placements)}
    create = [
        Share(name, ANYWHERE if name in free and Share(name, start) not in layout else start)
        for name, start in kept - have
    ]
    return Repair(
        instance,
        tuple(one for one in there if (one.profile, one.placement.start) not in kept),
        tuple(sorted(create, key=lambda share: _order(share, profile))),
    )


def _best(
    layout: Shares,
    profile: Profile,
    offered: Offered,
    there: t.Sequence[ComputeInstance],
    stay: t.Sequence[ComputeInstance],
) -> dict[str, search.Starts] | None:
    """Return the starts of each kind of compute instance in the end: most of those ``there`` are kept, those in ``stay`` all."""
    kinds = []
    for name in dict.fromkeys([*(share.name for share in layout), *(one.profile for one in stay)]):
        wished = [share.start for share in layout if share.name == name]
        must = {start for start in wished if start != ANYWHERE}
        must |= {one.placement.start for one in stay if one.profile == name}
        places = _candidates(name, profile, offered)
        kind = Profile(0, name, slices_of(name, profile), 0, len(places), places)
        now = {one.placement.start: one for one in there if one.profile == name}
        # Those that stay serve the wishes without a start.
        number = max(len(must), len(wished))
        kinds.append(Kind(kind, number, frozenset(must), now))
    if any(kind.must - set(kind.masks) for kind in kinds):
        return None  # wished at a start that the driver does not offer
    kinds = search.order(kinds)
    found = search.best(kinds, (), lambda _kind, _starts: (0, 0))
    return None if found is None else dict(zip((kind.profile.name for kind in kinds), found))


def _in_order(
    layout: Shares, profile: Profile, offered: Offered, found: t.Mapping[str, search.Starts]
) -> list[Placement]:
    left = {name: list(starts) for name, starts in found.items()}
    for share in layout:
        if share.start != ANYWHERE:
            left[share.name].remove(share.start)
    starts = [left[share.name].pop(0) if share.start == ANYWHERE else share.start for share in layout]
    return [
        next(place for place in _candidates(share.name, profile, offered) if place.start == start)
        for share, start in zip(layout, starts)
    ]


def _candidates(name: str, profile: Profile, offered: Offered) -> tuple[Placement, ...]:
    """Return where a kind of compute instance can lie; where no driver said so yet, wherever there are slices for it."""
    told = [kind.placements for kind in offered if kind.name == name and kind.placements]
    size = slices_of(name, profile)
    return told[0] if told else tuple(Placement(start, size) for start in range(profile.slices - size + 1))


def _places(layout: Shares, profile: Profile, offered: Offered) -> str:
    kinds = {share.name: _candidates(share.name, profile, offered) for share in layout}
    told = [f"{name} at {', '.join(str(one.start) for one in places)}" for name, places in kinds.items()]
    return f"possible starts: {'; '.join(told)}"


def _order(share: Share, profile: Profile) -> tuple[int, int, str]:
    return -slices_of(share.name, profile), share.start, share.name


def match(
    slots: t.Mapping[int, GpuInstance | None],
    profile: Profile,
    bound: t.Mapping[int, Shares],
    free: t.Sequence[Shares],
    rules: Rules,
    offered: Offered = (),
) -> tuple[Cost, dict[int, Shares]] | None:
    """Give each GPU instance of a profile (by start; None where it is still to be made) a layout, so that least is changed.

    ``bound`` layouts are wished at a start, ``free`` ones anywhere. Instances that nobody wished get none. None: the rules forbid it.
    """
    starts = [start for start in sorted(slots) if start not in bound]
    known: dict[tuple[int, tuple[Shares, ...]], tuple[Cost, tuple[Shares, ...]] | None] = {}

    def price(start: int, layout: Shares) -> Cost | None:
        instance = slots[start]
        if instance is None or layout == _UNWISHED:
            return 0, 0
        change = repair(instance, layout, profile, rules, offered)
        return change.cost if change else None

    def cheapest(position: int, left: tuple[Shares, ...]) -> tuple[Cost, tuple[Shares, ...]] | None:
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


def slices_of(name: str, profile: Profile) -> int:
    """Return the compute slices of a compute instance by its name; one that is none of this profile's counts as one."""
    return _slices(name, profile) or 1


def _slices(name: str, profile: Profile) -> int | None:
    """Return the compute slices of a compute instance by its name, None if it is none of this profile's."""
    if name.lower() == profile.name.lower():
        return profile.slices
    size, dot, rest = name.lower().partition("c.")
    if not dot or rest != profile.name.lower() or size not in tuple("123456789") or int(size) >= profile.slices:
        return None
    return int(size)
