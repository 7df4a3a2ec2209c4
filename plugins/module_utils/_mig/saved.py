# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. The file in which a host's layouts are written down, for the program that brings them back at boot."""

from __future__ import annotations

import json
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
        layout.parse(entries)
    except BadOption as exc:
        raise StateUnreadable(f"{path}: {exc.message}; {REMEDY}") from exc
    return entries


def merge(entries: t.Sequence[Entry], now: t.Sequence[Entry], gpus: t.Sequence[Gpu]) -> list[Entry]:
    """Return what is to be in the file when these cards are as ``now``; entries of other cards stay, one without MIG mode has none."""
    others = []
    for entry in entries:
        left = [name for name in layout.parse([entry])[0].gpus if _selection.find(name, gpus) is None]
        others += [{**entry, "gpus": left}] if left else []
    return sorted([*others, *(entry for entry in now if entry["enabled"])], key=lambda entry: list(entry["gpus"]))


def write(path: str, entries: t.Sequence[Entry]) -> None:
    """Write the file, or remove it where nothing is left to be brought back."""
    if entries:
        store.write_text(path, json.dumps({"layouts": entries}, indent=2) + "\n")
    else:
        store.remove(path)
