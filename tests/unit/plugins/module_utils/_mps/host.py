# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A host in memory: what plans are made for, and what carrying them out would leave."""

from __future__ import annotations

import typing as t

from ansible_collections.gpuops.sharing.plugins.module_utils._gpu import Gpu
from ansible_collections.gpuops.sharing.plugins.module_utils._mps import files, plan, resolve, wish
from ansible_collections.gpuops.sharing.plugins.module_utils._mps.live import Daemon, Server
from ansible_collections.gpuops.sharing.plugins.module_utils._mps.plan import Observed, Plan, Unit, Wanted
from ansible_collections.gpuops.sharing.plugins.module_utils._mps.record import Memory
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils.fakes import CARDS

NOTHING = Observed(daemon=None, at_new_directory=None, strays=(), unit=None, files={})
STOPPED_UNIT = Unit(
    loaded=True, active="inactive", main_pid=0, enabled=False, needs_reload=False, restart_pending=False
)


class Host(t.NamedTuple):
    """What is read of a host before a plan is made."""

    gpus: tuple[Gpu, ...] = CARDS
    memory: Memory = Memory({}, {})
    seen: dict[str, Observed] = {}

    def but(self, name: str, **changes: t.Any) -> Host:
        """The same host, with something else seen of one daemon."""
        return self._replace(seen={**self.seen, name: self.seen.get(name, NOTHING)._replace(**changes)})

    def with_mode(self, index: int, mode: str | None) -> Host:
        """The same host, with another compute mode of a card."""
        return self.with_card(index, compute_mode=mode)

    def with_card(self, index: int, **changes: t.Any) -> Host:
        """The same host, with something else seen of a card."""
        return self._replace(gpus=tuple(gpu._replace(**changes) if gpu.index == index else gpu for gpu in self.gpus))

    def with_clients(self, name: str, *clients: int, users: tuple[int, ...] = (0,)) -> Host:
        """The same host, with clients of a running daemon."""
        daemon = running(self, name)
        return self.but(name, daemon=daemon._replace(servers=(Server(90, users, clients, daemon.limits.tenths, ()),)))


def running(host: Host, name: str) -> Daemon:
    """The daemon that answers."""
    daemon = host.seen[name].daemon
    assert daemon is not None
    return daemon


def daemon(pid: int, resolved: resolve.Resolved) -> Daemon:
    """The daemon that runs as it was wished."""
    pipe, log = resolved.wish.pipe_directory, resolved.wish.log_directory
    return Daemon(pid, 1000 + pid, 0, pipe, log, resolved.uuids, resolved.limits, ())


def wanted(host: Host, wishes: t.Sequence[dict[str, t.Any]], service: str, purge: bool, force: bool) -> Wanted:
    parsed = wish.parse(wishes)
    return Wanted(tuple(parsed), resolve.resolve(parsed, host.gpus, host.memory.daemons), service, purge, force)


def make(
    host: Host, *wishes: dict[str, t.Any], service: str = "none", purge: bool = False, force: bool = False
) -> Plan:
    """The plan for a host."""
    whole = wanted(host, wishes, service, purge, force)
    names = [*(entry.name for entry in whole.wishes), *host.memory.daemons]
    return plan.make(whole, host.gpus, host.memory, {name: host.seen.get(name, NOTHING) for name in names})


def steps(made: Plan) -> list[str]:
    """The steps of a plan in two or three words each."""
    return [
        f"set_mode {action.gpu.index} {action.mode}" if action.gpu else f"{action.kind} {action.name}".strip()
        for action in made.actions
    ]


def after(
    host: Host, *wishes: dict[str, t.Any], service: str = "none", purge: bool = False, force: bool = False
) -> Host:
    """The host on which the plan was carried out."""
    whole = wanted(host, wishes, service, purge, force)
    pid = 100 + 10 * len(host.seen)
    for action in make(host, *wishes, service=service, purge=purge, force=force).actions:
        name, seen = action.name, host.seen.get(action.name, NOTHING)
        unit = seen.unit or STOPPED_UNIT
        if action.kind == "set_mode" and action.gpu:
            host = host.with_mode(action.gpu.index, action.mode)
        elif action.kind == "remember":
            host = host._replace(memory=make(host, *wishes, service=service, purge=purge, force=force).memory)
        elif action.kind == "write":
            host = host.but(name, files=files.render(whole.resolved[name]))
        elif action.kind == "remove":
            host = host.but(name, files={})
        elif action.kind == "stop":
            host = host.but(name, daemon=None, unit=seen.unit and unit._replace(active="inactive", main_pid=0))
        elif action.kind in ("enable", "disable"):
            host = host.but(name, unit=unit._replace(enabled=action.kind == "enable"))
        elif action.kind == "limit" and seen.daemon:
            host = host.but(name, daemon=seen.daemon._replace(limits=whole.resolved[name].limits))
        elif action.kind == "start":
            pid += 1
            new = daemon(pid, whole.resolved[name])
            managed = unit._replace(active="active", main_pid=pid) if service == "systemd" else seen.unit
            known = host.memory.daemons[name]._replace(pid=pid, started=new.started)
            host = host.but(name, daemon=new, unit=managed)
            host = host._replace(memory=host.memory._replace(daemons={**host.memory.daemons, name: known}))
        else:
            raise AssertionError(action)
    return host
