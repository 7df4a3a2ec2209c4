# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Cards of every kind whose placements are known, and a simulated one that refuses every step which a driver would refuse.

The rules are written a second time here, in the plainest form, so that the planner is not held against itself.
"""

from __future__ import annotations

import functools
import pathlib
import typing as t

import yaml
from ansible_collections.gpuops.sharing.plugins.module_utils._gpu import Gpu, Mig
from ansible_collections.gpuops.sharing.plugins.module_utils._instance import (
    ComputeInstance,
    ComputeProfile,
    GpuInstance,
    Placement,
    Profile,
)
from ansible_collections.gpuops.sharing.plugins.module_utils._mig.card import Card
from ansible_collections.gpuops.sharing.plugins.module_utils._mig.planner import Plan

DATA = pathlib.Path(__file__).parents[3] / "data" / "mig_profiles.yaml"
RAW: dict[str, list[t.Any]] = yaml.safe_load(DATA.read_text(encoding="utf-8"))
MACHINES = sorted(RAW)

Place = tuple[str, int]  # profile and start


@functools.cache
def profiles(machine: str) -> tuple[Profile, ...]:
    return tuple(
        Profile(number, name, slices, 0, most, tuple(Placement(start, size) for start in starts))
        for number, name, slices, most, starts, size, _compute in RAW[machine]
    )


@functools.cache
def compute_profiles(machine: str) -> dict[str, tuple[ComputeProfile, ...]]:
    return {entry[1]: tuple(ComputeProfile(*kind) for kind in entry[6]) for entry in RAW[machine]}


def gpu(name: str = "A100") -> Gpu:
    return Gpu(index=0, uuid="GPU-1", name=name, mig=Mig(capable=True, current=True, pending=True))


def instance(machine: str, place: Place, number: int, compute: t.Sequence[str] | None = None) -> GpuInstance:
    """A GPU instance with the compute instance that fills it, or with others."""
    profile = next(profile for profile in profiles(machine) if profile.name == place[0])
    placement = next(placement for placement in profile.placements if placement.start == place[1])
    names = [place[0]] if compute is None else compute
    parts = []
    start = 0
    for order, name in enumerate(names):
        slices = compute_slices(machine, place[0], name)
        parts.append(ComputeInstance(order, name, Placement(start, slices), f"MIG-{number}-{order}"))
        start += slices
    return GpuInstance(number, place[0], placement, tuple(parts))


def compute_slices(machine: str, profile: str, name: str) -> int:
    return next(kind.slices for kind in compute_profiles(machine)[profile] if kind.name == name)


def card(machine: str, *instances: GpuInstance) -> Card:
    return Card(gpu(), profiles(machine), instances)


@functools.cache
def table(machine: str) -> dict[str, t.Any]:
    return {entry[1]: entry for entry in RAW[machine]}


def possible(machine: str, state: t.Collection[Place]) -> bool:
    """Whether a card can be cut so."""
    known = table(machine)
    names = [name for name, _start in state]
    units: list[int] = []
    for name, start in state:
        _id, _name, _slices, most, starts, size, _compute = known[name]
        if start not in starts or names.count(name) > most:
            return False
        units += range(start, start + size)
    everything = [name for name in names if name.endswith("+me.all")]
    return (
        len(units) == len(set(units))
        and sum(known[name][2] for name in names) <= max(entry[2] for entry in known.values())
        and sum(1 for name in names if name.endswith("+me")) <= 1
        and (not everything or all(name.endswith("-me") for name in names if name != everything[0]))
        and len(everything) <= 1
    )


class Simulation:
    """A card to which a plan is done, step by step."""

    def __init__(self, machine: str, instances: t.Sequence[GpuInstance], protected: t.Container[int] = ()) -> None:
        self.machine = machine
        self.protected = protected
        self.instances = {one.id: one for one in instances}

    def apply(self, plan: Plan) -> None:
        for one in plan.destroy:
            assert one.id not in self.protected, f"{one} must stay"
            assert self.instances.pop(one.id) == one
        for number, creation in enumerate(plan.create, start=100):
            state = [*self.state(), (creation.profile.name, creation.placement.start)]
            assert possible(self.machine, state), f"{creation} is refused beside {self.state()}"
            self.instances[number] = instance(self.machine, state[-1], number, creation.compute)
            self._check_compute(number)
        for change in plan.repair:
            number = change.instance.id
            assert self.instances[number] == change.instance
            assert not (change.destroy and number in self.protected), f"{change} destroys in what must stay"
            left = [part for part in change.instance.compute_instances if part not in change.destroy]
            assert len(left) + len(change.destroy) == len(change.instance.compute_instances)
            made = [
                ComputeInstance(50 + order, name, Placement(0, 0), None) for order, name in enumerate(change.create)
            ]
            self.instances[number] = change.instance._replace(compute_instances=(*left, *made))
            self._check_compute(number)

    def _check_compute(self, number: int) -> None:
        one = self.instances[number]
        names = self.compute(number)
        most = {kind.name: kind.most for kind in compute_profiles(self.machine)[one.profile]}
        room = next(entry[2] for entry in RAW[self.machine] if entry[1] == one.profile)
        assert sum(compute_slices(self.machine, one.profile, name) for name in names) <= room
        assert all(names.count(name) <= most[name] for name in names)

    def compute(self, number: int) -> list[str]:
        return sorted(part.profile for part in self.instances[number].compute_instances)

    def state(self) -> list[Place]:
        return sorted((one.profile, one.placement.start) for one in self.instances.values())
