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
    if not isinstance(raw, t.Mapping) or "gpus" in raw:
        shown = "a list" if isinstance(raw, (list, tuple)) else "a mapping" if isinstance(raw, t.Mapping) else raw
        raise BadOption("card", shown, f"is no card; {_CARD}")
    try:
        name, uuid = (str(raw[key]) if raw.get(key) else None for key in ("name", "uuid"))
        gpu = Gpu(index=int(raw.get("index", 0)), name=name, uuid=uuid)
        if not raw.get("profiles"):
            raise BadOption("card", gpu.label, f"tells no MIG profiles; {_CARD}. {_PROFILES}")
        profiles = tuple(_read_profile(entry) for entry in raw["profiles"])
        state = raw if "instances" in raw else raw.get("after") or {}
        instances = tuple(
            GpuInstance(int(entry.get("gi_id", -1)), str(entry["profile"]), _read_placement(entry["placement"]))
            for entry in state.get("instances") or ()
        )
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as exc:
        raise BadOption("card", "a mapping", f"cannot be read ({type(exc).__name__}: {exc}); {_CARD}") from exc
    return Card(gpu, profiles, instances)


_CARD = "give one entry of gpus in the result of nvidia_mig, like looked.gpus[0]"
_MOST = 1024  # far more than any card has of anything
_PROFILES = (
    "nvidia_mig tells a card's profiles only if its layout gives instances ([] will do) or instances exist, "
    "and some drivers tell them only while MIG mode is on"
)


def _read_profile(raw: t.Mapping[str, t.Any]) -> Profile:
    return Profile(
        int(raw.get("id", -1)),
        str(raw["name"]),
        _read_number(raw["slices"], 1),
        int(raw.get("memory_mib") or 0),
        _read_number(raw["most"], 0),
        tuple(_read_placement(entry) for entry in raw["placements"]),
    )


def _read_placement(raw: t.Any) -> Placement:
    start, size = (raw["start"], raw["size"]) if isinstance(raw, t.Mapping) else raw
    return Placement(_read_number(start, 0), _read_number(size, 1))


def _read_number(raw: t.Any, least: int) -> int:
    """Places become bits of a number, so what no card has must not get that far."""
    if not least <= int(raw) <= _MOST:
        raise ValueError(f"{raw} is not from {least} to {_MOST}")
    return int(raw)
