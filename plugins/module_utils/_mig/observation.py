# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. What is there of a host's cards, and which of their instances must stay; nothing is changed here."""

from __future__ import annotations

import typing as t

from .. import _selection
from .._driver.interface import MigDriver
from .._errors import CommandFailed, DoesNotFit, NotSupported
from .._gpu import Gpu, Mig
from .._instance import GpuInstance
from .._mps import process
from . import holders
from .card import Card
from .layout import Layout

Pairs = t.Sequence[tuple[Gpu, Layout]]


class Reading(t.NamedTuple):
    """What was read of a card. ``card`` is None where its driver tells profiles only with MIG mode on."""

    gpu: Gpu
    layout: Layout
    mig: Mig
    card: Card | None
    protected: dict[int, str]

    @property
    def switches(self) -> bool:
        """Whether the mode has to change, now or from what is pending."""
        return self.layout.enabled != self.mig.current or self.layout.enabled != self.mig.pending


class Observer:
    """A host's cards, to look at. ``protect`` names instances that must stay although the driver shows nobody in them."""

    def __init__(self, driver: MigDriver, protect: t.Sequence[str]) -> None:
        self._driver = driver
        self._protect = {name.strip() for name in protect} - {""}
        self.daemons: t.Sequence[process.Found] = ()

    def read(self, pairs: Pairs) -> list[Reading]:
        """Return what is there of each card. Raises DoesNotFit where ``protect`` names what is not there."""
        self.daemons = process.daemons()
        readings = [self._read(gpu, layout) for gpu, layout in pairs]
        known = {name for reading in readings for name in _names(reading)}
        unknown = sorted(name for name in self._protect - known if not _elsewhere(name, pairs))
        if unknown:
            raise DoesNotFit(
                f"protect: {', '.join(unknown)}: there is no such MIG device or GPU instance on the cards of this task; "
                "nvidia-smi -L and nvidia-smi mig -lgi list them"
            )
        return readings

    def read_again(self, readings: t.Sequence[Reading]) -> list[Reading]:
        """Return the same cards as they are now."""
        return [self.look(one.gpu, one.layout) for one in readings]

    def look(self, gpu: Gpu, layout: Layout) -> Reading:
        """Return a card as it is now."""
        return self._read(gpu._replace(mig=self._driver.mig_mode(gpu)), layout)

    def _read(self, gpu: Gpu, layout: Layout) -> Reading:
        mig = gpu.mig or Mig(False, False, False)
        instances = self._instances(gpu) if mig.current else ()
        card = self._card(gpu, instances) if layout.instances is not None or instances else Card(gpu, ())
        return Reading(gpu, layout, mig, card, self._protected(gpu, instances))

    def _instances(self, gpu: Gpu) -> tuple[GpuInstance, ...]:
        """An instance may vanish between list and detail: somebody else works on the card. Look once more."""
        try:
            return self._driver.instances(gpu)
        except CommandFailed:
            return self._driver.instances(gpu)

    def _card(self, gpu: Gpu, instances: tuple[GpuInstance, ...]) -> Card | None:
        try:
            return Card(gpu, self._driver.mig_profiles(gpu), instances)
        except NotSupported:
            if gpu.mig and gpu.mig.current:
                raise
            return None

    def _protected(self, gpu: Gpu, instances: t.Sequence[GpuInstance]) -> dict[int, str]:
        reasons = {}
        for instance in instances:
            uuids = {part.uuid for part in instance.compute_instances if part.uuid}
            served = [found.pid for found in self.daemons if uuids & set(_visible(found))]
            if instance.processes:
                reasons[instance.id] = (
                    f"in use by {', '.join(str(holders.describe(pid)) for pid in instance.processes)}"
                )
            elif served:
                reasons[instance.id] = f"served by the MPS control daemon {served[0]}"
            elif self._protect & {*uuids, *_addresses(gpu, instance)}:
                reasons[instance.id] = "protected by this task"
        return reasons

    def daemon_of(self, gpu: Gpu) -> process.Found | None:
        """Return the MPS control daemon that serves the whole card, if there is one; without CUDA_VISIBLE_DEVICES it serves all."""
        for found in self.daemons:
            names = _visible(found)
            if found.environment and (not names or any(_selection.find(name, [gpu]) for name in names)):
                return found
        return None


def _visible(found: process.Found) -> list[str]:
    value = found.environment.get("CUDA_VISIBLE_DEVICES", "")
    return [name.strip() for name in value.split(",") if name.strip()]


def _addresses(gpu: Gpu, instance: GpuInstance) -> set[str]:
    return {f"{gpu.index}/{instance.id}", f"{gpu.uuid}/{instance.id}"}


def _names(reading: Reading) -> set[str]:
    """Every way that ``protect`` may name what is on a card."""
    names = set()
    for instance in reading.card.instances if reading.card else ():
        names |= _addresses(reading.gpu, instance)
        names |= {part.uuid for part in instance.compute_instances if part.uuid}
    return names


def _elsewhere(name: str, pairs: Pairs) -> bool:
    """A GPU instance of a card that this task does not touch needs no protection."""
    card = name.rpartition("/")[0]
    return bool(card) and card not in {key for gpu, _layout in pairs for key in (str(gpu.index), str(gpu.uuid))}
