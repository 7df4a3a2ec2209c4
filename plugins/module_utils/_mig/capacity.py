# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. How many instances fit, on an empty card or on what is free. Pure functions."""

from __future__ import annotations

import typing as t

from .._errors import BadOption
from .._gpu import Gpu
from .._instance import GpuInstance, Placement, Profile
from . import search
from .card import Card
from .search import Kind


def capacity(card: Card, free: bool) -> dict[str, int]:
    """Return how many more of each profile fit, each taken alone: on the whole card, or beside what is there."""
    return {profile.name: fitting(card, profile, free) for profile in card.profiles}


def fitting(card: Card, profile: Profile, free: bool) -> int:
    """Return how many more of a profile fit."""
    there: dict[str, dict[int, GpuInstance]] = {profile.name: {}}
    for instance in card.instances if free else ():
        there.setdefault(card.profile_of(instance).name, {})[instance.placement.start] = instance
    number = 0
    while _fits(card, profile, number + 1, there):
        number += 1
    return number


def _fits(card: Card, profile: Profile, more: int, there: t.Mapping[str, t.Mapping[int, GpuInstance]]) -> bool:
    kinds = []
    for name, instances in there.items():
        kind = profile if name == profile.name else card.profile_of(next(iter(instances.values())))
        kinds.append(Kind(kind, len(instances) + (more if kind is profile else 0), frozenset(instances), instances))
    if card.complaint({kind.profile.name: kind.total for kind in kinds}):
        return False
    return search.best(search.order(kinds), (), lambda _kind, _starts: (0, 0)) is not None


def read_card(raw: t.Any) -> Card:
    """Return the card of a module's result: a mapping with ``profiles``, and ``instances`` in it or in its ``after``."""
    if not isinstance(raw, t.Mapping) or not raw.get("profiles"):
        raise BadOption("card", raw if isinstance(raw, str) else type(raw).__name__, _NO_CARD)
    try:
        profiles = tuple(_read_profile(entry) for entry in raw["profiles"])
        state = raw if "instances" in raw else raw.get("after") or {}
        instances = tuple(
            GpuInstance(int(entry.get("gi_id", -1)), str(entry["profile"]), _read_placement(entry["placement"]))
            for entry in state.get("instances") or ()
        )
        return Card(
            Gpu(index=int(raw.get("index", 0)), name=raw.get("name"), uuid=raw.get("uuid")), profiles, instances
        )
    except (KeyError, TypeError, ValueError, AttributeError) as exc:
        raise BadOption("card", "a mapping", f"{_NO_CARD} ({type(exc).__name__}: {exc})") from exc


_NO_CARD = "is no card with MIG profiles; give an entry of gpus in the result of nvidia_mig, of a card in MIG mode"


def _read_profile(raw: t.Mapping[str, t.Any]) -> Profile:
    return Profile(
        int(raw.get("id", -1)),
        str(raw["name"]),
        int(raw["slices"]),
        int(raw.get("memory_mib") or 0),
        int(raw["most"]),
        tuple(_read_placement(entry) for entry in raw["placements"]),
    )


def _read_placement(raw: t.Any) -> Placement:
    if isinstance(raw, t.Mapping):
        return Placement(int(raw["start"]), int(raw["size"]))
    start, size = raw
    return Placement(int(start), int(size))
