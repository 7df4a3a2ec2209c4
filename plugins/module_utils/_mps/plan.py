# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. What has to be done to make a host's daemons as wished: a pure function on what was read."""

from __future__ import annotations

import typing as t

from .._errors import DoesNotFit, InUse
from .._gpu import Gpu
from . import files, limits
from .live import Daemon, Stray
from .record import Memory, ModeEntry, Record
from .resolve import Resolved
from .wish import Wish

EXCLUSIVE = "exclusive_process"


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
        stops += _stop(name, seen, memory.daemons.get(name), wanted.force)
        if _state(wanted, name) == "absent":
            removals += _remove(name, seen, memory.daemons.get(name))
        elif name in memory.daemons:
            daemons[name] = memory.daemons[name]._replace(pid=None, started=None)
    for name, resolved in wanted.resolved.items():
        seen = observed[name]
        old = memory.daemons.get(name)
        _refuse_foreign(name, seen, old, wanted.service)
        reasons = _reasons_to_restart(resolved, seen, old, wanted.service)
        if reasons:
            stops += _stop(name, seen, old, wanted.force, ", ".join(reasons))
        if wanted.service != "systemd" and seen.unit and seen.unit.enabled:
            stops.append(Action("disable", f"disable the unit of daemon '{name}'", name))
        starts += _start(resolved, seen, old, wanted.service, bool(reasons))
        daemons[name] = _record(resolved, None if reasons else seen.daemon, old, wanted.service)
    modes, mode_actions, warnings = _modes(wanted, gpus, memory, ending)
    _refuse_busy(wanted, mode_actions, starts, observed)
    warnings += _second_user(wanted, observed)
    changed = Memory(daemons, modes)
    remember = (
        [Action("remember", "remember the daemons and the compute modes from before")] if changed != memory else []
    )
    settings = [action for action in mode_actions if action.mode == EXCLUSIVE]
    restorations = [action for action in mode_actions if action.mode != EXCLUSIVE]
    return Plan(tuple(stops + restorations + remember + settings + starts + removals), changed, tuple(warnings))


def _refuse_taken(wanted: Wanted, memory: Memory, ending: t.Sequence[str]) -> None:
    """Daemons of earlier runs that this one does not speak of keep their cards."""
    for other, record in memory.daemons.items():
        if other in wanted.resolved or other in ending or record.pid is None:  # without a pid it was stopped
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


def _foreign_strays(seen: Observed, record: Record | None, service: str) -> list[Stray]:
    return [stray for stray in seen.strays if not _ours(stray, seen, record, service)]


def _refuse_foreign(name: str, seen: Observed, record: Record | None, service: str) -> None:
    service = record.service if record else service
    for daemon in (seen.daemon, seen.at_new_directory):
        if daemon and (daemon is seen.at_new_directory or not _ours(daemon, seen, record, service)):
            pipe = daemon.pipe_directory
            raise InUse(
                f"Daemon '{name}': an MPS control daemon that this collection did not start already answers on {pipe} "
                f"(pid {daemon.pid}, user id {daemon.uid}); end it (echo quit -t 30 | CUDA_MPS_PIPE_DIRECTORY={pipe} nvidia-cuda-mps-control), "
                "or choose another pipe_directory",
                pid=daemon.pid,
            )
    for stray in _foreign_strays(seen, record, service):
        raise InUse(
            f"Daemon '{name}': a control daemon that this collection did not start (pid {stray.pid}, user id {stray.uid}) "
            f"was told to use {stray.pipe_directory}, but does not answer there; end it, or choose another pipe_directory",
            pid=stray.pid,
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


def _stop(name: str, seen: Observed, record: Record | None, force: bool, why: str = "") -> list[Action]:
    actions = []
    daemon = seen.daemon
    because = f" ({why})" if why else ""
    if daemon:
        _refuse_foreign(name, seen._replace(at_new_directory=None), record, record.service if record else "none")
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
        if not _ours(stray, seen, record, record.service if record else "none"):
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
    """A daemon that is about to be started has no pid yet: whichever then answers is the one."""
    kept = old if old and running else None
    wish = resolved.wish
    return Record(
        wish.name,
        resolved.spelled,
        wish.pipe_directory,
        wish.log_directory,
        service,
        kept.pid if kept else None,
        kept.started if kept else None,
    )


def _modes(
    wanted: Wanted, gpus: t.Sequence[Gpu], memory: Memory, ending: t.Sequence[str]
) -> tuple[dict[str, ModeEntry], list[Action], list[str]]:
    """Return what to remember of compute modes, what to set, and warnings. A mode from before is never overwritten while it is remembered."""
    touched = set(ending) | set(wanted.resolved)
    owners = {uuid: [name for name in entry.owners if name not in touched] for uuid, entry in memory.modes.items()}
    for name, resolved in wanted.resolved.items():
        if resolved.wish.compute_mode == EXCLUSIVE:
            for uuid in resolved.uuids:
                owners.setdefault(uuid, []).append(name)
    by_uuid = {gpu.uuid: gpu for gpu in gpus if not gpu.error}
    some_silent = not gpus or any(gpu.error for gpu in gpus)
    entries: dict[str, ModeEntry] = {}
    actions: list[Action] = []
    warnings: list[str] = []
    for uuid, names in owners.items():
        card, entry = by_uuid.get(uuid), memory.modes.get(uuid)
        if entry and entry.owners and not touched & {*names, *entry.owners}:
            entries[uuid] = entry  # other daemons' card: not this run's business
        elif card is None or (card.compute_mode is None and not names):
            if entry and (names or some_silent or card):
                entries[uuid] = entry._replace(owners=tuple(sorted(names)))
                warnings.append(
                    f"GPU {uuid} does not answer: its compute mode stays as it is, and '{entry.before}' stays remembered as the mode from before"
                )
            elif entry:
                warnings.append(
                    f"GPU {uuid} is no longer in this host: the mode from before, '{entry.before}', is forgotten"
                )
        elif card.compute_mode is None:
            raise DoesNotFit(
                f"The compute mode of {card.label} cannot be read, so it cannot be set safely; use compute_mode: unchanged"
            )
        elif names:
            entries[uuid] = ModeEntry(entry.before if entry else card.compute_mode, EXCLUSIVE, tuple(sorted(names)))
            if card.compute_mode != EXCLUSIVE:
                actions.append(_set_mode(card, EXCLUSIVE))
        elif entry and card.compute_mode != entry.set:
            warnings.append(
                f"{card.label} is in mode {card.compute_mode}, not in {entry.set} as was set: somebody else changed it, so it is left as it is"
            )
        elif entry and entry.before != card.compute_mode:
            actions.append(_set_mode(card, entry.before))
    return entries, actions, warnings


def _set_mode(card: Gpu, mode: str) -> Action:
    return Action(
        "set_mode", f"set the compute mode of {card.label} from {card.compute_mode} to {mode}", gpu=card, mode=mode
    )


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
    wanted: Wanted, modes: t.Sequence[Action], starts: t.Sequence[Action], observed: t.Mapping[str, Observed]
) -> None:
    """A card that others use cannot become exclusive, nor be exclusive when a daemon starts: our server would be refused."""
    ours: set[int] = set()
    for seen in observed.values():
        for daemon in (seen.daemon, seen.at_new_directory):
            if daemon:
                ours |= {daemon.pid, *(server.pid for server in daemon.servers), *daemon.clients}
        ours |= {child for stray in seen.strays for child in stray.children}
    cards = [action.gpu for action in modes if action.gpu and action.mode == EXCLUSIVE]
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
