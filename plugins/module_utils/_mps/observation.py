# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. Read what is there of a host's MPS daemons; nothing is changed here."""

from __future__ import annotations

import os
import typing as t

from .._command import Commands
from .._convergence import store
from .._errors import CommandTimeout, StateUnreadable
from . import files, process, record
from .control import Control
from .live import Daemon, Stray
from .plan import Observed
from .record import Memory
from .service import SYSTEMD_CONFIGURATION, Systemd


class Observer:
    """A host's MPS daemons, to look at. ``service`` is systemd or none."""

    def __init__(self, commands: Commands, service: str, state_directory: str) -> None:
        self._commands = commands
        self._service = service
        self._state = state_directory
        self._systemd = Systemd(commands)

    def memory(self) -> Memory:
        """Return what earlier runs remembered."""
        daemons, modes = (os.path.join(self._state, name) for name in ("daemons.json", "compute_modes.json"))
        try:
            return record.from_json(store.read_json(daemons), store.read_json(modes))
        except StateUnreadable as exc:
            if exc.message.startswith("it"):
                exc.message = f"Cannot use the state in {self._state} ({daemons}, {modes}): {exc.message}; repair or move the file away and run again"
            raise

    def configuration(self, name: str, memory: Memory) -> str:
        """Return the directory of a daemon's files."""
        service = memory.daemons[name].service if name in memory.daemons else self._service
        return SYSTEMD_CONFIGURATION if service == "systemd" else self._state

    def observe(self, pipes: t.Mapping[str, str], memory: Memory, force: bool) -> dict[str, Observed]:
        """Return what is there of each daemon; ``pipes`` has the wished pipe directory by name."""
        names = sorted(set(pipes) | set(memory.daemons))
        managed = [
            name
            for name in names
            if self._service == "systemd" or (name in memory.daemons and memory.daemons[name].service == "systemd")
        ]
        units = self._systemd.units(managed)
        running = process.daemons()
        seen = {}
        for name in names:
            old = memory.daemons.get(name)
            pipe = old.pipe_directory if old else pipes[name]
            daemon = self._read(pipe, force)
            moved = name in pipes and pipes[name] != pipe
            seen[name] = Observed(
                daemon=daemon,
                at_new_directory=self._read(pipes[name], force) if moved else None,
                strays=_strays(running, pipe, daemon),
                unit=units.get(name),
                files=self._files(name, memory),
            )
        return seen

    def _read(self, pipe: str, force: bool) -> Daemon | None:
        """With force, a daemon that hangs counts as one that no longer answers, so that it can be ended."""
        try:
            return Control(self._commands, pipe).read()
        except CommandTimeout:
            if force:
                return None
            raise

    def _files(self, name: str, memory: Memory) -> dict[str, str]:
        directory = self.configuration(name, memory)
        contents = {file: store.read_text(os.path.join(directory, file)) for file in files.names(name)}
        return {file: content for file, content in contents.items() if content is not None}


def _strays(running: t.Sequence[process.Found], pipe: str, daemon: Daemon | None) -> tuple[Stray, ...]:
    return tuple(
        Stray(found.pid, found.started, found.uid, pipe, process.children(found.pid))
        for found in running
        if found.environment.get("CUDA_MPS_PIPE_DIRECTORY") == pipe and (daemon is None or daemon.pid != found.pid)
    )
