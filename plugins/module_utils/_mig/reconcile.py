# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. Cut a host's cards as wished: read, plan, apply, read back."""

from __future__ import annotations

import typing as t

from .._command import Commands
from .._convergence.steps import Step, carry_out
from .._driver.interface import MigDriver
from .._driver.reset import reset
from .._errors import ChangePending, CommandFailed, DoesNotFit, InUse, NotReadBack, NotSupported
from .._gpu import Gpu, Mig
from .._instance import ComputeProfile, GpuInstance, Profile
from .._mps import process
from . import holders, planner
from .card import Card
from .layout import Layout
from .planner import Plan


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


class Options(t.NamedTuple):
    """What the task allows."""

    purge: bool
    allow_reset: bool
    protect: tuple[str, ...]


class Host:
    """The cards of a host."""

    def __init__(self, driver: MigDriver, commands: Commands, options: Options) -> None:
        self._driver = driver
        self._commands = commands
        self._options = options
        self._offered: dict[tuple[str | None, str], tuple[ComputeProfile, ...]] = {}

    # --- read

    def read(self, pairs: t.Sequence[tuple[Gpu, Layout]]) -> list[Reading]:
        """Return what is there of each card, with its instances that must stay."""
        daemons = process.daemons()
        readings = [self._read(gpu, layout, daemons) for gpu, layout in pairs]
        known = {part for reading in readings for part in _names(reading)}
        unknown = [name for name in self._options.protect if name not in known and not _elsewhere(name, pairs)]
        if unknown:
            raise DoesNotFit(
                f"protect: {', '.join(unknown)}: there is no such MIG device or GPU instance on the cards of this task; look them up with nvidia_gpu_info"
            )
        return readings

    def read_again(self, readings: t.Sequence[Reading]) -> list[Reading]:
        """Return the same cards as they are now."""
        return [self._read(one.gpu._replace(mig=self._driver.mig_mode(one.gpu)), one.layout, ()) for one in readings]

    def _read(self, gpu: Gpu, layout: Layout, daemons: t.Sequence[process.Found]) -> Reading:
        mig = gpu.mig or Mig(False, False, False)
        instances = self._instances(gpu) if mig.current else ()
        card = self._card(gpu, instances) if layout.instances is not None or instances else Card(gpu, ())
        return Reading(gpu, layout, mig, card, self._protected(gpu, instances, daemons))

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

    def _protected(
        self, gpu: Gpu, instances: t.Sequence[GpuInstance], daemons: t.Sequence[process.Found]
    ) -> dict[int, str]:
        reasons = {}
        for instance in instances:
            uuids = [part.uuid for part in instance.compute_instances]
            served = [
                found.pid
                for found in daemons
                if any(uuid and uuid in found.environment.get("CUDA_VISIBLE_DEVICES", "") for uuid in uuids)
            ]
            if instance.processes:
                reasons[instance.id] = (
                    f"in use by {', '.join(str(holders.describe(pid)) for pid in instance.processes)}"
                )
            elif served:
                reasons[instance.id] = f"served by the MPS control daemon {served[0]}"
            elif set(self._options.protect) & {*uuids, f"{gpu.index}/{instance.id}", f"{gpu.uuid}/{instance.id}"}:
                reasons[instance.id] = "protected by this task"
        return reasons

    # --- plan

    def plan(self, readings: t.Sequence[Reading]) -> dict[str, Plan | None]:
        """Return the plan of each card by UUID, None where it can be made only once its MIG mode is on. Refuses what cannot be before any change."""
        plans = {str(reading.gpu.uuid): self._plan(reading) for reading in readings}
        for reading in readings:
            if reading.switches or _works(plans[str(reading.gpu.uuid)]):
                self._refuse_shared(reading)
            if reading.switches:
                self._refuse_held(reading)
        return plans

    def _plan(self, reading: Reading) -> Plan | None:
        if reading.card is None:
            return None
        return planner.make(reading.card, reading.layout, self._options.purge, reading.protected)

    def _refuse_shared(self, reading: Reading) -> None:
        """Drivers do not set the compute mode of a card in MIG mode, and a whole-card daemon cannot serve one."""
        gpu, option = reading.gpu, reading.layout.option
        if gpu.compute_mode in ("exclusive_process", "exclusive_thread"):
            raise DoesNotFit(
                f"{option}: {gpu.label} is in compute mode {gpu.compute_mode}; "
                "end its sharing with nvidia_mps (state: absent), or set it to default with nvidia_compute_mode"
            )
        for found in process.daemons():
            visible = found.environment.get("CUDA_VISIBLE_DEVICES")
            if found.environment and (not visible or str(gpu.uuid) in visible):
                raise InUse(
                    f"{option}: {gpu.label} is served by the MPS control daemon {found.pid}; end it with nvidia_mps (state: absent) first",
                    pid=found.pid,
                )

    def _refuse_held(self, reading: Reading) -> None:
        who = holders.find(reading.gpu)
        if who:
            verb = "enabled" if reading.layout.enabled else "disabled"
            names = ", ".join(map(str, who))
            raise InUse(
                f"{reading.layout.option}: MIG mode of {reading.gpu.label} cannot be {verb} while it is in use by {names}; stop these first",
                holders=[holder._asdict() for holder in who],
            )

    # --- apply

    def apply(self, readings: t.Sequence[Reading], plans: t.Mapping[str, Plan | None]) -> None:
        """Carry out the plans. Cards that match see no call that changes anything."""
        on = [reading for reading in readings if reading.switches and reading.layout.enabled]
        off = [reading for reading in readings if reading.switches and not reading.layout.enabled]
        steps = self._mode_steps(on)
        for reading in readings:
            steps += self._instance_steps(reading, plans[str(reading.gpu.uuid)])
        carry_out(steps + self._mode_steps(off))

    def _mode_steps(self, readings: t.Sequence[Reading]) -> list[Step]:
        if not readings:
            return []
        steps = [self._mode_step(reading) for reading in readings]
        return [*steps, Step("bring the new MIG mode into force", lambda: self._enforce(readings), lambda: None)]

    def _mode_step(self, reading: Reading) -> Step:
        gpu, on = reading.gpu, reading.layout.enabled

        def switch(to: bool) -> None:
            self._driver.set_mig_mode(gpu, to)

        return Step(
            f"{'enable' if on else 'disable'} MIG mode of {gpu.label}",
            lambda: switch(on),
            lambda: switch(reading.mig.current),
        )

    def _enforce(self, readings: t.Sequence[Reading]) -> None:
        """Reset what is only pending, where the task allows it, and read back."""
        pending = [
            reading for reading in readings if self._driver.mig_mode(reading.gpu).current != reading.layout.enabled
        ]
        if not pending:
            return
        cards = ", ".join(reading.gpu.label for reading in pending)
        if not self._options.allow_reset:
            raise ChangePending(
                f"The driver needs a reset of {cards} to change the MIG mode; set allow_reset: true, or reboot after setting the mode by hand",
                reset_required=True,
                reboot_required=False,
            )
        self._refuse_peers(pending)
        for reading in pending:
            self._refuse_held(reading)
        self._reset([reading.gpu for reading in pending])
        for reading in pending:
            now = self._driver.mig_mode(reading.gpu)
            if now.current != reading.layout.enabled:
                raise ChangePending(
                    f"{reading.gpu.label} was reset, and its MIG mode is still pending: reboot the host",
                    reset_required=False,
                    reboot_required=True,
                )

    def _reset(self, gpus: t.Sequence[Gpu]) -> None:
        persistent = [gpu for gpu in gpus if gpu.persistence_mode]
        try:
            reset(self._commands, gpus)
        except NotSupported as exc:
            raise NotSupported(
                f"{exc.message} This is what drivers say in virtual machines: reboot the machine instead",
                reset_required=False,
                reboot_required=True,
            ) from exc
        finally:
            for gpu in persistent:
                self._driver.set_persistence_mode(gpu, True)

    def _refuse_peers(self, pending: t.Sequence[Reading]) -> None:
        """On Ampere machines with NVSwitches all cards have to be reset in one command (nvidia-smi's manual page)."""
        if not holders.nvswitch() or any(reading.gpu.architecture != "ampere" for reading in pending):
            return
        named = {reading.gpu.uuid for reading in pending}
        others = [gpu.label for gpu in self._driver.gpus() if gpu.uuid not in named]
        if others:
            raise DoesNotFit(
                f"The NVSwitches of this machine join {', '.join(reading.gpu.label for reading in pending)} with {', '.join(others)}: "
                "a reset takes all of them; name all in the layouts, or reboot",
                reset_required=True,
            )

    def _instance_steps(self, reading: Reading, plan: Plan | None) -> list[Step]:
        gpu = reading.gpu
        if plan is None:
            return [Step(f"cut {gpu.label}", lambda: self._cut_new(reading))]
        steps = [self._destroy_step(gpu, instance, reading) for instance in plan.destroy]
        steps += [self._create_step(gpu, creation.profile, creation) for creation in plan.create]
        return steps + [self._repair_step(gpu, repair) for repair in plan.repair]

    def _cut_new(self, reading: Reading) -> None:
        """The profiles can be read only now that the mode is on; when the wish does not fit, the mode is set back."""
        fresh = self._read(reading.gpu._replace(mig=Mig(True, True, True)), reading.layout, ())
        plan = self._plan(fresh)
        if plan is None:
            raise NotSupported(f"The driver offers no MIG profile for {reading.gpu.label}, though its MIG mode is on")
        carry_out(self._instance_steps(fresh, plan))

    def _destroy_step(self, gpu: Gpu, instance: GpuInstance, reading: Reading) -> Step:
        place = f"{instance.placement.start}:{instance.placement.size}"

        def destroy() -> None:
            for part in instance.compute_instances:
                self._driver.destroy_compute_instance(gpu, instance.id, part.id)
            self._driver.destroy_gpu_instance(gpu, instance.id)

        def again() -> None:
            profile = reading.card.profile(instance.profile) if reading.card else None
            if profile is None:
                raise NotSupported(f"the driver offers no profile {instance.profile}")
            self._create(
                gpu,
                profile,
                planner.Creation(
                    profile, instance.placement, tuple(part.profile for part in instance.compute_instances)
                ),
            )

        return Step(
            f"destroy {instance.profile} at {place} of {gpu.label} (GPU instance {instance.id})", destroy, again
        )

    def _create_step(self, gpu: Gpu, profile: Profile, creation: planner.Creation) -> Step:
        made: list[int] = []
        place = f"{creation.placement.start}:{creation.placement.size}"
        return Step(
            f"create {profile.name} at {place} of {gpu.label}",
            lambda: made.append(self._create(gpu, profile, creation)),
            lambda: self._destroy_whole(gpu, made[0]),
        )

    def _create(self, gpu: Gpu, profile: Profile, creation: planner.Creation) -> int:
        """Create a GPU instance with its compute instances; none of it stays when one of them fails."""
        instance = self._driver.create_gpu_instance(gpu, profile, creation.placement)
        steps = [Step("", lambda: None, lambda: self._driver.destroy_gpu_instance(gpu, instance))]
        steps += [self._compute_step(gpu, instance, profile.name, name) for name in creation.compute]
        carry_out(steps)
        return instance

    def _compute_step(self, gpu: Gpu, instance: int, profile: str, name: str) -> Step:
        made: list[int] = []
        return Step(
            f"create compute instance {name} in GPU instance {instance} of {gpu.label}",
            lambda: made.append(
                self._driver.create_compute_instance(gpu, instance, self._compute_profile(gpu, instance, profile, name))
            ),
            lambda: self._driver.destroy_compute_instance(gpu, instance, made[0]),
        )

    def _compute_profile(self, gpu: Gpu, instance: int, profile: str, name: str) -> ComputeProfile:
        key = (gpu.name, profile)
        if key not in self._offered:
            self._offered[key] = self._driver.compute_profiles(gpu, instance)
        found = next((offered for offered in self._offered[key] if offered.name == name), None)
        if found is None:
            names = ", ".join(offered.name for offered in self._offered[key])
            raise DoesNotFit(
                f"A GPU instance {profile} of {gpu.label} offers no compute instance {name}; it offers {names}"
            )
        return found

    def _destroy_whole(self, gpu: Gpu, instance: int) -> None:
        for found in self._driver.instances(gpu):
            if found.id == instance:
                for part in found.compute_instances:
                    self._driver.destroy_compute_instance(gpu, instance, part.id)
                self._driver.destroy_gpu_instance(gpu, instance)

    def _repair_step(self, gpu: Gpu, repair: t.Any) -> Step:
        instance = repair.instance
        steps = [self._compute_destroy_step(gpu, instance, part) for part in repair.destroy]
        steps += [self._compute_step(gpu, instance.id, instance.profile, name) for name in repair.create]
        return Step(
            f"change the compute instances of {instance.profile} of {gpu.label} (GPU instance {instance.id})",
            lambda: carry_out(steps),
        )

    def _compute_destroy_step(self, gpu: Gpu, instance: GpuInstance, part: t.Any) -> Step:
        back = self._compute_step(gpu, instance.id, instance.profile, part.profile)
        return Step(
            f"destroy compute instance {part.profile} in GPU instance {instance.id} of {gpu.label}",
            lambda: self._driver.destroy_compute_instance(gpu, instance.id, part.id),
            back.do,
        )

    # --- read back

    def verify(self, readings: t.Sequence[Reading]) -> None:
        """Compare what is there now with the wish."""
        for reading in readings:
            if reading.mig.current != reading.layout.enabled:
                raise NotReadBack(
                    f"MIG mode of {reading.gpu.label} reads {_word(reading.mig.current)} afterwards, not {_word(reading.layout.enabled)}"
                )
            if _works(self._plan(reading)):
                raise NotReadBack(
                    f"The instances of {reading.gpu.label} are not as wished afterwards: somebody else changes them"
                )


def _works(plan: Plan | None) -> bool:
    return plan is None or not plan.empty


def _word(on: bool) -> str:
    return "enabled" if on else "disabled"


def _names(reading: Reading) -> list[str]:
    """Every way that ``protect`` may name what is on a card."""
    found = []
    for instance in reading.card.instances if reading.card else ():
        found += [f"{reading.gpu.index}/{instance.id}", f"{reading.gpu.uuid}/{instance.id}"]
        found += [part.uuid for part in instance.compute_instances if part.uuid]
    return found


def _elsewhere(name: str, pairs: t.Sequence[tuple[Gpu, Layout]]) -> bool:
    """A GPU instance of a card that this task does not touch needs no protection."""
    card = name.rpartition("/")[0]
    return bool(card) and card not in {key for gpu, _layout in pairs for key in (str(gpu.index), str(gpu.uuid))}
