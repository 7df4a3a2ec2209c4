# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. A running MPS control daemon, as its answers and /proc show it. Values only."""

from __future__ import annotations

import typing as t

from .limits import Limits


class Server(t.NamedTuple):
    """An MPS server of a daemon, with the limits that its clients get; None where it does not tell (still starting)."""

    pid: int
    users: tuple[int, ...]  # user ids of the server and its clients
    clients: tuple[int, ...]
    tenths: int | None
    memory: tuple[tuple[int, int], ...]


class Daemon(t.NamedTuple):
    """A control daemon that answers on its pipe directory."""

    pid: int
    started: int  # clock ticks after boot: tells a process from a later one with the same pid
    uid: int
    pipe_directory: str
    log_directory: str | None
    devices: tuple[str, ...] | None  # CUDA_VISIBLE_DEVICES; None: not set, so all GPUs
    limits: Limits
    servers: tuple[Server, ...]

    @property
    def clients(self) -> tuple[int, ...]:
        """Every client of every server."""
        return tuple(sorted({client for server in self.servers for client in server.clients}))


class Stray(t.NamedTuple):
    """A control daemon process that does not answer on the pipe directory that it was started with."""

    pid: int
    started: int
    uid: int
    pipe_directory: str
    children: tuple[int, ...]
