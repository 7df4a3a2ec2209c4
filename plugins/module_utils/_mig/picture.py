# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. The slots of a card as a person would draw them, one line a card. Pure functions."""

from __future__ import annotations

import typing as t

from .._instance import Placement
from .card import Card

LEGEND = ". free   * must stay   slots count from 0 at the left"
_NARROWEST = 3


class Block(t.NamedTuple):
    """What lies in some slots."""

    placement: Placement
    text: str


def block(profile: str, placement: Placement, compute: t.Sequence[str], marked: bool = False) -> Block:
    """Return a GPU instance as a block; its compute instances are shown only where they are not the one that fills it."""
    shares = ",".join(sorted(name.partition(".")[0] for name in compute)) or "none"
    inside = "" if list(compute) == [profile] else f"({shares})"
    return Block(placement, f"{profile}{inside}{'*' if marked else ''}")


def now(card: Card, protected: t.Container[int] = ()) -> list[Block]:
    """Return what lies on a card now; a star marks what must stay."""
    return [
        block(one.profile, one.placement, [part.profile for part in one.compute_instances], one.id in protected)
        for one in card.instances
    ]


def slots(units: int, states: t.Sequence[t.Sequence[Block]]) -> list[str]:
    """Return a line of slots for each state, all with slots of the same width."""
    every = [block for state in states for block in state]
    # A block of several slots also has the bars between them.
    width = max([-(-(len(text) + 1 - size) // size) for (_start, size), text in every] + [_NARROWEST])
    return [_line(units, state, width) for state in states]


def _line(units: int, state: t.Sequence[Block], width: int) -> str:
    cells = []
    by_start = {block.placement.start: block for block in state}
    unit = 0
    while unit < units:
        block = by_start.get(unit, Block(Placement(unit, 1), "."))
        size = block.placement.size
        cells.append(block.text.center(width * size + size - 1))
        unit += size
    return f"|{'|'.join(cells)}|"


def show(card: Card, protected: t.Container[int] = ()) -> str:
    """Return the slots of a card now, for a message."""
    return slots(card.units, [now(card, protected)])[0]
