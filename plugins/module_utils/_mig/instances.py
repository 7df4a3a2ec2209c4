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

    def _now(self, at: _Place) -> GpuInstance | None:
        """What lies at a place now, whatever an answer said."""
        found = (one for one in self._driver.instances(at.gpu) if one.placement == at.placement)
        return next((one for one in found if one.profile == at.profile.name), None)

    def _destroy(self, card: Card, instance: GpuInstance) -> list[Step]:
        at = _Place(card.gpu, card.profile_of(instance), instance.placement, instance)

        def again() -> bool:
            if self._now(at) is not None:
                return False  # it was not destroyed
            if card.profile(instance.profile) is None:
                raise NotSupported(f"the driver offers no profile {instance.profile} any more")
            self._make_instance(at)
            return True

        # The last one first, so that they come back in the old order, to their old places.
        steps = [self._destroy_part(at, part) for part in reversed(instance.compute_instances)]
        text = f"destroy GPU instance {instance.id}, {at.text}"
        return [*steps, Step(text, lambda: self._driver.destroy_gpu_instance(at.gpu, at.id), again, again)]

    def _create(self, gpu: Gpu, creation: Creation) -> list[Step]:
        at = _Place(gpu, creation.profile, creation.placement)

        def settle() -> bool:
            made = self._now(at)
            # One that has compute instances is somebody else's, who came first.
            if made is None or made.compute_instances:
                return False
            self._driver.destroy_gpu_instance(gpu, made.id)
            return True

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
                places.update(enumerate(compute.place(shares, at.profile, self._compute_profiles(at))))
            made.append(self._make_part(at, share.name, places.get(number), share.start != compute.ANYWHERE))

        return Step(
            f"create compute instance {compute.show(share)} in {at.text}",
            create,
            lambda: self._driver.destroy_compute_instance(at.gpu, at.id, made[-1]),
            lambda: self._settle_part(at, share.name, places.get(number)),
        )

    def _settle_part(self, at: _Place, name: str, place: Placement | None) -> bool:
        """Destroy a compute instance that this task may have made; one elsewhere, or with processes, is somebody else's."""
        now = self._now(at)
        ours = [
            part
            for part in (now.compute_instances if now else ())
            if (part.profile, part.processes) == (name, ()) and part.id not in at.parts
            if place in (None, part.placement)
        ]
        for part in ours:
            self._driver.destroy_compute_instance(at.gpu, at.id, part.id)
        return bool(ours)

    def _destroy_part(self, at: _Place, part: ComputeInstance) -> Step:
        def destroy() -> None:
            self._driver.destroy_compute_instance(at.gpu, at.id, part.id)
            at.parts.discard(part.id)

        def again() -> bool:
            now = self._now(at)
            if any(
                (one.profile, one.placement) == (part.profile, part.placement)
                for one in (now.compute_instances if now else ())
            ):
                return False  # it was not destroyed
            self._make_part(at, part.profile, part.placement, bound=True)
            return True

        text = f"destroy compute instance {part.id}, {part.profile} in {at.text}"
        return Step(text, destroy, again, again)

    def _make_part(self, at: _Place, name: str, place: Placement | None, bound: bool) -> int:
        """Create a compute instance, and return its id. ``bound``: at this place and no other."""
        kind = self._kind(at, name)
        # One that fills the GPU instance has but one place, and old drivers know no places.
        fills = kind.slices == at.profile.slices
        where = place if kind.placements and not fills else None
        made = self._driver.create_compute_instance(at.gpu, at.id, kind, where)
        at.parts.add(made)
        if bound and place and not fills and where is None:
            self._refuse_elsewhere(at, made, place)
        return made

    def _refuse_elsewhere(self, at: _Place, made: int, place: Placement) -> None:
        now = self._now(at)
        lies = next((part.placement for part in (now.compute_instances if now else ()) if part.id == made), None)
        if lies != place:
            self._driver.destroy_compute_instance(at.gpu, at.id, made)
            at.parts.discard(made)
            raise NotSupported(
                f"This driver does not let compute instances be placed: the new one in {at.text} came to {lies.start if lies else '?'}, "
                f"not {place.start}"
            )

    def _kind(self, at: _Place, name: str) -> ComputeProfile:
        offered = self._compute_profiles(at)
        found = next((kind for kind in offered if kind.name == name), None)
        if found is None:
            names = ", ".join(kind.name for kind in offered)
            raise DoesNotFit(f"A GPU instance {at.text} offers no compute instance {name}; it offers {names}")
        return found

    def _compute_profiles(self, at: _Place) -> tuple[ComputeProfile, ...]:
        key = (at.gpu.uuid, at.profile.name)
        if key not in self._offered:
            self._offered[key] = compute.known_as(self._driver.compute_profiles(at.gpu, at.id), at.profile.name)
        return self._offered[key]
