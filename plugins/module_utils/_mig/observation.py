# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. What is there of a host's cards, and which of their instances must stay; nothing is changed here."""

from __future__ import annotations

import functools
import typing as t

from .. import _selection
from .._driver.interface import MigDriver
from .._errors import CommandFailed, DoesNotFit, NotSupported
from .._gpu import Gpu, Mig
from .._instance import GpuInstance
from .._mps import process
from . import compute, holders
from .card import Card
from .layout import Layout, Protected

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

    def __init__(self, driver: MigDriver, protect: t.Sequence[Protected]) -> None:
        self._driver = driver
        self._protect = protect
        self.daemons: t.Sequence[process.Found] = ()

    def read(self, pairs: Pairs) -> list[Reading]:
        """Return what is there of each card. Raises DoesNotFit where ``protect`` names what is not there."""
        self.daemons = process.daemons()
        readings = [self._twice(functools.partial(self._read, gpu, layout)) for gpu, layout in pairs]
        # A GPU instance of a card that this task does not touch needs no protection.
        cards = {gpu.uuid for gpu, _layout in pairs}
        unknown = [
            one.text
            for one in self._protect
            if (one.device or one.card in cards) and not any(_protects(one, reading) for reading in readings)
        ]
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
        return self._twice(lambda: self._read(gpu._replace(mig=self._driver.mig_mode(gpu)), layout))

    def _twice(self, read: t.Callable[[], Reading]) -> Reading:
        """An instance may vanish between list and detail: somebody else works on the card. Look once more."""
        try:
            return read()
        except CommandFailed:
            return read()

    def _read(self, gpu: Gpu, layout: Layout) -> Reading:
        mig = gpu.mig or Mig(False, False, False)
        instances = self._driver.instances(gpu) if mig.current else ()
        wanted = layout.enabled and layout.instances is not None
        card = self._card(gpu, layout, instances) if wanted or instances else Card(gpu, ())
        return Reading(gpu, layout, mig, card, self._protected(gpu, instances))

    def _card(self, gpu: Gpu, layout: Layout, instances: tuple[GpuInstance, ...]) -> Card | None:
        try:
            profiles = self._driver.mig_profiles(gpu)
        except NotSupported:
            if gpu.mig and gpu.mig.current:
                raise
            return None
        # What a GPU instance can be divided into can be asked only of one that is there.
        divided = {wish.profile for wish in layout.instances or () if wish.compute}
        asked = {one.profile: one.id for one in instances if one.profile.lower() in divided}
        offered = {
            name: compute.known_as(self._driver.compute_profiles(gpu, number), name) for name, number in asked.items()
        }
        return Card(gpu, profiles, instances, offered)

    def _protected(self, gpu: Gpu, instances: t.Sequence[GpuInstance]) -> dict[int, str]:
        reasons = {}
        for instance in instances:
            served = [
                found.pid for found in self.daemons if any(_is_in(name, gpu, instance) for name in _visible(found))
            ]
            if instance.processes:
                reasons[instance.id] = (
                    f"in use by {', '.join(str(holders.describe(pid)) for pid in instance.processes)}"
                )
            elif served:
                reasons[instance.id] = f"served by the MPS control daemon {served[0]}"
            elif any(_means(one, gpu, instance) for one in self._protect):
                reasons[instance.id] = "protected by this task"
        return reasons

    def daemon_of(self, gpu: Gpu) -> process.Found | None:
        """Return the MPS control daemon that serves the whole card, if there is one; without CUDA_VISIBLE_DEVICES it serves all."""
        for found in self.daemons:
            names = _visible(found)
            if found.environment and (not names or any(_is_card(name, gpu) for name in names)):
                return found
        return None


def _visible(found: process.Found) -> list[str]:
    value = found.environment.get("CUDA_VISIBLE_DEVICES", "")
    return [name.strip() for name in value.split(",") if name.strip()]


def _is_card(name: str, gpu: Gpu) -> bool:
    """Whether an entry of CUDA_VISIBLE_DEVICES is this card; the beginning of a UUID will do (CUDA Programming Guide)."""
    if name.upper().startswith("GPU-"):
        return str(gpu.uuid).lower().startswith(name.lower())
    return _selection.find(name, [gpu]) is not None


def _is_in(name: str, gpu: Gpu, instance: GpuInstance) -> bool:
    """Whether an entry of CUDA_VISIBLE_DEVICES is a MIG device in this GPU instance, also in the form of drivers before 470."""
    old = f"MIG-{gpu.uuid}/{instance.id}/".lower()
    uuids = [str(part.uuid).lower() for part in instance.compute_instances if part.uuid]
    begin = name.lower()
    return begin.startswith("mig-") and (begin.startswith(old) or any(uuid.startswith(begin) for uuid in uuids))


def _means(one: Protected, gpu: Gpu, instance: GpuInstance) -> bool:
    if one.device:
        return one.device in {str(part.uuid).lower() for part in instance.compute_instances}
    return (one.card, one.instance) == (gpu.uuid, instance.id)


def _protects(one: Protected, reading: Reading) -> bool:
    return any(_means(one, reading.gpu, instance) for instance in (reading.card.instances if reading.card else ()))
