# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Cards in memory that can be cut, the nvidia-smi that resets them, and runs of the module's code on them."""

from __future__ import annotations

import typing as t

from ansible_collections.gpuops.sharing.plugins.module_utils._command import Answer, Commands
from ansible_collections.gpuops.sharing.plugins.module_utils._driver.interface import MigDriver
from ansible_collections.gpuops.sharing.plugins.module_utils._errors import (
    CommandFailed,
    InUse,
    NotSupported,
    SharingError,
)
from ansible_collections.gpuops.sharing.plugins.module_utils._gpu import Gpu, Mig
from ansible_collections.gpuops.sharing.plugins.module_utils._instance import (
    ComputeInstance,
    ComputeProfile,
    GpuInstance,
    Placement,
    Profile,
)
from ansible_collections.gpuops.sharing.plugins.module_utils._mig import layout
from ansible_collections.gpuops.sharing.plugins.module_utils._mig.observation import Reading
from ansible_collections.gpuops.sharing.plugins.module_utils._mig.reconcile import Host, Options
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils._mig import machines
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils.fakes import FakeDriver

MACHINE = "A100-40GB"


class FakeMigDriver(FakeDriver, MigDriver):
    """A100s. ``journal`` is what was done to them; what is in ``failures`` fails when it is tried first.

    ``waits`` is why a mode stays pending until a reset; ``shy`` cards tell their profiles only in MIG mode.
    """

    def __init__(self, gpus: t.Sequence[Gpu], waits: str | None = None, shy: bool = False) -> None:
        super().__init__(gpus)
        self.journal: list[str] = []
        self.failures: set[str] = set()
        self.misreadings: list[SharingError] = []
        self.waits = waits
        self.shy = shy
        self.reset_answer = Answer(0, "GPU was successfully reset.\nAll done.\n", "")
        self.there: dict[str | None, dict[int, GpuInstance]] = {gpu.uuid: {} for gpu in gpus}

    def commands(self) -> Commands:
        """Return an nvidia-smi that resets these cards."""

        def run(
            argv: t.Sequence[str],
            stdin: str | None = None,
            environment: t.Mapping[str, str] | None = None,
            limit: float | None = None,
        ) -> Answer:
            assert argv[1:3] == ["--gpu-reset", "-i"]
            self._note(f"reset {argv[3]}")
            if self.reset_answer.rc == 0:
                for index in map(int, argv[3].split(",")):
                    mode = self._card(index).mig or Mig(True, False, False)
                    self.update(index, mig=mode._replace(current=mode.pending), persistence_mode=False)
                    self.there[self._card(index).uuid] = {}
            return self.reset_answer

        return Commands(run, lambda name: f"/usr/bin/{name}", timeout=5)

    def _card(self, index: int) -> Gpu:
        return self._gpus[index]

    def update(self, index: int, **values: t.Any) -> None:
        """Let a card be another."""
        self._gpus[index] = self._gpus[index]._replace(**values)

    def _note(self, text: str) -> None:
        if text in self.failures:
            self.failures.remove(text)
            raise CommandFailed("it says no")
        self.journal.append(text)

    def put(self, index: int, *instances: GpuInstance) -> None:
        """Let instances be there."""
        self.there[self._card(index).uuid] = {one.id: one for one in instances}

    def close(self) -> None:
        self.journal.append("close")

    def reopen(self) -> None:
        self.journal.append("reopen")

    def set_persistence_mode(self, gpu: Gpu, on: bool) -> None:
        self._note(f"persistence {gpu.index} {on}")
        self.update(gpu.index, persistence_mode=on)

    def mig_mode(self, gpu: Gpu) -> Mig:
        return self._card(gpu.index).mig or Mig(False, False, False)

    def set_mig_mode(self, gpu: Gpu, on: bool) -> str | None:
        self._note(f"mode {gpu.index} {'on' if on else 'off'}")
        now = self.mig_mode(gpu)
        if self.there[gpu.uuid] and not on:
            raise InUse(f"Cannot disable MIG mode of {gpu.label}: In use by another client")
        pending = self.waits if on != now.current else None
        self.update(gpu.index, mig=now._replace(pending=on, current=now.current if pending else on))
        return pending

    def mig_profiles(self, gpu: Gpu) -> tuple[Profile, ...]:
        if self.shy and not self.mig_mode(gpu).current:
            raise NotSupported("no profiles")
        return machines.profiles(MACHINE)

    def instances(self, gpu: Gpu) -> tuple[GpuInstance, ...]:
        if self.misreadings:
            raise self.misreadings.pop(0)
        return tuple(sorted(self.there[gpu.uuid].values(), key=lambda one: one.placement))

    def compute_profiles(self, gpu: Gpu, instance: int) -> tuple[ComputeProfile, ...]:
        return machines.compute_profiles(MACHINE)[self.there[gpu.uuid][instance].profile]

    def create_gpu_instance(self, gpu: Gpu, profile: Profile, placement: Placement) -> int:
        self._note(f"create {gpu.index} {profile.name}@{placement.start}")
        there = self.there[gpu.uuid]
        if any(one.placement.overlaps(placement) for one in there.values()):
            raise CommandFailed("Insufficient Resources")
        number = next(number for number in range(1, 99) if number not in there)
        there[number] = GpuInstance(number, profile.name, placement)
        return number

    def destroy_gpu_instance(self, gpu: Gpu, instance: int) -> None:
        self._note(f"destroy {gpu.index} {instance}")
        if self.there[gpu.uuid][instance].compute_instances:
            raise InUse("it has compute instances")
        del self.there[gpu.uuid][instance]

    def create_compute_instance(
        self, gpu: Gpu, instance: int, profile: ComputeProfile, placement: Placement | None
    ) -> int:
        self._note(f"create {gpu.index} {instance}/{profile.name}" + (f":{placement.start}" if placement else ""))
        parent = self.there[gpu.uuid][instance]
        place = placement or Placement(0, profile.slices)
        if any(one.placement.overlaps(place) for one in parent.compute_instances):
            raise CommandFailed("Insufficient Resources")
        number = next(number for number in range(9) if number not in {one.id for one in parent.compute_instances})
        part = ComputeInstance(number, profile.name, place, f"MIG-{instance}-{place.start}")
        self.there[gpu.uuid][instance] = parent._replace(compute_instances=(*parent.compute_instances, part))
        return number

    def destroy_compute_instance(self, gpu: Gpu, instance: int, compute_instance: int) -> None:
        self._note(f"destroy {gpu.index} {instance}/{compute_instance}")
        parent = self.there[gpu.uuid][instance]
        left = tuple(one for one in parent.compute_instances if one.id != compute_instance)
        self.there[gpu.uuid][instance] = parent._replace(compute_instances=left)


class Task:
    """One run of nvidia_mig on a driver, without Ansible."""

    def __init__(self, driver: FakeMigDriver, *entries: dict[str, t.Any], protect: str = "", **allowed: bool) -> None:
        protected = tuple(layout.protect(protect.split(), driver.gpus()))
        options = Options(allowed.get("purge", False), allowed.get("allow_reset", False), protected)
        self.host = Host(driver, driver.commands(), options)
        self.before = self.host.read(layout.choose(layout.parse(entries), driver.gpus()))
        self.plans = self.host.plan(self.before)

    def run(self) -> list[Reading]:
        after, _done = self.host.apply(self.before, self.host.steps(self.before, self.plans))
        return after


def cut(*profiles: str, gpus: str = "0", **options: t.Any) -> dict[str, t.Any]:
    """A layout."""
    return {"gpus": gpus, "instances": [{"profile": name} for name in profiles], **options}
