# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. What is remembered between runs: whose daemon is whose, and the compute modes from before. Values only."""

from __future__ import annotations

import typing as t

from .._errors import StateUnreadable

VERSION = 1
STOPPED = 0  # the pid of a daemon that was stopped: nobody who answers in its place is ours


class Record(t.NamedTuple):
    """A daemon that an earlier run set up. ``gpus`` maps the spelling that the task used to the UUID that it meant then.

    ``memory`` has the shares of ``clients`` (MiB) by UUID: that of a card that no longer answers cannot be computed again. Without a pid
    it was about to be started when the run ended: whichever answers is the one.
    """

    name: str
    gpus: dict[str, str]
    pipe_directory: str
    log_directory: str
    service: str
    pid: int | None = None
    started: int | None = None
    memory: dict[str, int] = {}


class ModeEntry(t.NamedTuple):
    """The compute mode of a card before the first change, what it was set to, and the daemons that need it so."""

    before: str
    set: str
    owners: tuple[str, ...]


class Memory(t.NamedTuple):
    """All that is remembered on a host."""

    daemons: dict[str, Record]
    modes: dict[str, ModeEntry]  # by UUID


def to_json(memory: Memory) -> tuple[dict[str, t.Any], dict[str, t.Any]]:
    """Return the contents of daemons.json and compute_modes.json."""
    daemons = {
        name: {key: value for key, value in record._asdict().items() if key != "name"}
        for name, record in memory.daemons.items()
    }
    modes = {uuid: {**entry._asdict(), "owners": list(entry.owners)} for uuid, entry in memory.modes.items()}
    return {"version": VERSION, "daemons": daemons}, {"version": VERSION, "cards": modes}


def from_json(daemons: t.Any, modes: t.Any) -> Memory:
    """Return the memory that the two files hold (None: no such file). Raises StateUnreadable for what this version cannot read."""
    try:
        return Memory(
            {name: Record(name=name, **entry) for name, entry in _content(daemons, "daemons").items()},
            {
                uuid: ModeEntry(entry["before"], entry["set"], tuple(entry["owners"]))
                for uuid, entry in _content(modes, "cards").items()
            },
        )
    except (TypeError, ValueError, KeyError, AttributeError) as exc:
        raise StateUnreadable(f"its contents are not what this collection writes ({exc})") from exc


def _content(document: t.Any, key: str) -> dict[str, t.Any]:
    if document is None:
        return {}
    if document["version"] != VERSION:
        raise StateUnreadable(f"it is of version {document['version']}, this collection reads version {VERSION}")
    return dict(document[key])
