# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. The task of nvidia_mps: options, and what the result tells."""

from __future__ import annotations

import contextlib
import sys
import typing as t

from ansible.module_utils.basic import AnsibleModule

from .._command import Commands
from .._convergence import init_system
from .._convergence.lock import host_lock
from .._driver.choice import open_driver
from .._driver.interface import Driver
from .._errors import BadOption, DriverAbsent
from .._gpu import Gpu
from .._mps import directories, limits, plan, resolve, wish
from .._mps.daemons import Host
from .._mps.plan import Observed, Plan, Wanted
from .._mps.record import Memory
from . import task
from .gpu_info import show_daemon

DAEMON: dict[str, t.Any] = {
    "name": {"type": "str", "required": True},
    "gpus": {"type": "list", "elements": "str"},
    "state": {"type": "str", "default": "started", "choices": list(wish.STATES)},
    "compute_mode": {"type": "str", "default": "exclusive_process", "choices": list(wish.MODES)},
    "active_thread_percentage": {"type": "str"},
    "memory_limits": {
        "type": "list",
        "elements": "dict",
        "options": {"gpu": {"type": "str", "default": "all"}, "size": {"type": "str", "required": True}},
    },
    "clients": {"type": "str"},
    "pipe_directory": {"type": "str"},
    "log_directory": {"type": "str"},
}
SPECIFICATION: dict[str, t.Any] = {
    "daemons": {"type": "list", "elements": "dict", "required": True, "options": DAEMON},
    "service": {"type": "str", "default": "auto", "choices": list(init_system.SERVICES)},
    "purge": {"type": "bool", "default": False},
    "force": {"type": "bool", "default": False},
    "stop_timeout": {"type": "int", "default": 30},
    **task.COMMON,
    **task.STATE,
}


class Drivers:
    """Opens the driver when it is first needed: a host whose driver is gone can still be cleaned up."""

    def __init__(self, backend: str, commands: Commands) -> None:
        self._backend = backend
        self._commands = commands
        self._driver: Driver | None = None

    def get(self) -> Driver:
        """Return the driver. Raises DriverAbsent."""
        if self._driver is None:
            self._driver = open_driver(self._backend, self._commands)
        return self._driver

    def gpus(self, needed: bool) -> list[Gpu]:
        """Return the GPUs; none where there is no driver and none is ``needed``."""
        try:
            return self.get().gpus()
        except DriverAbsent:
            if needed:
                raise
            return []

    @property
    def backend(self) -> str | None:
        """Name of the backend that was used."""
        return self._driver.backend if self._driver else None

    def close(self) -> None:
        """Let go of the driver."""
        if self._driver:
            self._driver.close()


class Reading(t.NamedTuple):
    """All that was read at one time."""

    gpus: list[Gpu]
    memory: Memory
    observed: dict[str, Observed]


def main() -> None:
    """Run the module."""
    task.run(SPECIFICATION, _body)


def _body(module: AnsibleModule, commands: Commands) -> dict[str, t.Any]:
    params = module.params
    wishes = wish.parse(params["daemons"])
    if not 1 <= params["stop_timeout"] <= 3600:
        raise BadOption("stop_timeout", params["stop_timeout"], "is out of range; give seconds from 1 to 3600")
    directories.check_system()
    manager = init_system.choose(params["service"])
    lock = contextlib.nullcontext() if module.check_mode else host_lock(params["state_directory"], commands.timeout)
    with lock, contextlib.closing(Drivers(params["backend"], commands)) as drivers:
        host = Host(drivers.get, commands, manager, params["state_directory"], params["stop_timeout"])
        before = _read(host, drivers, wishes, params["force"])
        resolved = resolve.resolve(wishes, before.gpus, before.memory.daemons)
        wanted = Wanted(tuple(wishes), resolved, manager, params["purge"], params["force"])
        steps = plan.make(wanted, before.gpus, before.memory, before.observed)
        warnings = host.check(steps, wanted, foretell=module.check_mode)
        if module.check_mode or not steps.actions:
            after = before
        else:
            host.apply(steps, wanted, before.memory, before.observed)
            after = _read(host, drivers, wishes, params["force"])
            host.verify(wanted, after.observed)
        backend = drivers.backend
    predicted = module.check_mode and bool(steps.actions)
    result = _result(wanted, steps, before, after, predicted, backend)
    return {**result, "warnings": warnings + result["warnings"]}


def _read(host: Host, drivers: Drivers, wishes: t.Sequence[wish.Wish], force: bool) -> Reading:
    memory = host.memory()
    needed = any(entry.started for entry in wishes)
    return Reading(
        drivers.gpus(needed),
        memory,
        host.observe({entry.name: entry.pipe_directory for entry in wishes}, memory, force),
    )


def _result(
    wanted: Wanted, steps: Plan, before: Reading, after: Reading, predicted: bool, backend: str | None
) -> dict[str, t.Any]:
    modes = {gpu.uuid: gpu.compute_mode for gpu in after.gpus}
    if predicted:
        modes.update({action.gpu.uuid: action.mode for action in steps.actions if action.gpu})
    ours = [gpu for gpu in before.gpus if gpu.uuid in _concerned(wanted, before)]
    pending = [name for name, seen in after.observed.items() if seen.unit and seen.unit.restart_pending]
    return {
        "changed": bool(steps.actions),
        "gpus": [
            task.entry(gpu, {"compute_mode": gpu.compute_mode}, {"compute_mode": modes.get(gpu.uuid)}) for gpu in ours
        ],
        "daemons": [_show(entry, wanted, after, predicted) for entry in wanted.wishes],
        "steps": [action.text for action in steps.actions],
        "remaining": sorted(steps.memory.daemons),
        "service": wanted.service,
        "restart_pending": pending,
        "diff": {
            "before": _cards(ours, {gpu.uuid: gpu.compute_mode for gpu in before.gpus}) + _daemons(before),
            "after": _cards(ours, modes) + (_prediction(wanted, before) if predicted else _daemons(after, before)),
        },
        "python": sys.executable,
        "backend": backend,
        "reset_required": False,
        "reboot_required": False,
        "warnings": list(steps.warnings) + _lost(wanted, before) + _pending(pending),
    }


def _lost(wanted: Wanted, before: Reading) -> list[str]:
    if not any(entry.gpus == ("all",) for entry in wanted.wishes):
        return []
    return [f"{gpu.label} was left as it is: {gpu.error}" for gpu in before.gpus if gpu.error]


def _pending(names: t.Sequence[str]) -> list[str]:
    return [
        f"The unit of daemon '{name}' was changed after the daemon started; restart it when its clients allow it"
        for name in names
    ]


def _show(entry: wish.Wish, wanted: Wanted, after: Reading, predicted: bool) -> dict[str, t.Any]:
    resolved = wanted.resolved.get(entry.name)
    daemon = after.observed[entry.name].daemon
    shown: dict[str, t.Any] = {
        "name": entry.name,
        "state": entry.state,
        "pid": daemon.pid if daemon else None,
        "gpus": list(resolved.uuids) if resolved else [],
        "pipe_directory": entry.pipe_directory,
        "log_directory": entry.log_directory,
        "client_environment": {"CUDA_MPS_PIPE_DIRECTORY": entry.pipe_directory} if resolved else {},
        "default": None,
        "in_force": [],
    }
    if daemon:
        told = show_daemon(daemon)
        shown.update(default=told["limits"], in_force=told["servers"])
    if predicted and resolved:
        shown["default"] = {
            "active_thread_percentage": resolved.limits.tenths / 10,
            "memory": {str(ordinal): limits.show_size(mib) for ordinal, mib in resolved.limits.memory},
        }
    return shown


def _concerned(wanted: Wanted, before: Reading) -> set[str]:
    """UUIDs of the cards that this run or an earlier one has to do with."""
    return {uuid for resolved in wanted.resolved.values() for uuid in resolved.uuids} | set(before.memory.modes)


def _cards(gpus: t.Sequence[Gpu], modes: t.Mapping[str | None, str | None]) -> str:
    return "".join(f"{gpu.label}: compute mode {modes.get(gpu.uuid)}\n" for gpu in gpus)


def _daemons(reading: Reading, earlier: Reading | None = None) -> str:
    """A line a daemon; one that was purged is no longer observed, and absent."""
    gone = Observed(None, None, (), None, {})
    observed = {**dict.fromkeys(earlier.observed if earlier else {}, gone), **reading.observed}
    return "".join(f"daemon {name}: {_describe(seen, reading.gpus)}\n" for name, seen in sorted(observed.items()))


def _describe(seen: Observed, gpus: t.Sequence[Gpu]) -> str:
    daemon = seen.daemon
    if daemon is None:
        return "configured, not running" if seen.files else "absent"
    indices = {gpu.uuid: f"GPU {gpu.index}" for gpu in gpus}
    cards = [indices.get(device, device) for device in daemon.devices or ()]
    return _running(cards, daemon.limits)


def _running(cards: t.Sequence[str], value: limits.Limits) -> str:
    """Draw a running daemon; its ordinals count its cards (all of the host's, where it names none)."""
    sizes = [
        f"{limits.show_size(mib)} on {cards[ordinal] if ordinal < len(cards) else f'device {ordinal}'}"
        for ordinal, mib in value.memory
    ]
    memory = f"memory {', '.join(sizes)}" if sizes else "no memory limit"
    return f"running for {', '.join(cards) or 'all GPUs'}, {limits.show_percentage(value.tenths)} % of the threads, {memory}"


def _prediction(wanted: Wanted, before: Reading) -> str:
    lines = ""
    listed = {entry.name: entry for entry in wanted.wishes}
    for name, seen in sorted(before.observed.items()):
        resolved = wanted.resolved.get(name)
        if resolved:
            after = _running([f"GPU {gpu.index}" for gpu in resolved.gpus], resolved.limits)
        elif name in listed:
            after = "absent" if listed[name].state == "absent" else "configured, not running"
        else:
            after = "absent" if wanted.purge else _describe(seen, before.gpus)
        lines += f"daemon {name}: {after}\n"
    return lines
