# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. Carry out steps in order; when one fails, undo what can be undone and tell the rest."""

from __future__ import annotations

import typing as t

from .._errors import CommandFailed, SharingError

_TOLD = ("done", "undone", "not_undone")


class Step(t.NamedTuple):
    """Something to do, in a person's words, and how to take it back (None: it cannot be). Without text it is not told.

    ``do`` may return what it did in other words. ``settle`` takes back what it may have done although it failed, and returns whether there
    was anything; a driver that refused has surely done nothing.
    """

    text: str
    do: t.Callable[[], list[str] | None]
    undo: t.Callable[[], object] | None = None
    settle: t.Callable[[], bool] | None = None


def carry_out(steps: t.Sequence[Step]) -> list[str]:
    """Do all steps and return what was done. Raises the error of the step that failed, with ``done``, ``undone`` and ``not_undone`` in its details.

    A step may itself carry out steps: what they tell comes together.
    """
    done: list[Step] = []
    told: list[str] = []
    for step in steps:
        try:
            words = step.do()
        except Exception as exc:  # also what nobody thought of leaves a host with half of the steps done
            error = exc if isinstance(exc, SharingError) else CommandFailed(f"Cannot {step.text}: {_say(exc)}")
            _take_back(done, told, step, error)
            raise error from exc
        done.append(step)
        told += [step.text] * bool(step.text) if words is None else words
    return told


def take_back(steps: t.Sequence[Step]) -> None:
    """Undo steps that were carried out. Raises CommandFailed with those that could not be."""
    left = _undo(steps)[1]
    if left:
        raise CommandFailed("; ".join(left))


def _undo(steps: t.Sequence[Step]) -> tuple[list[str], list[str]]:
    undone: list[str] = []
    left: list[str] = []
    for step in reversed(steps):
        if step.undo is None:
            left.append(step.text)
            continue
        try:
            step.undo()
            undone.append(step.text)
        except Exception as exc:
            left.append(f"{step.text} (taking it back failed: {_say(exc)})")
    return undone, left


def _take_back(done: t.Sequence[Step], told: list[str], failed: Step, error: SharingError) -> None:
    settled: list[str] = []
    unsettled: list[str] = []
    if failed.settle and not error.certain:
        try:
            settled = [failed.text] if failed.settle() else []
        except Exception as exc:
            unsettled = [f"{failed.text} (it may have been done: {_say(exc)})"]
    undone, left = _undo(done)
    undone, left = settled + undone, unsettled + left
    message = error.message.removesuffix(tell("", error.details))
    inner = {key: error.details.get(key, []) for key in _TOLD}
    error.details.update(
        done=told + inner["done"],
        undone=inner["undone"] + [text for text in undone if text],
        not_undone=inner["not_undone"] + [text for text in left if text],
    )
    error.message = tell(message, error.details)


def _say(exc: Exception) -> str:
    return str(exc) if isinstance(exc, (SharingError, OSError)) else f"{type(exc).__name__}: {exc}"


def tell(message: str, details: t.Mapping[str, t.Any]) -> str:
    """Return a message with what was taken back and what was not."""
    told = [f"Taken back: {'; '.join(details['undone'])}"] if details.get("undone") else []
    told += [f"Not taken back: {'; '.join(details['not_undone'])}"] if details.get("not_undone") else []
    return ". ".join([message.rstrip("."), *told]) if told else message
