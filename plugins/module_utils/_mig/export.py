# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. Cards as layouts that lead to just what they are: to bring back after a reboot, or to copy. Pure functions."""

from __future__ import annotations

import typing as t

from .._gpu import Gpu
from . import compute
from .planner import Plan


def layout(gpu: Gpu, enabled: bool, plan: Plan | None) -> dict[str, t.Any]:
    """Return the layout of a card after a plan, by UUID and with every place; only its mode where the plan is not known yet."""
    if not enabled or plan is None:
        return {"gpus": [gpu.uuid], "enabled": enabled}
    changes = {change.instance.id: change for change in plan.repair}
    entries = []
    for instance in plan.keep:
        shares = [compute.Share(part.profile, part.placement.start) for part in instance.compute_instances]
        if instance.id in changes:
            change = changes[instance.id]
            gone = {compute.Share(part.profile, part.placement.start) for part in change.destroy}
            shares = [share for share in shares if share not in gone] + [*change.create]
        entries.append(_entry(instance.profile, instance.placement.start, shares))
    entries += [_entry(one.profile.name, one.placement.start, one.compute) for one in plan.create]
    return {"gpus": [gpu.uuid], "enabled": True, "instances": sorted(entries, key=lambda entry: entry["start"])}


def _entry(profile: str, start: int, shares: t.Sequence[compute.Share]) -> dict[str, t.Any]:
    entry: dict[str, t.Any] = {"profile": profile, "start": start}
    if shares and [share.name for share in shares] != [profile]:
        # By place: their ids come out otherwise after a boot.
        entry["compute_instances"] = [compute.show(share) for share in sorted(shares, key=lambda share: share.start)]
    return entry
