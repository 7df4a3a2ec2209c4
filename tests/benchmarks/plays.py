# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Runs of Ansible whose time is taken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import typing as t
from pathlib import Path

HERE = Path(__file__).resolve().parent
MOCK_DRIVER = HERE.parent / "mock_driver" / "mock-driver"
INVENTORY = HERE.parent / "demo" / "inventory.yml"
TASKS, ROUNDS = 10, 3

Tasks = t.Mapping[str, t.Any]


def steady(home: Path, tasks: Tasks) -> None:
    """Print what each task costs, beside the first, when nothing differs."""
    empty = min(seconds(home, []) for _round in range(ROUNDS))
    times: dict[str, list[float]] = {module: [] for module in tasks}
    for _round in range(ROUNDS):
        for module, options in tasks.items():
            times[module].append(seconds(home, [(module, options)] * TASKS))
    first = next(iter(tasks))
    base = min(times[first]) - empty
    print(f"Steady state, {TASKS} tasks a run, best of {ROUNDS}, the cost of an empty play taken off; 1.00 is {first}")
    for module in tasks:
        calls = count_calls(home, module, tasks[module])
        cost = (min(times[module]) - empty) / base
        print(f"  {module:<36} {cost:5.2f}   NVML calls {calls['calls']:3d}, of setters {calls['setter_calls']}")


def count_calls(home: Path, module: str, options: dict[str, t.Any]) -> dict[str, t.Any]:
    """Return how many NVML calls one task makes."""
    ansible(str(MOCK_DRIVER), "calls", "--reset")
    run(home, [(module, options)])
    return json.loads(ansible(str(MOCK_DRIVER), "calls", "--json"))


def seconds(home: Path, tasks: list[tuple[str, dict[str, t.Any]]]) -> float:
    """Return how long a play with these tasks takes."""
    begin = time.monotonic()
    run(home, tasks)
    return time.monotonic() - begin


def run(home: Path, tasks: list[tuple[str, dict[str, t.Any]]]) -> None:
    """Run a play of these tasks."""
    play = {"hosts": "gpu", "gather_facts": False, "tasks": [{module: options} for module, options in tasks]}
    path = home / "play.yml"
    path.write_text(json.dumps([play]), encoding="utf-8")
    ansible("ansible-playbook", "-i", str(INVENTORY), str(path))


def ansible(*command: str) -> str:
    """Run a command, stop with its output when it fails."""
    done = subprocess.run(
        command,
        env={**os.environ, "ANSIBLE_NOCOLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(done.stdout)
    return done.stdout
