# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. Cut a host's cards as wished: read, plan, apply, read back."""

from __future__ import annotations

import typing as t

from .._command import Commands
from .._convergence.steps import Step, carry_out, take_back, tell
from .._driver.interface import MigDriver
from .._errors import DoesNotFit, InUse, NotReadBack, NotSupported, SharingError
from . import planner
from .instances import Cutter
from .layout import Protected
from .modes import Modes
from .observation import Observer, Pairs, Reading
from .planner import Plan

Plans = t.Mapping[str, t.Optional[Plan]]  # by the card's UUID; None where it can be made only once its MIG mode is on


class Options(t.NamedTuple):
    """What the task allows, and what it protects."""

    purge: bool = False
    allow_reset: bool = False
    protect: tuple[Protected, ...] = ()


class Host:
    """The cards of a host."""

    def __init__(self, driver: MigDriver, commands: Commands, options: Options) -> None:
        self._purge = options.purge
        self._observer = Observer(driver, options.protect)
        self._modes = Modes(driver, commands, options.allow_reset)
        self._cutter = Cutter(driver)

    def read(self, pairs: Pairs) -> list[Reading]:
        """Return what is there of each card, with its instances that must stay."""
        return self._observer.read(pairs)

    def read_again(self, readings: t.Sequence[Reading]) -> list[Reading]:
        """Return the same cards as they are now."""
        return self._observer.read_again(readings)

    def plan(self, readings: t.Sequence[Reading]) -> Plans:
        """Return the plan of each card. Refuses what cannot be before any change."""
        plans = {str(reading.gpu.uuid): self._plan(reading) for reading in readings}
        for reading in readings:
            if reading.switches or _works(plans[str(reading.gpu.uuid)]):
                self._refuse_shared(reading)
        self._modes.refuse_held([reading for reading in readings if reading.switches])
        return plans

    def _plan(self, reading: Reading) -> Plan | None:
        if reading.card is None:
            return None
        return planner.make(reading.card, reading.layout, self._purge, reading.protected)

    def _refuse_shared(self, reading: Reading) -> None:
        """Drivers do not set the compute mode of a card in MIG mode, and a whole-card daemon cannot serve one."""
        gpu, option = reading.gpu, reading.layout.option
        if reading.layout.enabled and gpu.compute_mode not in (None, "default"):
            first = (
                "switch its MIG mode off (enabled: false), since no driver changes it before, then "
                if reading.mig.current
                else ""
            )
            raise DoesNotFit(
                f"{option}: {gpu.label} is in compute mode {gpu.compute_mode}; {first}"
                "end its sharing with nvidia_mps (state: absent), or set it to default with nvidia_compute_mode"
            )
        daemon = self._observer.daemon_of(gpu)
        if daemon:
            raise InUse(
                f"{option}: {gpu.label} is served by the MPS control daemon {daemon.pid}; end it with nvidia_mps (state: absent) first",
                pid=daemon.pid,
            )

    def steps(self, readings: t.Sequence[Reading], plans: Plans) -> list[Step]:
        """Return the plans as steps in order: modes on, cuts, modes off. Cards that match see no call that changes anything."""
        steps = self._modes.steps([one for one in readings if one.switches and one.layout.enabled], readings)
        for reading in readings:
            plan = plans[str(reading.gpu.uuid)]
            if plan is None or reading.card is None:
                steps.append(self._later(reading))
            else:
                steps += self._cutter.steps(reading.card, plan)
        off = [one for one in readings if one.switches and not one.layout.enabled]
        return steps + self._modes.steps(off, readings)

    def apply(self, readings: t.Sequence[Reading], steps: t.Sequence[Step]) -> tuple[list[Reading], list[str]]:
        """Carry out ``steps``, read back and compare. Returns what is there then, and what was done."""
        if not steps:
            return list(readings), []
        done = carry_out(steps)
        try:
            after = self.read_again(readings)
            self._verify(after)
        except SharingError as exc:
            # What is there is not what was thought, so nothing is taken back by what was thought.
            exc.details.update(done=done, undone=[], not_undone=done)
            exc.message = tell(exc.message, exc.details)
            raise
        return after, done

    def _later(self, reading: Reading) -> Step:
        """The profiles can be read only once the mode is on."""

        made: list[Step] = []

        def cut() -> list[str]:
            fresh = self._observer.look(reading.gpu, reading.layout)
            plan = self._plan(fresh)
            if fresh.card is None or plan is None:
                raise NotSupported(
                    f"The driver offers no MIG profile for {reading.gpu.label}, though its MIG mode is on"
                )
            steps = self._cutter.steps(fresh.card, plan)
            told = carry_out(steps)
            made.extend(steps)
            return told

        text = f"cut GPU {reading.gpu.index} (what it offers can be read only once its MIG mode is on, so the plan is made then)"
        return Step(text, cut, lambda: take_back(made))

    def _verify(self, readings: t.Sequence[Reading]) -> None:
        """Compare what is there now with the wish."""
        for reading in readings:
            if reading.switches:
                raise NotReadBack(
                    f"MIG mode of {reading.gpu.label} reads {_word(reading.mig.current)} afterwards ({_word(reading.mig.pending)} "
                    f"after a reset), not {_word(reading.layout.enabled)}"
                )
            if _works(self._plan(reading)):
                raise NotReadBack(
                    f"The instances of {reading.gpu.label} are not as wished afterwards, though the driver reported success"
                )


def _works(plan: Plan | None) -> bool:
    return plan is None or not plan.empty


def _word(on: bool) -> str:
    return "enabled" if on else "disabled"
