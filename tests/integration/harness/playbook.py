# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Runs of ansible-playbook on a mocked machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harness.machine import Machine
from harness.modules import COLLECTIONS, Result

HERE = Path(__file__).resolve().parents[1]
GROUP = "gpu"


class Task:
    """One task that ran: its result, and the machine after it."""

    def __init__(self, record: dict[str, Any]) -> None:
        self.name: str = record["task"]
        self.skipped: bool = record["event"] == "skipped"
        self.result = Result(record["result"], failed=record["event"] == "failed")
        self.machine: dict[str, Any] = record["machine"]

    @property
    def changed(self) -> bool:
        return bool(self.result.get("changed"))


class Run:
    """What a run left behind."""

    def __init__(self, status: int, output: str, records: list[dict[str, Any]]) -> None:
        self.status = status
        self.output = output
        self.tasks = [Task(record) for record in records]

    def named(self, name: str) -> Task:
        """The task of this name."""
        return next(task for task in self.tasks if task.name.split(" : ")[-1] == name)

    @property
    def recap(self) -> dict[str, int]:
        """The counts of the recap: ok, changed, failed, skipped ..."""
        line = self.output.rpartition("PLAY RECAP")[2].partition(" : ")[2]
        return {key: int(value) for key, value in (part.split("=") for part in line.split())}


def play(machine: Machine, tasks: list[dict[str, Any]], *options: str) -> Run:
    """Run tasks."""
    path = machine.folder / "ansible" / "play.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps([{"hosts": GROUP, "gather_facts": False, "tasks": tasks}]))
    return playbook(machine, str(path), *options)


def playbook(machine: Machine, name: str, *options: str) -> Run:
    """Run a playbook by its path or by its name in a collection."""
    private = machine.folder / "ansible"
    records = private / "records"
    private.mkdir(exist_ok=True)
    records.write_text("")
    environment = {
        **machine.environment,
        "ANSIBLE_COLLECTIONS_PATH": COLLECTIONS,
        "ANSIBLE_HOME": str(private),
        "ANSIBLE_LOCAL_TEMP": str(private),
        "ANSIBLE_REMOTE_TEMP": str(private),
        "ANSIBLE_CONFIG": str(HERE / "ansible.cfg"),
        "GPUOPS_RECORDS": str(records),
        "GPUOPS_MACHINE": str(machine.folder),
    }
    status, output = machine.execute(["ansible-playbook", name, *options], environment)
    return Run(status, output, [json.loads(line) for line in records.read_text().splitlines()])


def extra(**variables: Any) -> list[str]:
    """Variables as key=value, so that all values are strings."""
    return [part for key, value in variables.items() for part in ("-e", f"{key}={value}")]
