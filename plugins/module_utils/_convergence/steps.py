# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. Carry out steps in order; when one fails, undo what can be undone and tell the rest."""

from __future__ import annotations

import typing as t

from .._errors import CommandFailed, SharingError

_TOLD = ("done", "undone", "not_undone")


class Step(t.NamedTuple):
    """Something to do, in a person's words, and how to take it back (None: it cannot be). Without text it is not told."""

    text: str
    do: t.Callable[[], None]
    undo: t.Callable[[], None] | None = None


def carry_out(steps: t.Sequence[Step]) -> None:
    """Do all steps. Raises the error of the step that failed, with ``done``, ``undone`` and ``not_undone`` in its details.

    A step may itself carry out steps: what they tell comes together.
    """
    done: list[Step] = []
    for step in steps:
        try:
            step.do()
        except (SharingError, OSError) as exc:
            error = exc if isinstance(exc, SharingError) else CommandFailed(f"Cannot {step.text}: {exc}")
            _take_back(done, error)
            raise error from exc
        done.append(step)


def _take_back(done: t.Sequence[Step], error: SharingError) -> None:
    undone: list[str] = []
    left: list[str] = []
    for step in reversed(done):
        if step.undo is None:
            left.append(step.text)
            continue
        try:
            step.undo()
            undone.append(step.text)
        except (SharingError, OSError) as exc:
            left.append(f"{step.text} (taking it back failed: {exc})")
    message = error.message.removesuffix(_told("", error.details))
    inner = {key: error.details.get(key, []) for key in _TOLD}
    error.details.update(
        done=[step.text for step in done if step.text] + inner["done"],
        undone=inner["undone"] + [text for text in undone if text],
        not_undone=inner["not_undone"] + [text for text in left if text],
    )
    error.message = _told(message, error.details)


def _told(message: str, details: t.Mapping[str, t.Any]) -> str:
    """Return a message with what was taken back and what was not."""
    told = [f"Taken back: {'; '.join(details['undone'])}"] if details.get("undone") else []
    told += [f"Not taken back: {'; '.join(details['not_undone'])}"] if details.get("not_undone") else []
    return ". ".join([message.rstrip("."), *told]) if told else message
