# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. The best places for given numbers of instances: an exact search on bit masks. Pure functions."""

from __future__ import annotations

import itertools
import typing as t

from .._instance import Profile

Starts = tuple[int, ...]
Cost = tuple[int, int]  # compute instances destroyed, created
Price = t.Callable[["Kind", Starts], t.Optional[Cost]]


class Kind(t.NamedTuple):
    """How many instances of a profile shall be in the end, those that must be at a start, and those that are there now."""

    profile: Profile
    total: int
    must: frozenset[int]
    there: t.Mapping[int, t.Any]  # GPU instances, or compute instances in one, by start

    @property
    def masks(self) -> dict[int, int]:
        """The units of each start."""
        legal = {placement.start: placement.mask for placement in self.profile.placements}
        return {**legal, **{start: instance.placement.mask for start, instance in self.there.items()}}

    def kept(self, starts: t.Iterable[int]) -> Starts:
        """Those of the starts that are there now."""
        return tuple(start for start in starts if start in self.there)


class _Choice(t.NamedTuple):
    kept: int
    cost: Cost
    mask: int
    starts: Starts


def order(kinds: t.Iterable[Kind]) -> list[Kind]:
    """Return the kinds largest first, in an order that does not depend on how they came."""
    return sorted(kinds, key=lambda kind: size(kind.profile))


def size(profile: Profile) -> tuple[int, int, str]:
    """What sorts profiles largest first."""
    return -max((placement.size for placement in profile.placements), default=0), -profile.slices, profile.name


def best(kinds: t.Sequence[Kind], room: t.Sequence[int], price: Price) -> list[Starts] | None:
    """Return the starts of each kind in the end, or None if there is no room.

    As many as possible of those there stay; then least is done to their compute instances (``price`` says how much; None: it must not
    be); then most of the masks in ``room`` stay free; then the lowest starts, those of the first kinds first.
    """
    choices = [_choices(kind, price) for kind in kinds]
    reach = [0]
    for options in reversed(choices):
        reach.insert(0, reach[0] + max((option.kept for option in options), default=0))
    usefulness: dict[int, int] = {}
    found: tuple[t.Any, list[Starts]] | None = None

    def descend(depth: int, occupied: int, taken: list[_Choice]) -> None:
        nonlocal found
        kept = sum(choice.kept for choice in taken)
        if found and -found[0][0] > kept + reach[depth]:
            return
        if depth < len(choices):
            for choice in choices[depth]:
                if not choice.mask & occupied:
                    descend(depth + 1, occupied | choice.mask, [*taken, choice])
            return
        if occupied not in usefulness:
            usefulness[occupied] = sum(1 for mask in room if not mask & occupied)
        destroyed, created = (sum(choice.cost[part] for choice in taken) for part in (0, 1))
        starts = [choice.starts for choice in taken]
        score = (-kept, destroyed, created, -usefulness[occupied], starts)
        if found is None or score < found[0]:
            found = score, starts

    descend(0, 0, [])
    return found[1] if found else None


def _choices(kind: Kind, price: Price) -> list[_Choice]:
    """Return every set of starts that a kind alone can have, those that keep most first."""
    masks = kind.masks
    prices: dict[Starts, Cost | None] = {}
    choices = []
    others = sorted(set(masks) - kind.must)
    for more in itertools.combinations(others, kind.total - len(kind.must)):
        starts = tuple(sorted([*kind.must, *more]))
        mask = 0
        for start in starts:
            if masks[start] & mask:
                break
            mask |= masks[start]
        else:
            kept = kind.kept(starts)
            if kept not in prices:
                prices[kept] = price(kind, starts)
            cost = prices[kept]
            if cost is not None:
                choices.append(_Choice(len(kept), cost, mask, starts))
    return sorted(choices, key=lambda choice: (-choice.kept, choice.starts))
