# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. Make the host's MPS daemons as wished: read, plan, apply, read back."""

from __future__ import annotations

import os
import typing as t

from .._command import Commands
from .._convergence import store
from .._convergence.steps import Step, carry_out
from .._driver.interface import Driver
from .._errors import DoesNotFit, NotReadBack, SharingError
from .._gpu import Gpu
from . import directories, files, limits, process, record
from .control import PROGRAM, Control, missing_program
from .live import Daemon, Stray
from .observation import Observer
from .plan import Action, Observed, Plan, Wanted
from .record import Memory
from .resolve import Resolved
from .service import SYSTEMD_CONFIGURATION


class Host(Observer):
    """A host's MPS daemons. ``service`` is systemd or none; ``stop_timeout`` (seconds) bounds a stop."""

    def __init__(
        self, driver: t.Callable[[], Driver], commands: Commands, service: str, state_directory: str, stop_timeout: int
    ) -> None:
        super().__init__(commands, service, state_directory)
        self._driver = driver
        self._stop_timeout = stop_timeout
        self._memory = Memory({}, {})
        self._made: set[str] = set()

    # --- check what only the host can tell

    def check(self, steps: Plan, wanted: Wanted, foretell: bool) -> list[str]:
        """Refuse, before anything is changed, what the host does not bear.

        To ``foretell`` (check mode), what a play may install before is a warning that is returned, or left out.
        """
        starting = [action.name for action in steps.actions if action.kind in ("start", "limit")]
        missing = bool(starting) and self._commands.which(PROGRAM) is None
        if missing and not foretell:
            raise DoesNotFit(missing_program())
        for name in starting:
            wish = wanted.resolved[name].wish
            directories.check_pipe(wish.pipe_directory, name)
            directories.check_log(wish.log_directory, name)
            if self._service == "systemd":
                directories.check_sandbox([wish.pipe_directory, wish.log_directory], name)
        if starting:
            directories.check_shared_memory()
        if starting and self._service == "systemd" and not foretell:
            for unit in self._systemd.units(starting).values():
                self._systemd.require_template(unit)
        return [missing_program()] if missing else []

    # --- apply

    def apply(self, steps: Plan, wanted: Wanted, memory: Memory, observed: t.Mapping[str, Observed]) -> None:
        """Carry out the plan; what failed midway is undone as far as it can be."""
        self._memory = memory
        carry_out([self._step(action, steps, wanted, memory, observed) for action in steps.actions])

    def _step(
        self, action: Action, steps: Plan, wanted: Wanted, memory: Memory, observed: t.Mapping[str, Observed]
    ) -> Step:
        name = action.name
        seen = observed.get(name)
        resolved = wanted.resolved.get(name)
        if action.kind == "set_mode" and action.gpu:
            return self._mode_step(action.text, action.gpu, action.mode)
        if action.kind == "remember":
            return Step(action.text, lambda: self._remember(steps.memory), lambda: self._remember(memory))
        if action.kind == "reload":
            return Step(action.text, self._systemd.reload, lambda: None)
        if action.kind in ("enable", "disable"):
            there, back = (self._systemd.enable, self._systemd.disable)
            do, undo = (there, back) if action.kind == "enable" else (back, there)
            return Step(action.text, lambda: do(name), lambda: undo(name))
        if action.kind == "remove":
            return Step(action.text, lambda: self._remove(name, memory))
        if action.kind == "stop" and seen:
            return Step(action.text, lambda: self._stop(name, seen.daemon, memory))
        if action.kind == "end_stray" and seen:
            return Step(action.text, lambda: self._end_strays(seen.strays))
        if resolved is None or seen is None:
            raise AssertionError(f"no such step: {action}")
        if action.kind == "write":
            return self._write_step(action.text, resolved, seen, memory)
        if action.kind == "start":
            return Step(action.text, lambda: self._start(resolved), lambda: self._take_back_start(resolved))
        if action.kind == "limit" and seen.daemon:
            before = seen.daemon.limits
            old_limits = limits.commands(before, resolved.limits)
            return Step(
                action.text,
                lambda: self._limit(resolved, before),
                lambda: self._send(resolved.wish.pipe_directory, old_limits),
            )
        raise AssertionError(f"no such step: {action}")

    def _mode_step(self, text: str, card: Gpu, mode: str) -> Step:
        driver = self._driver()

        def change(to: str) -> None:
            driver.set_compute_mode(card, to)
            now = driver.compute_mode(card)
            if now != to:
                raise NotReadBack(
                    f"The driver reported success, but the compute mode of {card.label} reads {now}, not {to}"
                )

        return Step(text, lambda: change(mode), lambda: change(str(card.compute_mode)))

    def _remember(self, memory: Memory) -> None:
        self._memory = memory
        paths = [os.path.join(self._state, name) for name in ("compute_modes.json", "daemons.json")]
        if memory == Memory({}, {}):
            for path in paths:
                store.remove(path)
            directories.remove_empty(self._state)
            return
        daemons, modes = record.to_json(memory)
        # the modes first: they must be safe before any is changed
        for path, document in zip(paths, (modes, daemons)):
            store.write_json(path, document)

    def _write_step(self, text: str, resolved: Resolved, seen: Observed, memory: Memory) -> Step:
        """Each service has a directory of its own: where it changes, the files move."""
        name = resolved.wish.name
        new = SYSTEMD_CONFIGURATION if self._service == "systemd" else self._state
        old = self.configuration(name, memory)

        def move(source: str, target: str, contents: t.Mapping[str, str]) -> None:
            self._write(target, name, contents)
            if source != target:
                self._write(source, name, {})

        return Step(text, lambda: move(old, new, files.render(resolved)), lambda: move(new, old, seen.files))

    @staticmethod
    def _write(directory: str, name: str, contents: t.Mapping[str, str]) -> None:
        for file in files.names(name):
            path = os.path.join(directory, file)
            if file in contents:
                store.write_text(path, contents[file])
            else:
                store.remove(path)
        if not contents:
            directories.remove_empty(directory)

    def _remove(self, name: str, memory: Memory) -> None:
        if name in memory.daemons:
            directories.remove_pipe(memory.daemons[name].pipe_directory)
        self._write(self.configuration(name, memory), name, {})

    def _start(self, resolved: Resolved) -> None:
        wish = resolved.wish
        control = Control(self._commands, wish.pipe_directory)
        if not os.path.isdir(wish.pipe_directory):
            self._made.add(wish.pipe_directory)
        if self._service == "systemd":
            self._start_unit(wish.name)
        else:
            directories.make(wish.pipe_directory, wish.log_directory)
            try:
                control.launch(files.environment(resolved))
            except SharingError:
                self._clear(wish.pipe_directory)
                raise
        try:
            self._first_words(resolved, control)
        except SharingError:
            self._break_off(resolved)
            raise

    def _start_unit(self, name: str) -> None:
        """A unit that did not start is tried again by systemd, unless it is stopped."""
        try:
            self._systemd.start(name)
        except SharingError:
            self._systemd.stop(name)
            raise

    def _first_words(self, resolved: Resolved, control: Control) -> None:
        wish = resolved.wish
        daemon = control.read()
        if daemon is None:
            raise NotReadBack(
                f"Daemon '{wish.name}' was started, but nothing answers on {wish.pipe_directory}; see {wish.log_directory}/control.log"
            )
        known = self._memory.daemons[wish.name]._replace(pid=daemon.pid, started=daemon.started)
        self._remember(self._memory._replace(daemons={**self._memory.daemons, wish.name: known}))
        self._limit(resolved, daemon.limits)

    def _break_off(self, resolved: Resolved) -> None:
        """End a daemon that was started just now, whether it listens to words or not."""
        pipe = resolved.wish.pipe_directory
        pid = process.lock_holder(pipe)
        started = process.start_time(pid) if pid else None
        if self._service == "systemd":
            self._systemd.stop(resolved.wish.name)
        elif pid and started is not None:
            process.end(pid, started, self._stop_timeout)
        self._clear(pipe)

    def _take_back_start(self, resolved: Resolved) -> None:
        self._stop(resolved.wish.name, None, self._memory)
        self._clear(resolved.wish.pipe_directory)

    def _clear(self, pipe: str) -> None:
        """Remove a pipe directory that was not there before this run; with systemd, directories are the unit's."""
        if pipe in self._made and self._service != "systemd":
            directories.remove_pipe(pipe)

    def _limit(self, resolved: Resolved, now: limits.Limits) -> None:
        """Set the limits and read them back. Some may be taken before one is refused: then all are as before."""
        pipe = resolved.wish.pipe_directory
        lines = limits.commands(resolved.limits, now)
        try:
            self._send(pipe, lines)
            if lines:
                _compare(resolved, Control(self._commands, pipe).read())
        except SharingError:
            self._send(pipe, limits.commands(now, resolved.limits))
            raise

    def _send(self, pipe: str, lines: t.Sequence[str]) -> None:
        if lines:
            Control(self._commands, pipe).send(lines)

    def _stop(self, name: str, daemon: Daemon | None, memory: Memory) -> None:
        old = memory.daemons.get(name)
        if daemon is None and old:
            daemon = Control(self._commands, old.pipe_directory).read()
        if daemon:
            self._end_clients(daemon)
        if (old.service if old else self._service) == "systemd":
            self._systemd.stop(name)
            self._systemd.forget_failure(name)
        elif daemon:
            Control(self._commands, daemon.pipe_directory).quit(self._stop_timeout)
        if daemon and not process.await_end(daemon.pid, daemon.started, self._stop_timeout + self._commands.timeout):
            raise NotReadBack(f"Daemon '{name}' (pid {daemon.pid}) was asked to stop and still runs")

    def _end_clients(self, daemon: Daemon) -> None:
        control = Control(self._commands, daemon.pipe_directory)
        for server in daemon.servers:
            for client in server.clients:
                control.terminate_client(server.pid, client)

    def _end_strays(self, strays: t.Sequence[Stray]) -> None:
        for stray in strays:
            children = [(child, process.start_time(child)) for child in stray.children]
            if not process.end(stray.pid, stray.started, self._stop_timeout):
                raise NotReadBack(f"The control daemon {stray.pid} cannot be ended")
            for child, started in children:
                if started is not None and not process.end(child, started, self._stop_timeout):
                    raise NotReadBack(f"The MPS server {child} cannot be ended")

    # --- read back

    def verify(self, wanted: Wanted, observed: t.Mapping[str, Observed]) -> None:
        """Compare what is there now with the wish."""
        for name, resolved in wanted.resolved.items():
            daemon = observed[name].daemon
            _compare(resolved, daemon)
            if daemon and daemon.devices != resolved.uuids:
                raise NotReadBack(f"Daemon '{name}' runs for {daemon.devices}, not for {resolved.uuids}")
        for wish in wanted.wishes:
            left = observed[wish.name].daemon
            if not wish.started and left:
                raise NotReadBack(
                    f"Daemon '{wish.name}' shall not run, but answers on {left.pipe_directory} (pid {left.pid})"
                )


def _compare(resolved: Resolved, daemon: Daemon | None) -> None:
    wish = resolved.wish
    if daemon is None:
        raise NotReadBack(f"Daemon '{wish.name}' shall run, but nothing answers on {wish.pipe_directory}")
    if daemon.limits != resolved.limits:
        now, then = _show(daemon.limits), _show(resolved.limits)
        raise NotReadBack(
            f"Daemon '{wish.name}' took the limits without a word, but they read {now}, not {then}; see {wish.log_directory}/control.log"
        )


def _show(value: limits.Limits) -> str:
    sizes = ", ".join(f"{limits.show_size(mib)} on device {ordinal}" for ordinal, mib in value.memory)
    return f"{limits.show_percentage(value.tenths)} %" + (f" and {sizes}" if sizes else " and no memory limit")
