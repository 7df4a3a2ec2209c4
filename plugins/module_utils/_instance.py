# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. Frozen values that describe MIG: profiles, placements and instances. No I/O."""

from __future__ import annotations

import typing as t


class Placement(t.NamedTuple):
    """Where an instance lies, in the driver's own units (memory slices: 8 on A100, 4 on A30, 12 on RTX PRO 6000)."""

    start: int
    size: int

    @property
    def end(self) -> int:
        """The first unit behind it."""
        return self.start + self.size

    @property
    def mask(self) -> int:
        """Its units as bits, the first unit lowest."""
        return ((1 << self.size) - 1) << self.start

    def overlaps(self, other: Placement) -> bool:
        """Whether both need the same unit."""
        return self.start < other.end and other.start < self.end


class Profile(t.NamedTuple):
    """A kind of GPU instance that a card's driver offers. Names and ids differ between cards of one node: never from a table."""

    id: int  # what nvidia-smi mig -lgip prints and -cgi takes
    name: str  # 1g.5gb, 1g.5gb+me: without the word MIG
    slices: int  # compute slices
    memory_mib: int
    most: int  # instances on an empty card
    placements: tuple[Placement, ...]


class ComputeProfile(t.NamedTuple):
    """A kind of compute instance that a GPU instance offers."""

    id: int  # what nvidia-smi mig -lcip prints and -cci takes
    name: str  # 1c.3g.20gb; the one that fills the GPU instance has its name, 3g.20gb
    slices: int
    most: int  # in an empty GPU instance
    placements: tuple[Placement, ...] = ()  # in compute slices; empty where the driver cannot tell (470)


class ComputeInstance(t.NamedTuple):
    """A compute instance: what CUDA sees as a MIG device."""

    id: int
    profile: str
    placement: Placement
    uuid: str | None
    processes: tuple[int, ...] = ()  # pids


class GpuInstance(t.NamedTuple):
    """A GPU instance with its compute instances. Ids are read, never predicted: boards number differently."""

    id: int
    profile: str
    placement: Placement
    compute_instances: tuple[ComputeInstance, ...] = ()

    @property
    def processes(self) -> tuple[int, ...]:
        """Every process in it."""
        return tuple(sorted({pid for instance in self.compute_instances for pid in instance.processes}))


def compute_name(name: str, profile: str) -> str:
    """Return a compute instance's name in a GPU instance; drivers of the 470 series call the one that fills 1g.5gb+me 1g.5gb."""
    return profile if profile.startswith(f"{name}+") else name
