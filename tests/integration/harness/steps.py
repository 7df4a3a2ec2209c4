# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The twelve steps of a module that changes something: create, change and delete; each asked for in check mode, done, asked for again, done again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from harness import snapshot
from harness.machine import Machine
from harness.modules import Result
from harness.playbook import play

VERBS = ("create", "change", "delete")
PASSES = ("check", "do", "check again", "do again")


class Step(NamedTuple):
    """What a step answered, and the machine after it."""

    result: Result
    machine: dict[str, Any]


Steps = dict[tuple[str, str], Step]
Wishes = dict[str, dict[str, Any]]
Twelve = Callable[[Machine, str, Wishes], Steps]


def by_ansible(machine: Machine, module: str, wishes: Wishes) -> Steps:
    """Run all steps in one play."""
    tasks: list[dict[str, Any]] = []
    for verb in VERBS:
        options = {"state_directory": str(machine.var), **wishes[verb]}
        tasks += [
            {
                "name": f"{verb}, {when}",
                f"gpuops.sharing.{module}": options,
                "check_mode": "check" in when,
                "diff": True,
            }
            for when in PASSES
        ]
    run = play(machine, tasks)
    assert run.status == 0, run.output
    return {
        (verb, when): Step(run.named(f"{verb}, {when}").result, run.named(f"{verb}, {when}").machine)
        for verb in VERBS
        for when in PASSES
    }


def one_by_one(machine: Machine, module: str, wishes: Wishes) -> Steps:
    """Run the module for each step."""
    steps = {}
    for verb in VERBS:
        for when in PASSES:
            steps[verb, when] = Step(
                machine.run(module, check="check" in when, **wishes[verb]), snapshot.take(machine.folder)
            )
    return steps


def follow(
    steps: Steps, before: dict[str, Any], setter_calls: dict[str, int], foretold: Sequence[str] = VERBS
) -> dict[str, dict[str, str]]:
    """Only `do` changes anything, with no more calls that change something than are needed. Return what the diffs of check mode say."""
    last = before
    for (verb, when), step in steps.items():
        doing = when == "do"
        assert step.result.changed == (when in ("check", "do")), (verb, when)
        assert step.machine["setter_calls"] - last["setter_calls"] == (setter_calls[verb] if doing else 0), (verb, when)
        for what in ("changes", "files", "daemons"):
            assert doing or step.machine[what] == last[what], (verb, when, what)
        assert step.result.changed == (step.result["diff"]["before"] != step.result["diff"]["after"]), (verb, when)
        last = step.machine
    for verb in foretold:
        assert steps[verb, "check"].result["diff"] == steps[verb, "do"].result["diff"], (
            "check mode foretells what is then done"
        )
    return {verb: steps[verb, "check"].result["diff"] for verb in VERBS}
