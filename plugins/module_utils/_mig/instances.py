# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. A plan as steps, each one call that changes the card, with the call that takes it back."""

from __future__ import annotations

from .._convergence.steps import Step
from .._driver.interface import MigDriver
from .._errors import DoesNotFit, NotSupported
from .._gpu import Gpu
from .._instance import ComputeInstance, ComputeProfile, GpuInstance, Placement, Profile
from . import compute
from .card import Card
from .planner import Creation, Plan, Repair


class _Place:
    """Where steps work: a GPU instance, which may be a new one and has an id by then."""

    def __init__(self, gpu: Gpu, profile: Profile, placement: Placement, there: GpuInstance | None = None) -> None:
        self.gpu = gpu
        self.profile = profile
        self.placement = placement
        self.id = there.id if there else -1
        self.parts = {one.id for one in there.compute_instances} if there else set()  # known ones

    @property
    def text(self) -> str:
        return f"{self.profile.name} at {self.placement.start}:{self.placement.size} of GPU {self.gpu.index}"


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
            steps += self._repair(card, repair)
        return steps

    def empty(self, gpu: Gpu) -> None:
        """Destroy all that is on a card."""
        for instance in self._driver.instances(gpu):
            self._remove(gpu, instance)

    def _remove(self, gpu: Gpu, instance: GpuInstance) -> None:
        for part in instance.compute_instances:
            self._driver.destroy_compute_instance(gpu, instance.id, part.id)
        self._driver.destroy_gpu_instance(gpu, instance.id)

    def _now(self, at: _Place) -> GpuInstance | None:
        """What lies at a place now, whatever an answer said."""
        found = (one for one in self._driver.instances(at.gpu) if one.placement == at.placement)
        return next((one for one in found if one.profile == at.profile.name), None)

    def _destroy(self, card: Card, instance: GpuInstance) -> list[Step]:
        at = _Place(card.gpu, card.profile_of(instance), instance.placement, instance)

        def again() -> None:
            if card.profile(instance.profile) is None:
                raise NotSupported(f"the driver offers no profile {instance.profile} any more")
            self._make_instance(at)

        def settle() -> None:
            if self._now(at) is None:
                again()

        # The last one first, so that they come back in the old order, to their old places.
        steps = [self._destroy_part(at, part) for part in reversed(instance.compute_instances)]
        text = f"destroy GPU instance {instance.id}, {at.text}"
        return [*steps, Step(text, lambda: self._driver.destroy_gpu_instance(at.gpu, at.id), again, settle)]

    def _create(self, gpu: Gpu, creation: Creation) -> list[Step]:
        at = _Place(gpu, creation.profile, creation.placement)

        def settle() -> None:
            made = self._now(at)
            if made and not made.compute_instances:  # one that has some is somebody else's, who came first
                self._remove(gpu, made)

        step = Step(
            f"create GPU instance {at.text}",
            lambda: self._make_instance(at),
            lambda: self._driver.destroy_gpu_instance(gpu, at.id),
            settle,
        )
        places: dict[int, Placement] = {}  # of the compute instances, by their number, once the driver could be asked
        return [
            step,
            *(self._create_part(at, creation.compute, number, places) for number in range(len(creation.compute))),
        ]

    def _make_instance(self, at: _Place) -> None:
        at.id = self._driver.create_gpu_instance(at.gpu, at.profile, at.placement)
        at.parts = set()

    def _repair(self, card: Card, repair: Repair) -> list[Step]:
        instance = repair.instance
        at = _Place(card.gpu, card.profile_of(instance), instance.placement, instance)
        steps = [self._destroy_part(at, part) for part in reversed(repair.destroy)]
        return steps + [self._create_part(at, (share,), 0, {}) for share in repair.create]

    def _create_part(self, at: _Place, shares: compute.Shares, number: int, places: dict[int, Placement]) -> Step:
        share = shares[number]
        made: list[int] = []

        def create() -> None:
            if share.name != at.profile.name and not places:
                offered = self._compute_profiles(at)
                places.update(enumerate(compute.place(shares, at.profile, offered)))
            made.append(self._make_part(at, share.name, places.get(number)))

        return Step(
            f"create compute instance {compute.show(share)} in {at.text}",
            create,
            lambda: self._driver.destroy_compute_instance(at.gpu, at.id, made[-1]),
            lambda: self._settle_part(at, share.name),
        )

    def _settle_part(self, at: _Place, name: str) -> None:
        """Destroy compute instances of a kind that nobody had made before."""
        now = self._now(at)
        for part in now.compute_instances if now else ():
            if part.profile == name and part.id not in at.parts and not part.processes:
                self._driver.destroy_compute_instance(at.gpu, at.id, part.id)

    def _destroy_part(self, at: _Place, part: ComputeInstance) -> Step:
        def destroy() -> None:
            self._driver.destroy_compute_instance(at.gpu, at.id, part.id)
            at.parts.discard(part.id)

        def again() -> None:
            self._make_part(at, part.profile, part.placement)

        def settle() -> None:
            now = self._now(at)
            if now and part.id not in {one.id for one in now.compute_instances}:
                again()

        text = f"destroy compute instance {part.id}, {part.profile} in {at.text}"
        return Step(text, destroy, again, settle)

    def _make_part(self, at: _Place, name: str, place: Placement | None) -> int:
        kind = self._kind(at, name)
        # One that fills the GPU instance has but one place, and old drivers know no places.
        where = place if kind.placements and kind.slices < at.profile.slices else None
        made = self._driver.create_compute_instance(at.gpu, at.id, kind, where)
        at.parts.add(made)
        return made

    def _kind(self, at: _Place, name: str) -> ComputeProfile:
        offered = self._compute_profiles(at)
        found = next((kind for kind in offered if _means(kind, name, at.profile.name)), None)
        if found is None:
            names = ", ".join(kind.name for kind in offered)
            raise DoesNotFit(f"A GPU instance {at.text} offers no compute instance {name}; it offers {names}")
        return found

    def _compute_profiles(self, at: _Place) -> tuple[ComputeProfile, ...]:
        key = (at.gpu.uuid, at.profile.name)
        if key not in self._offered:
            self._offered[key] = self._driver.compute_profiles(at.gpu, at.id)
        return self._offered[key]


def _means(offered: ComputeProfile, name: str, profile: str) -> bool:
    """The one that fills a GPU instance 1g.5gb+me is called 1g.5gb by drivers of the 470 series."""
    fills = name == profile and profile.startswith(f"{offered.name}+")
    return offered.name == name or fills
