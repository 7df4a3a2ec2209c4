# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Steps are done in order; where one fails, the earlier ones are taken back, last first, and the error tells all of it."""

from __future__ import annotations

import pytest
from ansible_collections.gpuops.sharing.plugins.module_utils._convergence.steps import Step, carry_out, take_back
from ansible_collections.gpuops.sharing.plugins.module_utils._errors import CommandFailed, InUse, NotReadBack


class Diary:
    """Steps that write down what happens to them."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def step(
        self, text: str, failure: Exception | None = None, undo: bool = True, undo_failure: Exception | None = None
    ) -> Step:
        return Step(
            text,
            lambda: self._note(text, failure),
            (lambda: self._note(f"undo {text}", undo_failure)) if undo else None,
        )

    def _note(self, line: str, failure: Exception | None) -> None:
        self.lines.append(line)
        if failure:
            raise failure


@pytest.fixture
def diary() -> Diary:
    return Diary()


def test_all_steps_are_done_in_order(diary: Diary) -> None:
    carry_out([diary.step("set"), diary.step("write"), diary.step("start")])
    assert diary.lines == ["set", "write", "start"]


def test_what_was_done_is_taken_back_last_first(diary: Diary) -> None:
    with pytest.raises(InUse) as failure:
        carry_out(
            [
                diary.step("set"),
                diary.step("write"),
                diary.step("start", InUse("It is in use.", pid=7)),
                diary.step("enable"),
            ]
        )
    assert diary.lines == ["set", "write", "start", "undo write", "undo set"]
    assert failure.value.message == "It is in use. Taken back: write; set"
    assert failure.value.details == {"pid": 7, "done": ["set", "write"], "undone": ["write", "set"], "not_undone": []}


def test_what_cannot_be_taken_back_is_told(diary: Diary) -> None:
    with pytest.raises(InUse) as failure:
        carry_out([diary.step("stop", undo=False), diary.step("set"), diary.step("start", InUse("It is in use."))])
    assert failure.value.message == "It is in use. Taken back: set. Not taken back: stop"
    assert failure.value.details == {"done": ["stop", "set"], "undone": ["set"], "not_undone": ["stop"]}


@pytest.mark.parametrize("trouble", [NotReadBack("reads default"), OSError(5, "Input/output error")])
def test_an_undo_that_fails_stops_no_other(diary: Diary, trouble: Exception) -> None:
    with pytest.raises(InUse) as failure:
        carry_out(
            [diary.step("set"), diary.step("write", undo_failure=trouble), diary.step("start", InUse("It is in use."))]
        )
    assert diary.lines == ["set", "write", "start", "undo write", "undo set"]
    assert failure.value.details["undone"] == ["set"]
    assert failure.value.details["not_undone"] == [f"write (taking it back failed: {trouble})"]
    assert (
        failure.value.message
        == f"It is in use. Taken back: set. Not taken back: write (taking it back failed: {trouble})"
    )


def test_a_first_step_that_fails_leaves_nothing_to_tell(diary: Diary) -> None:
    with pytest.raises(InUse) as failure:
        carry_out([diary.step("set", InUse("It is in use.")), diary.step("write")])
    assert diary.lines == ["set"]
    assert (failure.value.message, failure.value.details) == (
        "It is in use.",
        {"done": [], "undone": [], "not_undone": []},
    )


def test_trouble_of_the_operating_system_names_the_step(diary: Diary) -> None:
    with pytest.raises(CommandFailed) as failure:
        carry_out([diary.step("set"), diary.step("write", OSError(28, "No space left on device"))])
    assert failure.value.message == "Cannot write: [Errno 28] No space left on device. Taken back: set"


def test_steps_within_a_step_are_told_together_and_once(diary: Diary) -> None:
    inner = [diary.step("copy"), diary.step("link", undo=False), diary.step("start", InUse("It is in use."))]
    outer = [diary.step("set"), Step("install", lambda: carry_out(inner), lambda: None)]
    with pytest.raises(InUse) as failure:
        carry_out(outer)
    assert failure.value.message == "It is in use. Taken back: copy; set. Not taken back: link"
    assert failure.value.details == {
        "done": ["set", "copy", "link"],
        "undone": ["copy", "set"],
        "not_undone": ["link"],
    }


def test_a_step_without_text_is_done_and_taken_back_and_not_told(diary: Diary) -> None:
    with pytest.raises(InUse) as failure:
        carry_out([diary.step("set"), diary.step(""), diary.step("start", InUse("It is in use."))])
    assert diary.lines == ["set", "", "start", "undo ", "undo set"]
    assert failure.value.message == "It is in use. Taken back: set"
    assert failure.value.details == {"done": ["set"], "undone": ["set"], "not_undone": []}


@pytest.mark.parametrize("certain", [True, False])
def test_what_a_failed_step_may_have_done_is_settled_unless_it_was_refused(diary: Diary, certain: bool) -> None:
    error = CommandFailed("It did not end.")
    error.certain = certain

    def settle() -> bool:
        diary.lines.append("settle")
        return True

    with pytest.raises(CommandFailed) as failure:
        carry_out([diary.step("set"), diary.step("make", error)._replace(settle=settle)])
    assert diary.lines == ["set", "make", *(["settle"] if not certain else []), "undo set"]
    assert failure.value.details["undone"] == [*(["make"] if not certain else []), "set"]


def test_what_cannot_be_settled_is_told(diary: Diary) -> None:
    def settle() -> bool:
        raise CommandFailed("the card does not answer")

    with pytest.raises(CommandFailed) as failure:
        carry_out([diary.step("make", CommandFailed("It did not end."))._replace(settle=settle)])
    assert failure.value.details["not_undone"] == ["make (it may have been done: the card does not answer)"]


def test_a_step_may_say_in_other_words_what_it_did(diary: Diary) -> None:
    assert carry_out([diary.step("set"), Step("reset", lambda: []), Step("", lambda: ["reset GPU 0"])]) == [
        "set",
        "reset GPU 0",
    ]


def test_what_nobody_thought_of_is_taken_back_too(diary: Diary) -> None:
    with pytest.raises(CommandFailed) as failure:
        carry_out([diary.step("set"), diary.step("make", AttributeError("no such function"))])
    assert failure.value.message == "Cannot make: AttributeError: no such function. Taken back: set"


def test_steps_that_were_carried_out_are_taken_back_later(diary: Diary) -> None:
    steps = [diary.step("set"), diary.step("copy", undo_failure=InUse("It is in use.")), diary.step("link")]
    carry_out(steps)
    with pytest.raises(CommandFailed, match=r"^copy \(taking it back failed: It is in use.\)$"):
        take_back(steps)
    assert diary.lines[3:] == ["undo link", "undo copy", "undo set"]
