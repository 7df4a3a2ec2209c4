# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. Wishes met with the cards that are there: which cards, and do they bear it. Pure functions."""

from __future__ import annotations

import typing as t

from .. import _selection
from .._errors import BadOption, DoesNotFit
from .._gpu import VOLTA, Gpu
from . import limits
from .limits import Limits
from .record import Record
from .wish import Wish

OLDEST = (3, 5)  # MPS needs compute capability 3.5 (docs.nvidia.com/deploy/mps)


class Resolved(t.NamedTuple):
    """A wish with the cards that it means; a daemon's ordinals count them from 0."""

    wish: Wish
    gpus: tuple[Gpu, ...]
    limits: Limits
    spelled: dict[str, str]  # how the task names its cards -> UUID

    @property
    def uuids(self) -> tuple[str, ...]:
        """UUIDs of the daemon's cards, in its own order."""
        return tuple(str(gpu.uuid) for gpu in self.gpus)


def resolve(wishes: t.Sequence[Wish], gpus: t.Sequence[Gpu], records: t.Mapping[str, Record]) -> dict[str, Resolved]:
    """Return the wishes that need cards, by name; fail on what cannot be before anything is changed."""
    resolved = {}
    owner: dict[str, str] = {}
    for number, wish in enumerate(wishes):
        if not wish.started:
            continue
        option = f"daemons[{number}]"
        cards = _selection.choose(wish.gpus, gpus, f"{option}.gpus")
        if wish.name in records:
            _check_meaning(wish, gpus, records[wish.name], f"{option}.gpus")
            cards = _keep_lost(wish, cards, gpus, records[wish.name])
        for card in cards:
            if str(card.uuid) in owner:
                raise BadOption(
                    f"{option}.gpus",
                    ", ".join(wish.gpus),
                    f"{card.label} already belongs to daemon '{owner[str(card.uuid)]}'; a card has one daemon",
                )
            owner[str(card.uuid)] = wish.name
            _check_card(wish, card, option)
        resolved[wish.name] = Resolved(
            wish, tuple(cards), _limits(wish, cards, option, records.get(wish.name)), _spelled(wish, cards)
        )
    return resolved


def _spelled(wish: Wish, cards: t.Sequence[Gpu]) -> dict[str, str]:
    if wish.gpus == (_selection.ALL,):
        return {str(card.uuid): str(card.uuid) for card in cards}
    meant = {name: _selection.find(name, cards) for name in wish.gpus}
    return {name: str(card.uuid) for name, card in meant.items() if card}


def _check_meaning(wish: Wish, gpus: t.Sequence[Gpu], record: Record, option: str) -> None:
    """An index or address that means another card than before: somebody swapped cards, or one fell off."""
    for name in wish.gpus:
        before = record.gpus.get(name)
        now = None if name == _selection.ALL else _selection.find(name, gpus)
        if before and now and now.uuid != before:
            raise DoesNotFit(
                f"{option}: '{name}' meant {before} when daemon '{wish.name}' was set up and means {now.uuid} now; "
                "name the card by its UUID, or run once with state: absent for this daemon",
                option=option,
            )


def _keep_lost(wish: Wish, cards: list[Gpu], gpus: t.Sequence[Gpu], record: Record) -> list[Gpu]:
    """With ``all``, a card that no longer answers stays in the daemon's set: taking it out would restart what serves the others."""
    lost = [gpu for gpu in gpus if gpu.error]
    if wish.gpus != (_selection.ALL,) or not lost:
        return cards
    by_uuid = {gpu.uuid: gpu for gpu in cards}
    recorded = list(record.gpus.values())
    if not set(by_uuid) <= set(recorded):
        return cards
    return [by_uuid.get(uuid) or Gpu(index=-1, uuid=uuid, error="does not answer") for uuid in recorded]


def _check_card(wish: Wish, card: Gpu, option: str) -> None:
    if card.error:
        return
    if card.mig and (card.mig.current or card.mig.pending):
        what = "is in MIG mode" if card.mig.current else "will be in MIG mode after a reset or a reboot"
        raise DoesNotFit(
            f"{option}.gpus: {card.label} {what}; a daemon for a whole card cannot serve it: disable MIG mode first, or choose another card"
        )
    capability = card.compute_capability
    if capability and capability < OLDEST:
        raise DoesNotFit(
            f"{option}.gpus: {card.label} has compute capability {capability[0]}.{capability[1]}; MPS needs 3.5 or newer"
        )
    limited = wish.tenths != limits.FULL or wish.memory or wish.clients
    if capability and capability < VOLTA and limited:
        raise DoesNotFit(
            f"{option}: {card.label} is {card.architecture} (compute capability {capability[0]}.{capability[1]}); limits of threads and memory "
            "need Volta (7.0) or newer: leave active_thread_percentage, memory_limits and clients out for this card"
        )
    if card.compute_mode == "prohibited" and wish.compute_mode == "unchanged":
        raise DoesNotFit(
            f"{option}.compute_mode: unchanged, but {card.label} is in mode prohibited, in which no CUDA process runs; "
            "use exclusive_process, or set another mode first"
        )


def _limits(wish: Wish, cards: t.Sequence[Gpu], option: str, record: Record | None) -> Limits:
    memory: dict[int, int] = {}
    remembered = record.memory if record else {}
    if wish.clients:
        for ordinal, card in enumerate(cards):
            if card.memory_total_mib:
                memory[ordinal] = limits.share_of_memory(wish.clients, card.memory_total_mib, f"{option}.clients")
            elif card.error and card.uuid in remembered:
                memory[ordinal] = remembered[card.uuid]
            elif not card.error:
                raise DoesNotFit(
                    f"{option}.clients: the memory of {card.label} cannot be read, so it cannot be shared evenly; "
                    "use active_thread_percentage and memory_limits"
                )
    if [limit.gpu for limit in wish.memory].count(_selection.ALL) > 1:
        raise BadOption(f"{option}.memory_limits", _selection.ALL, "has two limits; give one")
    named: set[int] = set()
    for number, limit in enumerate(wish.memory):
        where = f"{option}.memory_limits[{number}]"
        for ordinal in _ordinals(limit.gpu, cards, f"{where}.gpu"):
            if limit.gpu != _selection.ALL:
                if ordinal in named:
                    raise BadOption(f"{where}.gpu", limit.gpu, f"{cards[ordinal].label} has a limit already; give one")
                named.add(ordinal)
            elif ordinal in named:
                continue
            limits.check_fits(limit.mib, cards[ordinal].memory_total_mib, cards[ordinal].label, f"{where}.size")
            memory[ordinal] = limit.mib
    return Limits(wish.tenths, tuple(sorted(memory.items())))


def _ordinals(name: str, cards: t.Sequence[Gpu], option: str) -> list[int]:
    if name == _selection.ALL:
        return list(range(len(cards)))
    card = _selection.find(name, cards)
    if card is None:
        raise BadOption(
            option, name, f"is not among the GPUs of this daemon ({', '.join(card.label for card in cards)})"
        )
    return [list(cards).index(card)]
