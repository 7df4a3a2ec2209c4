# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. The compute modes of shared cards: what to set, and what to remember for the way back. Pure functions."""

from __future__ import annotations

import typing as t

from .._errors import DoesNotFit
from .._gpu import Gpu
from .record import ModeEntry

EXCLUSIVE = "exclusive_process"


def make(
    wishes: t.Mapping[str, t.Sequence[str]],
    touched: t.Collection[str],
    gpus: t.Sequence[Gpu],
    known: t.Mapping[str, ModeEntry],
) -> tuple[dict[str, ModeEntry], list[tuple[Gpu, str]], list[str]]:
    """Return what to remember, which card to set to which mode, and warnings.

    ``wishes`` has the UUIDs of the cards that each daemon needs exclusive, ``touched`` the daemons that this run is about. A mode
    from before is never overwritten while it is remembered. Raises DoesNotFit for a card whose mode cannot be read.
    """
    owners = {uuid: [name for name in entry.owners if name not in touched] for uuid, entry in known.items()}
    for name, uuids in wishes.items():
        for uuid in uuids:
            owners.setdefault(uuid, []).append(name)
    by_uuid = {gpu.uuid: gpu for gpu in gpus if not gpu.error}
    some_silent = not gpus or any(gpu.error for gpu in gpus)
    entries: dict[str, ModeEntry] = {}
    changes: list[tuple[Gpu, str]] = []
    warnings: list[str] = []
    for uuid, names in owners.items():
        card, entry = by_uuid.get(uuid), known.get(uuid)
        if entry and entry.owners and not {*names, *entry.owners} & {*touched}:
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
                changes.append((card, EXCLUSIVE))
        elif entry and card.compute_mode != entry.set:
            warnings.append(
                f"{card.label} is in mode {card.compute_mode}, not in {entry.set} as was set: somebody else changed it, so it is left as it is"
            )
        elif entry and entry.before != card.compute_mode:
            changes.append((card, entry.before))
    return entries, changes, warnings
