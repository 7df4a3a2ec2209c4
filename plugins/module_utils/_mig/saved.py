# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. The file in which a host's layouts are written down, for the program that brings them back at boot."""

from __future__ import annotations

import json
import os
import typing as t

from .. import _selection
from .._convergence import store
from .._errors import BadOption, StateUnreadable
from .._gpu import Gpu
from . import layout

REMEDY = "move it away, and run the role mig again for all cards that it had"

Entry = t.Mapping[str, t.Any]


def read(path: str) -> list[Entry]:
    """Return the layouts in a file, none where there is no file. Raises StateUnreadable where they are none."""
    document = store.read_json(path, REMEDY)
    if document is None:
        return []
    entries = document.get("layouts") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise StateUnreadable(f"{path} has no layouts; {REMEDY}")
    try:
        layouts = layout.parse(entries)
    except BadOption as exc:
        raise StateUnreadable(f"{path}: {exc.message}; {REMEDY}") from exc
    if any(one.gpus == (_selection.ALL,) for one in layouts):
        raise StateUnreadable(f"{path} has a layout for all cards, and must have one for each; {REMEDY}")
    return entries


def prepare(path: str) -> None:
    """Raises StateUnreadable where the file cannot be written, before anything else is changed."""
    store.probe(os.path.dirname(path))


def gone(entries: t.Sequence[Entry], machine: t.Sequence[Gpu]) -> list[str]:
    """Return the cards of entries that the host has no more; none is known to be gone while a card does not answer."""
    if any(gpu.error for gpu in machine):
        return []
    names = [name for entry in layout.parse(entries) for name in entry.gpus]
    return [name for name in names if _selection.find(name, machine) is None]


def merge(
    entries: t.Sequence[Entry], now: t.Sequence[Entry], gpus: t.Sequence[Gpu], machine: t.Sequence[Gpu]
) -> list[Entry]:
    """Return what is to be in the file when these cards are as ``now``.

    Entries of other cards stay, unless these are gone; a card out of MIG mode has none.
    """
    away = gone(entries, machine)
    others = []
    for entry in entries:
        names = layout.parse([entry])[0].gpus
        left = [name for name in names if name not in away and _selection.find(name, gpus) is None]
        others += [{**entry, "gpus": left}] if left else []
    return sorted([*others, *(entry for entry in now if entry["enabled"])], key=lambda entry: list(entry["gpus"]))


def write(path: str, entries: t.Sequence[Entry]) -> None:
    """Write the file, or remove it where nothing is left to be brought back."""
    if entries:
        store.write_text(path, json.dumps({"layouts": entries}, indent=2) + "\n")
    else:
        store.remove(path)
