# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The twelve steps of each module that changes something: create, change and delete; each asked for in check mode, done, asked for again, done again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from harness import snapshot
from harness.machine import LABELS, Machine
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


def follow(steps: Steps, before: dict[str, Any], setter_calls: dict[str, int]) -> dict[str, dict[str, str]]:
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
    for verb in VERBS:
        assert steps[verb, "check"].result["diff"] == steps[verb, "do"].result["diff"], (
            "check mode foretells what is then done"
        )
    return {verb: steps[verb, "check"].result["diff"] for verb in VERBS}


RUNS = pytest.mark.parametrize(
    ("twelve", "backend"), [(by_ansible, "nvml"), (one_by_one, "nvidia_smi")], ids=["ansible-nvml", "nvidia_smi"]
)


@RUNS
def test_compute_mode(machine: Machine, twelve: Twelve, backend: str) -> None:
    modes = {"create": "exclusive_process", "change": "prohibited", "delete": "default"}
    before = snapshot.take(machine.folder)
    steps = twelve(
        machine,
        "nvidia_compute_mode",
        {verb: {"gpus": [0], "mode": mode, "backend": backend} for verb, mode in modes.items()},
    )
    texts = follow(steps, before, {"create": 1, "change": 1, "delete": 1})
    assert texts["create"] == {
        "before": f"{LABELS[0]}: compute mode default\n",
        "after": f"{LABELS[0]}: compute mode exclusive_process\n",
    }
    assert texts["change"]["after"] == f"{LABELS[0]}: compute mode prohibited\n"
    assert texts["delete"]["after"] == texts["create"]["before"]
    assert steps["create", "do"].result["backend"] == backend


@RUNS
def test_mps(machine: Machine, twelve: Twelve, backend: str) -> None:
    entries = {
        "create": machine.daemon(active_thread_percentage=50, memory_limits=[{"size": "8G"}]),
        "change": machine.daemon(active_thread_percentage=25),
        "delete": machine.daemon(state="absent"),
    }
    before = snapshot.take(machine.folder)
    steps = twelve(
        machine,
        "nvidia_mps",
        {verb: {"daemons": [entry], "service": "none", "backend": backend} for verb, entry in entries.items()},
    )
    texts = follow(steps, before, {"create": 1, "change": 0, "delete": 1})
    card = f"{LABELS[0]}: compute mode"
    assert texts == {
        "create": {
            "before": f"{card} default\ndaemon render: absent\n",
            "after": f"{card} exclusive_process\ndaemon render: running for GPU 0, 50.0 % of the threads, memory 8G on GPU 0\n",
        },
        "change": {
            "before": f"{card} exclusive_process\ndaemon render: running for GPU 0, 50.0 % of the threads, memory 8G on GPU 0\n",
            "after": f"{card} exclusive_process\ndaemon render: running for GPU 0, 25.0 % of the threads, no memory limit\n",
        },
        "delete": {
            "before": f"{card} exclusive_process\ndaemon render: running for GPU 0, 25.0 % of the threads, no memory limit\n",
            "after": f"{card} default\ndaemon render: absent\n",
        },
    }
    created, changed = (steps[verb, "do"].result["daemons"][0] for verb in ("create", "change"))
    assert created["default"] == {"active_thread_percentage": 50.0, "memory": {"0": "8G"}}
    assert changed["default"] == {"active_thread_percentage": 25.0, "memory": {}}
    assert created["pid"] == changed["pid"], "limits are changed in place"
    end = steps["delete", "do"].machine
    assert end["daemons"] == []
    assert set(end["files"]) <= {"run", "var"}
