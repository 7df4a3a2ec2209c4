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
from ansible_collections.gpuops.sharing.plugins.module_utils._mig import compute
from ansible_collections.gpuops.sharing.plugins.module_utils._mig.card import Card
from ansible_collections.gpuops.sharing.plugins.module_utils._mig.planner import Creation, Plan

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
    return {entry[1]: tuple(_compute_profile(*kind) for kind in entry[6]) for entry in RAW[machine]}


def _compute_profile(number: int, name: str, slices: int, most: int) -> ComputeProfile:
    """Side by side, as the mocked driver has them."""
    return ComputeProfile(number, name, slices, most, tuple(Placement(one * slices, slices) for one in range(most)))


def gpu(name: str = "A100") -> Gpu:
    return Gpu(index=0, uuid="GPU-1", name=name, mig=Mig(capable=True, current=True, pending=True))


def instance(machine: str, place: Place, number: int, compute: t.Sequence[str] | None = None) -> GpuInstance:
    """A GPU instance with the compute instance that fills it, or with others (1c.3g.20gb, 1c.3g.20gb:2), each at its first free place."""
    profile = next(profile for profile in profiles(machine) if profile.name == place[0])
    placement = next(placement for placement in profile.placements if placement.start == place[1])
    parts: list[ComputeInstance] = []
    for order, text in enumerate([place[0]] if compute is None else compute):
        name, _colon, start = text.partition(":")
        kind = next(kind for kind in compute_profiles(machine)[place[0]] if kind.name == name)
        at = next(
            one
            for one in kind.placements
            if (str(one.start) == start if start else not any(part.placement.overlaps(one) for part in parts))
        )
        parts.append(ComputeInstance(order, name, at, f"MIG-{number}-{at.start}"))
    return GpuInstance(number, place[0], placement, tuple(parts))


def card(machine: str, *instances: GpuInstance) -> Card:
    return Card(gpu(), profiles(machine), instances, compute_profiles(machine))


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
            self.instances[number] = instance(self.machine, state[-1], number, self._placed(creation))
            self._check_compute(number)
        for change in plan.repair:
            number = change.instance.id
            assert self.instances[number] == change.instance
            assert not (change.destroy and number in self.protected), f"{change} destroys in what must stay"
            left = [part for part in change.instance.compute_instances if part not in change.destroy]
            assert len(left) + len(change.destroy) == len(change.instance.compute_instances)
            made = [
                ComputeInstance(50 + order, share.name, self._place(number, share), None)
                for order, share in enumerate(change.create)
            ]
            self.instances[number] = change.instance._replace(compute_instances=(*left, *made))
            self._check_compute(number)

    def _placed(self, creation: Creation) -> list[str]:
        """What a new GPU instance is divided into, once the driver could be asked for the places."""
        kinds = compute_profiles(self.machine)[creation.profile.name]
        places = compute.place(creation.compute, creation.profile, kinds)
        assert all(share.start in (compute.ANYWHERE, place.start) for share, place in zip(creation.compute, places))
        return [f"{share.name}:{place.start}" for share, place in zip(creation.compute, places)]

    def _place(self, number: int, share: compute.Share) -> Placement:
        kinds = compute_profiles(self.machine)[self.instances[number].profile]
        kind = next(kind for kind in kinds if kind.name == share.name)
        start = max(share.start, 0)  # one that fills a GPU instance is not told where
        return next(place for place in kind.placements if place.start == start)

    def _check_compute(self, number: int) -> None:
        parts = self.instances[number].compute_instances
        places = {kind.name: kind.placements for kind in compute_profiles(self.machine)[self.instances[number].profile]}
        units = [unit for one in parts for unit in range(one.placement.start, one.placement.end)]
        assert len(units) == len(set(units)), f"{parts} overlap"
        assert all(one.placement in places[one.profile] for one in parts)

    def compute(self, number: int) -> list[str]:
        return sorted(part.profile for part in self.instances[number].compute_instances)

    def compute_places(self, number: int) -> set[str]:
        return {f"{part.profile}:{part.placement.start}" for part in self.instances[number].compute_instances}

    def state(self) -> list[Place]:
        return sorted((one.profile, one.placement.start) for one in self.instances.values())
