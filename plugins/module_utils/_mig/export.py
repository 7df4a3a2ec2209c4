# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. Cards as layouts that lead to just what they are: to bring back after a reboot, or to copy. Pure functions."""

from __future__ import annotations

import typing as t

from .._gpu import Gpu
from .planner import Plan


def layout(gpu: Gpu, enabled: bool, plan: Plan | None) -> dict[str, t.Any]:
    """Return the layout of a card after a plan, by UUID and with every place; only its mode where the plan is not known yet."""
    if not enabled or plan is None:
        return {"gpus": [gpu.uuid], "enabled": enabled}
    changes = {change.instance.id: change for change in plan.repair}
    entries = []
    for instance in plan.keep:
        names = [part.profile for part in instance.compute_instances]
        if instance.id in changes:
            change = changes[instance.id]
            names = [part.profile for part in instance.compute_instances if part not in change.destroy]
            names += change.create
        entries.append(_entry(instance.profile, instance.placement.start, names))
    entries += [_entry(one.profile.name, one.placement.start, one.compute) for one in plan.create]
    return {"gpus": [gpu.uuid], "enabled": True, "instances": sorted(entries, key=lambda entry: entry["start"])}


def _entry(profile: str, start: int, compute: t.Sequence[str]) -> dict[str, t.Any]:
    entry: dict[str, t.Any] = {"profile": profile, "start": start}
    if compute and list(compute) != [profile]:
        entry["compute_instances"] = list(compute)
    return entry
