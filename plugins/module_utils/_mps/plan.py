# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. What has to be done to make a host's daemons as wished: a pure function on what was read."""

from __future__ import annotations

import typing as t

from .._errors import DoesNotFit, InUse
from .._gpu import Gpu
from . import files, limits, modes
from .live import Daemon, Stray
from .modes import EXCLUSIVE
from .record import STOPPED, Memory, Record
from .resolve import Resolved
from .wish import Wish


class Unit(t.NamedTuple):
    """What systemd says of a daemon's unit instance."""

    loaded: bool
    active: str  # ActiveState
    main_pid: int
    enabled: bool
    needs_reload: bool
    restart_pending: bool


class Observed(t.NamedTuple):
    """What was read of one daemon. ``daemon`` answers on the directory that is recorded, else on the wished one."""

    daemon: Daemon | None
    at_new_directory: Daemon | None
    strays: tuple[Stray, ...]
    unit: Unit | None
    files: dict[str, str]


class Action(t.NamedTuple):
    """One step. ``text`` is what a person reads; ``kind`` is what carries it out."""

    kind: str
    text: str
    name: str = ""
    gpu: Gpu | None = None
    mode: str = ""


class Plan(t.NamedTuple):
    """The steps in order, what will be remembered after them, and what a person should know."""

    actions: tuple[Action, ...]
    memory: Memory
    warnings: tuple[str, ...]


class Wanted(t.NamedTuple):
    """The whole wish for a host."""

    wishes: tuple[Wish, ...]
    resolved: dict[str, Resolved]
    service: str
    purge: bool
    force: bool


def make(wanted: Wanted, gpus: t.Sequence[Gpu], memory: Memory, observed: t.Mapping[str, Observed]) -> Plan:
    """Return the plan. Raises what forbids it: clients in the way, somebody else's daemon or processes."""
    ending = _ending(wanted, memory)
    _refuse_taken(wanted, memory, ending)
    stops: list[Action] = []
    starts: list[Action] = []
    removals: list[Action] = []
    daemons = {name: record for name, record in memory.daemons.items() if name not in ending}
    for name in ending:
        seen = observed[name]
        stops += _stop(name, seen, memory.daemons.get(name), wanted)
        if _state(wanted, name) == "absent":
            removals += _remove(name, seen, memory.daemons.get(name))
        elif name in memory.daemons:
            daemons[name] = memory.daemons[name]._replace(pid=STOPPED, started=None)
    for name, resolved in wanted.resolved.items():
        seen = observed[name]
        old = memory.daemons.get(name)
        _refuse_foreign(name, seen, old, wanted.service)
        _refuse_moved(name, seen, observed)
        reasons = _reasons_to_restart(resolved, seen, old, wanted.service)
        if reasons:
            stops += _stop(name, seen, old, wanted, ", ".join(reasons))
        if wanted.service != "systemd" and seen.unit and seen.unit.enabled:
            stops.append(Action("disable", f"disable the unit of daemon '{name}'", name))
        starts += _start(resolved, seen, old, wanted.service, bool(reasons))
        daemons[name] = _record(resolved, None if reasons else seen.daemon, old, wanted.service)
    wishes = {
        name: resolved.uuids for name, resolved in wanted.resolved.items() if resolved.wish.compute_mode == EXCLUSIVE
    }
    entries, changes, warnings = modes.make(wishes, {*ending, *wanted.resolved}, gpus, memory.modes)
    mode_actions = [_set_mode(card, mode) for card, mode in changes]
    _refuse_busy(wanted, mode_actions, starts, observed)
    warnings += _second_user(wanted, observed)
    changed = Memory(daemons, entries)
    remember = (
        [Action("remember", "remember the daemons and the compute modes from before")] if changed != memory else []
    )
    settings = [action for action in mode_actions if action.mode == EXCLUSIVE]
    restorations = [action for action in mode_actions if action.mode != EXCLUSIVE]
    return Plan(tuple(stops + restorations + remember + settings + starts + removals), changed, tuple(warnings))


def _refuse_taken(wanted: Wanted, memory: Memory, ending: t.Sequence[str]) -> None:
    """Daemons of earlier runs that this one does not speak of keep their cards."""
    for other, record in memory.daemons.items():
        if other in wanted.resolved or other in ending or record.pid == STOPPED:
            continue
        for name, resolved in wanted.resolved.items():
            for card in resolved.gpus:
                if card.uuid in record.gpus.values():
                    raise DoesNotFit(
                        f"Daemon '{name}': {card.label} already belongs to daemon '{other}' of an earlier run; "
                        f"a card has one daemon: choose another card, or list '{other}' with state: absent"
                    )


def _state(wanted: Wanted, name: str) -> str:
    """A daemon that is not listed goes as a whole (it is here because of purge)."""
    return next((wish.state for wish in wanted.wishes if wish.name == name), "absent")


def _ending(wanted: Wanted, memory: Memory) -> list[str]:
    named = [wish.name for wish in wanted.wishes if not wish.started]
    listed = {wish.name for wish in wanted.wishes}
    return named + (sorted(set(memory.daemons) - listed) if wanted.purge else [])


def _ours(daemon: Daemon | Stray, seen: Observed, record: Record | None, service: str) -> bool:
    """Under systemd the unit's main process is ours; else the process that was recorded (or is being recorded)."""
    if service == "systemd":
        return seen.unit is not None and seen.unit.main_pid == daemon.pid
    return record is not None and (record.pid is None or (record.pid, record.started) == (daemon.pid, daemon.started))


def _refuse_foreign(name: str, seen: Observed, record: Record | None, service: str) -> None:
    service = record.service if record else service
    daemon = seen.daemon
    if daemon and not _ours(daemon, seen, record, service):
        raise _foreign(name, daemon)
    for stray in seen.strays:
        if not _ours(stray, seen, record, service):
            raise InUse(
                f"Daemon '{name}': a control daemon that this collection did not start (pid {stray.pid}, user id {stray.uid}) "
                f"was told to use {stray.pipe_directory}, but does not answer there; end it, or choose another pipe_directory",
                pid=stray.pid,
            )


def _foreign(name: str, daemon: Daemon) -> InUse:
    pipe = daemon.pipe_directory
    return InUse(
        f"Daemon '{name}': an MPS control daemon that this collection did not start already answers on {pipe} "
        f"(pid {daemon.pid}, user id {daemon.uid}); end it (echo quit -t 30 | CUDA_MPS_PIPE_DIRECTORY={pipe} nvidia-cuda-mps-control), "
        "or choose another pipe_directory",
        pid=daemon.pid,
    )


def _refuse_moved(name: str, seen: Observed, observed: t.Mapping[str, Observed]) -> None:
    """The directory that a daemon shall move to must be free."""
    there = seen.at_new_directory
    if there is None:
        return
    other = next((other for other, its in observed.items() if its.daemon and its.daemon.pid == there.pid), None)
    if other is None:
        raise _foreign(name, there)
    raise InUse(
        f"Daemon '{name}': {there.pipe_directory} still belongs to daemon '{other}'; stop that one first (state: stopped), then run again",
        pid=there.pid,
    )


def _reasons_to_restart(resolved: Resolved, seen: Observed, old: Record | None, service: str) -> list[str]:
    daemon = seen.daemon
    if daemon is None:
        return ["it no longer answers on its pipe directory"] if seen.strays else []
    wish = resolved.wish
    pairs = (
        ("GPUs", daemon.devices, resolved.uuids),
        ("pipe directory", daemon.pipe_directory, wish.pipe_directory),
        ("log directory", daemon.log_directory, wish.log_directory),
        ("service", old.service if old else service, service),
    )
    return [f"its {what} change" for what, now, then in pairs if now != then]


def _stop(name: str, seen: Observed, record: Record | None, wanted: Wanted, why: str = "") -> list[Action]:
    actions = []
    daemon, force = seen.daemon, wanted.force
    service = record.service if record else wanted.service
    because = f" ({why})" if why else ""
    if daemon:
        _refuse_foreign(name, seen, record, service)
        if daemon.clients and not force:
            raise InUse(
                f"Daemon '{name}' (pid {daemon.pid}) has to stop{because}, but it has clients: pids {', '.join(map(str, daemon.clients))}; "
                "end these jobs first, or set force: true to end them",
                clients=list(daemon.clients),
            )
        clients = f" and end its clients {', '.join(map(str, daemon.clients))}" if daemon.clients else ""
        actions.append(Action("stop", f"stop daemon '{name}' (pid {daemon.pid}){because}{clients}", name))
    elif seen.unit and seen.unit.active not in ("inactive", "failed"):
        actions.append(
            Action("stop", f"stop the unit of daemon '{name}' ({seen.unit.active}, nothing answers){because}", name)
        )
    for stray in seen.strays:
        if not _ours(stray, seen, record, service):
            continue
        if stray.children and not force:
            raise InUse(
                f"Daemon '{name}' (pid {stray.pid}) no longer answers on {stray.pipe_directory}, and has servers: pids {', '.join(map(str, stray.children))}; "
                "end the jobs that use them first, or set force: true",
                clients=list(stray.children),
            )
        actions.append(
            Action(
                "end_stray",
                f"end daemon '{name}' (pid {stray.pid}), which no longer answers on {stray.pipe_directory}",
                name,
            )
        )
    if seen.unit and seen.unit.enabled and not why:
        actions.append(Action("disable", f"disable the unit of daemon '{name}'", name))
    return actions


def _remove(name: str, seen: Observed, record: Record | None) -> list[Action]:
    if not seen.files and record is None:
        return []
    return [Action("remove", f"remove the files and the pipe directory of daemon '{name}'", name)]


def _start(resolved: Resolved, seen: Observed, old: Record | None, service: str, stopped: bool) -> list[Action]:
    name = resolved.wish.name
    actions = []
    moved = old is not None and old.service != service  # each service has a directory of its own
    if moved or seen.files != files.render(resolved):
        actions.append(Action("write", f"write the files of daemon '{name}'", name))
    if service == "systemd" and seen.unit and seen.unit.needs_reload:
        actions.append(Action("reload", "let systemd read its units again"))
    if seen.daemon is None or stopped:
        cards = ", ".join(card.label for card in resolved.gpus)
        actions.append(Action("start", f"start daemon '{name}' for {cards} ({describe_limits(resolved)})", name))
    elif limits.commands(resolved.limits, seen.daemon.limits):
        actions.append(Action("limit", f"set the limits of daemon '{name}' to {describe_limits(resolved)}", name))
    if service == "systemd" and not (seen.unit and seen.unit.enabled):
        actions.append(Action("enable", f"enable the unit of daemon '{name}'", name))
    return actions


def describe_limits(resolved: Resolved) -> str:
    """Return a daemon's limits as a person reads them."""
    threads = f"{limits.show_percentage(resolved.limits.tenths)} % of the threads"
    sizes = {resolved.gpus[ordinal].index: limits.show_size(mib) for ordinal, mib in resolved.limits.memory}
    if not sizes:
        return threads + ", no memory limit"
    return threads + ", memory " + ", ".join(f"{size} on GPU {index}" for index, size in sizes.items())


def _record(resolved: Resolved, running: Daemon | None, old: Record | None, service: str) -> Record:
    kept = old if old and running else None
    wish = resolved.wish
    memory = {resolved.uuids[ordinal]: mib for ordinal, mib in resolved.limits.memory} if wish.clients else {}
    pid, started = (kept.pid, kept.started) if kept else (None, None)
    return Record(wish.name, resolved.spelled, wish.pipe_directory, wish.log_directory, service, pid, started, memory)


def _set_mode(card: Gpu, mode: str) -> Action:
    text = f"set the compute mode of {card.label} from {card.compute_mode} to {mode}"
    return Action("set_mode", text, gpu=card, mode=mode)


def _second_user(wanted: Wanted, observed: t.Mapping[str, Observed]) -> list[str]:
    """A control daemon serves one user at a time (docs.nvidia.com/deploy/mps): the next one waits, without a word."""
    warnings = []
    for name in wanted.resolved:
        daemon = observed[name].daemon
        users = sorted({user for server in daemon.servers for user in server.users}) if daemon else []
        if len(users) > 1:
            ids = ", ".join(map(str, users))
            warnings.append(
                f"Daemon '{name}' has clients of several users (ids {ids}): one user's clients wait until the other's have ended"
            )
    return warnings


def _refuse_busy(
    wanted: Wanted, changes: t.Sequence[Action], starts: t.Sequence[Action], observed: t.Mapping[str, Observed]
) -> None:
    """A card that others use cannot become exclusive, nor be exclusive when a daemon starts: our server would be refused."""
    ours: set[int] = set()
    for seen in observed.values():
        for daemon in (seen.daemon, seen.at_new_directory):
            if daemon:
                ours |= {daemon.pid, *(server.pid for server in daemon.servers), *daemon.clients}
        ours |= {child for stray in seen.strays for child in stray.children}
    cards = [action.gpu for action in changes if action.gpu and action.mode == EXCLUSIVE]
    starting = [wanted.resolved[action.name] for action in starts if action.kind == "start"]
    cards += [card for resolved in starting if resolved.wish.compute_mode == EXCLUSIVE for card in resolved.gpus]
    for card in cards:
        # M+C: a client, of whichever server; a server that is not ours shows itself as C
        others = [entry for entry in card.processes if entry.pid not in ours and entry.type not in ("G", "M+C")]
        if others:
            who = ", ".join(f"{entry.pid} ({entry.name or '?'})" for entry in others)
            raise InUse(
                f"{card.label} is in use by processes that are no clients of its MPS daemon: {who}; "
                "end them before the card is shared, or use compute_mode: unchanged",
                processes=[entry._asdict() for entry in others],
            )
