# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. The MIG mode of cards: set it, reset what is only pending where the task allows that, read it back."""

from __future__ import annotations

import typing as t

from .._command import Commands
from .._convergence.steps import Step
from .._driver.interface import PENDING, MigDriver
from .._errors import ChangePending, DoesNotFit, InUse, NotReadBack, NotSupported, SharingError
from .._gpu import Gpu
from . import holders
from .observation import Reading

_NOT_HERE, _IN_USE = PENDING[3], PENDING[19]


class Modes:
    """Changes of modes. ``allow_reset`` lets cards be reset that need it."""

    def __init__(self, driver: MigDriver, commands: Commands, allow_reset: bool) -> None:
        self._driver = driver
        self._commands = commands
        self._allow_reset = allow_reset
        self._named: set[str | None] = set()
        self._reasons: dict[str | None, str | None] = {}  # why a card's mode is pending, in the driver's words

    def refuse_held(self, readings: t.Sequence[Reading]) -> None:
        """Raises InUse where somebody has a card whose mode is to change."""
        open_files = holders.open_devices() if readings else {}
        for reading in readings:
            who = _blocking(holders.find(reading.gpu, open_files))
            if who:
                raise _in_use(reading, f"MIG mode of {reading.gpu.label} cannot be {_verb(reading)}d while it", who)

    def steps(self, switching: t.Sequence[Reading], named: t.Sequence[Reading]) -> list[Step]:
        """Return what switches these cards, of all that the task names."""
        self._named = {reading.gpu.uuid for reading in named}
        steps = [self._step(reading) for reading in switching]
        return [*steps, Step("", lambda: self._enforce(switching), lambda: None)] if steps else []

    def _step(self, reading: Reading) -> Step:
        text = f"{_verb(reading)} MIG mode of GPU {reading.gpu.index}"
        gpu = reading.gpu

        def settle() -> bool:
            differs = self._driver.mig_mode(gpu) != reading.mig
            if differs:
                self._set_back(reading)
            return differs

        return Step(text, lambda: self._set(gpu, reading.layout.enabled), lambda: self._set_back(reading), settle)

    def _set(self, gpu: Gpu, on: bool) -> None:
        self._reasons[gpu.uuid] = self._driver.set_mig_mode(gpu, on)

    def _set_back(self, reading: Reading) -> None:
        gpu, before = reading.gpu, reading.mig
        self._set(gpu, before.pending)
        now = self._driver.mig_mode(gpu)
        if now.current != before.current and now.pending == before.current and self._allow_reset:
            self._reset([gpu])
            now = self._driver.mig_mode(gpu)
        if now != before:
            raise ChangePending(f"its MIG mode is {_word(now.current)} now, and {_word(now.pending)} after a reset")

    def _enforce(self, readings: t.Sequence[Reading]) -> list[str]:
        """Reset what is only pending, where the task allows it, and read back. Returns what was done."""
        pending = self._pending(readings)
        if not pending:
            return []
        self._refuse_users(pending)
        cards = ", ".join(reading.gpu.label for reading in pending)
        if any(self._reasons[reading.gpu.uuid] == _NOT_HERE for reading in pending):
            raise _reboot(f"The driver can neither bring the MIG mode of {cards} into force nor reset it")
        if not self._allow_reset:
            raise ChangePending(
                f"The driver needs a reset of {cards} to change the MIG mode; set allow_reset: true (a reset ends what runs on a GPU)",
                reset_required=True,
                reboot_required=False,
            )
        try:
            together = self._reset([reading.gpu for reading in pending])
        except NotSupported as exc:
            raise _reboot(exc.message.rstrip(".")) from exc
        except SharingError as exc:
            exc.details.setdefault("reset_required", True)
            exc.details.setdefault("reboot_required", False)
            raise
        if self._pending(readings):
            raise _reboot(f"{cards} was reset, and its MIG mode is still pending")
        return [f"reset {', '.join(f'GPU {gpu.index}' for gpu in together)}"]

    def _pending(self, readings: t.Sequence[Reading]) -> list[Reading]:
        """Return the cards whose mode waits. Raises NotReadBack for one that was not even taken."""
        pending = []
        for reading in readings:
            wanted, now = reading.layout.enabled, self._driver.mig_mode(reading.gpu)
            if now.pending != wanted:
                raise NotReadBack(
                    f"The driver reported success, but the MIG mode of {reading.gpu.label} reads {_word(now.pending)}, not {_word(wanted)}"
                )
            if now.current != wanted:
                pending.append(reading)
        return pending

    def _refuse_users(self, pending: t.Sequence[Reading]) -> None:
        """Raises InUse where the driver said so, or where somebody came since the plan was made."""
        now = {gpu.uuid: gpu for gpu in self._driver.gpus()}
        open_files = holders.open_devices()
        for reading in pending:
            who = holders.find(now.get(reading.gpu.uuid, reading.gpu), open_files)
            if self._reasons[reading.gpu.uuid] == _IN_USE:
                start = f"The driver cannot {_verb(reading)} MIG mode of {reading.gpu.label}, because it"
                raise _in_use(reading, start, who)
            if _blocking(who):
                raise _in_use(reading, f"{reading.gpu.label} needs a reset, which cannot be while it", _blocking(who))

    def _reset(self, gpus: t.Sequence[Gpu]) -> list[Gpu]:
        """Reset cards and put their persistence mode back, also where that failed. Returns all that were reset together."""
        from .._driver.reset import reset  # loads what runs nvidia-smi, which nothing else may need

        together = [*gpus, *self._peers(gpus)]
        self._driver.close()  # a client of the driver stands in a reset's way, and so would this process
        trouble = None
        try:
            reset(self._commands, together)
        except SharingError as exc:
            trouble = exc
        self._driver.reopen()
        try:
            self._keep_persistence(together)
        except SharingError as exc:
            trouble = trouble or exc
        if trouble:
            raise trouble
        return together

    def _keep_persistence(self, gpus: t.Sequence[Gpu]) -> None:
        persistent = {gpu.uuid for gpu in self._driver.gpus() if gpu.persistence_mode}
        for gpu in gpus:
            if gpu.persistence_mode and gpu.uuid not in persistent:
                self._driver.set_persistence_mode(gpu, True)

    def _peers(self, gpus: t.Sequence[Gpu]) -> list[Gpu]:
        """On Ampere machines with NVSwitches all cards have to be reset in one command (nvidia-smi's manual page).

        Raises DoesNotFit where one of them was not named, is in use or has instances.
        """
        if not holders.nvswitch() or any(gpu.architecture != "ampere" for gpu in gpus):
            return []
        asked, open_files = {gpu.uuid for gpu in gpus}, holders.open_devices()
        peers = [gpu for gpu in self._driver.gpus() if gpu.uuid not in asked]
        hindrances = [
            f"{gpu.label} {why}"
            for gpu in peers
            for why in [self._hindrance(gpu, holders.find(gpu, open_files))]
            if why
        ]
        if hindrances:
            raise DoesNotFit(
                f"A reset of {', '.join(gpu.label for gpu in gpus)} takes all GPUs along that the NVSwitches of this machine join, "
                f"and cannot be: {'; '.join(hindrances)}. Name all of them in the layouts while they are idle, or reboot",
                reset_required=True,
                reboot_required=False,
            )
        return peers

    def _hindrance(self, gpu: Gpu, who: t.Sequence[holders.Holder]) -> str | None:
        if gpu.uuid not in self._named:
            return "is not named by this task"
        if _blocking(who):
            return f"is in use by {', '.join(map(str, who))}"
        return "has instances" if self._driver.instances(gpu) else None


def _blocking(who: t.Sequence[holders.Holder]) -> list[holders.Holder]:
    """NVIDIA's daemon for persistence mode keeps no card from changing (NVIDIA's guide runs it)."""
    return [one for one in who if one.name != holders.PERSISTENCED]


def _in_use(reading: Reading, start: str, who: t.Sequence[holders.Holder]) -> SharingError:
    names = ", ".join(map(str, who)) or "somebody who does not show (like a loop of nvidia-smi, or DCGM in a container)"
    modules = holders.modules()
    beside = f"; the kernel module {', '.join(modules)} may hold it too" if modules else ""
    return InUse(
        f"{reading.layout.option}: {start} is in use by {names}{beside}; stop what uses it, and run again",
        holders=[holder._asdict() for holder in who],
        modules=modules,
    )


def _reboot(why: str) -> SharingError:
    return ChangePending(
        f"{why}: set the mode by hand (nvidia-smi -mig), reboot the machine, and run again",
        reset_required=False,
        reboot_required=True,
    )


def _verb(reading: Reading) -> str:
    return "enable" if reading.layout.enabled else "disable"


def _word(on: bool) -> str:
    return "on" if on else "off"
