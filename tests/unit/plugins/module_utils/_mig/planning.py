# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Plans made the short way: a wish as a task writes it, met with what is there."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.gpuops.sharing.plugins.module_utils._errors import SharingError
from ansible_collections.gpuops.sharing.plugins.module_utils._instance import GpuInstance
from ansible_collections.gpuops.sharing.plugins.module_utils._mig import layout, planner
from ansible_collections.gpuops.sharing.plugins.module_utils._mig.layout import Layout
from ansible_collections.gpuops.sharing.plugins.module_utils._mig.planner import Plan
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils._mig import machines
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils._mig.machines import instance

A100, A30, RTX = "A100-40GB", "A30-24GB", "RTX-PRO-6000-Blackwell"
BUSY = {13: "in use by processes 41, 42"}
Wish = t.Union[str, dict[str, t.Any]]


def wanted(wish: t.Sequence[Wish] | None, enabled: bool = True) -> Layout:
    entries = None if wish is None else [{"profile": one} if isinstance(one, str) else one for one in wish]
    return layout.parse([{"gpus": [0], "enabled": enabled, "instances": entries}])[0]


def plan(
    wish: t.Sequence[Wish] | None,
    *there: GpuInstance,
    machine: str = A100,
    purge: bool = False,
    protected: dict[int, str] | None = None,
    enabled: bool = True,
) -> Plan:
    return planner.make(machines.card(machine, *there), wanted(wish, enabled), purge, protected)


def made(result: Plan) -> list[str]:
    return [f"{one.profile.name}@{one.placement.start}" for one in result.create]


def message(kind: type[SharingError], *args: t.Any, **options: t.Any) -> str:
    with pytest.raises(kind) as failure:
        plan(*args, **options)
    return failure.value.message


def a100(place: str, number: int, compute: t.Sequence[str] | None = None) -> GpuInstance:
    name, _at, start = place.partition("@")
    return instance(A100, (name, int(start)), number, compute)
