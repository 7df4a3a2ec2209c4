# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. A plan as steps, each one call that changes the card, with the call that takes it back."""

from __future__ import annotations

import typing as t

from .._convergence.steps import Step
from .._driver.interface import MigDriver
from .._errors import DoesNotFit, NotSupported
from .._gpu import Gpu
from .._instance import ComputeInstance, ComputeProfile, GpuInstance, Placement
from .card import Card
from .planner import Creation, Plan, Repair


class _Place(t.NamedTuple):
    """Where a step works: a GPU instance that has an id by then, which may be a new one."""

    gpu: Gpu
    profile: str
    placement: Placement
    ids: list[int]

    @property
    def text(self) -> str:
        return f"{self.profile} at {self.placement.start}:{self.placement.size} of GPU {self.gpu.index}"


class Cutter:
    """Makes and destroys instances."""

    def __init__(self, driver: MigDriver) -> None:
        self._driver = driver
        self._offered: dict[tuple[str | None, str], tuple[ComputeProfile, ...]] = {}

    def steps(self, card: Card, plan: Plan) -> list[Step]:
        """Return the steps of a plan in order."""
        steps: list[Step] = []
        for instance in plan.destroy:
            steps += self._destroy(card, instance)
        for creation in plan.create:
            steps += self._create(card.gpu, creation)
        for repair in plan.repair:
            steps += self._repair(card.gpu, repair)
        return steps

    def empty(self, gpu: Gpu) -> None:
        """Destroy all that is on a card."""
        for instance in self._driver.instances(gpu):
            for part in instance.compute_instances:
                self._driver.destroy_compute_instance(gpu, instance.id, part.id)
            self._driver.destroy_gpu_instance(gpu, instance.id)

    def _destroy(self, card: Card, instance: GpuInstance) -> list[Step]:
        at = _Place(card.gpu, instance.profile, instance.placement, [instance.id])

        def again() -> None:
            profile = card.profile(instance.profile)
            if profile is None:
                raise NotSupported(f"the driver offers no profile {instance.profile} any more")
            at.ids.append(self._driver.create_gpu_instance(card.gpu, profile, instance.placement))

        # The last one first, so that they come back in the old order, to their old places.
        steps = [self._destroy_part(at, part) for part in reversed(instance.compute_instances)]
        text = f"destroy GPU instance {instance.id}, {at.text}"
        return [*steps, Step(text, lambda: self._driver.destroy_gpu_instance(card.gpu, instance.id), again)]

    def _create(self, gpu: Gpu, creation: Creation) -> list[Step]:
        profile, placement = creation.profile, creation.placement
        at = _Place(gpu, profile.name, placement, [])
        step = Step(
            f"create GPU instance {at.text}",
            lambda: at.ids.append(self._driver.create_gpu_instance(gpu, profile, placement)),
            lambda: self._driver.destroy_gpu_instance(gpu, at.ids[-1]),
        )
        return [step, *(self._create_part(at, name) for name in creation.compute)]

    def _repair(self, gpu: Gpu, repair: Repair) -> list[Step]:
        instance = repair.instance
        at = _Place(gpu, instance.profile, instance.placement, [instance.id])
        steps = [self._destroy_part(at, part) for part in reversed(repair.destroy)]
        return steps + [self._create_part(at, name) for name in repair.create]

    def _create_part(self, at: _Place, name: str) -> Step:
        made: list[int] = []
        return Step(
            f"create compute instance {name} in {at.text}",
            lambda: made.append(self._make(at, name)),
            lambda: self._driver.destroy_compute_instance(at.gpu, at.ids[-1], made[-1]),
        )

    def _destroy_part(self, at: _Place, part: ComputeInstance) -> Step:
        def again() -> None:
            self._make(at, part.profile)

        return Step(
            f"destroy compute instance {part.id}, {part.profile} in {at.text}",
            lambda: self._driver.destroy_compute_instance(at.gpu, at.ids[-1], part.id),
            again,
        )

    def _make(self, at: _Place, name: str) -> int:
        return self._driver.create_compute_instance(at.gpu, at.ids[-1], self._profile(at, name))

    def _profile(self, at: _Place, name: str) -> ComputeProfile:
        key = (at.gpu.name, at.profile)
        if key not in self._offered:
            self._offered[key] = self._driver.compute_profiles(at.gpu, at.ids[-1])
        found = next((offered for offered in self._offered[key] if _means(offered, name, at.profile)), None)
        if found is None:
            names = ", ".join(offered.name for offered in self._offered[key])
            raise DoesNotFit(f"A GPU instance {at.text} offers no compute instance {name}; it offers {names}")
        return found


def _means(offered: ComputeProfile, name: str, profile: str) -> bool:
    """The one that fills a GPU instance 1g.5gb+me is called 1g.5gb by drivers of the 470 series."""
    fills = name == profile and profile.startswith(f"{offered.name}+")
    return offered.name == name or fills
