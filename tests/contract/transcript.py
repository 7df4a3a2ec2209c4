# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Recorded sessions with a program on a mocked machine, and playing them again.

A recording is text. "== TITLE: MACHINE" begins a section on a fresh machine; "% fault ..." is a mock-driver command, "$ ..." a
command of the program, with variables before it; "1|" and "2|" are lines of its stdout and stderr, "[rc=N]" its exit code.

    python tests/contract/transcript.py FILE PROGRAM     record FILE anew with this program (after: make -C tests/mock_driver)
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from mocked_machine import MockedMachine

# What differs from run to run, or between releases of one series.
_VARYING = (
    (re.compile(r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun) \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}"), "DATE"),
    (re.compile(r"\bNVIDIA-SMI \d+\.\d+\.\d+"), "NVIDIA-SMI VERSION"),
    (re.compile(r" +$"), ""),
)


Run = Callable[..., subprocess.CompletedProcess[str]]


@dataclass
class Step:
    command: str
    answer: list[str] = field(default_factory=list)


@dataclass
class Section:
    title: str
    machine: str
    steps: list[Step] = field(default_factory=list)


def read(path: Path) -> list[Section]:
    sections: list[Section] = []
    for line in path.read_text().splitlines():
        if line.startswith("== "):
            title, _colon, machine = line[3:].rpartition(": ")
            sections.append(Section(title, machine))
        elif line.startswith(("$ ", "% ")):
            sections[-1].steps.append(Step(line))
        elif line.startswith(("1|", "2|", "[rc=")):
            sections[-1].steps[-1].answer.append(line)
    return sections


def write(sections: list[Section], comment: str) -> str:
    lines = [comment]
    for section in sections:
        lines += ["", f"== {section.title}: {section.machine}"]
        for step in section.steps:
            lines += ["", step.command, *step.answer]
    return "\n".join(lines) + "\n"


def normal(line: str) -> str:
    for pattern, text in _VARYING:
        line = pattern.sub(text, line)
    return line


def play(section: Section, program: Path, machine: MockedMachine) -> list[Step]:
    """The same commands again, with the answers of today."""
    return play_with(section, partial(machine.run, program), machine)


def play_with(section: Section, run: Run, machine: MockedMachine) -> list[Step]:
    """The same for a program that `run` runs on the machine, with arguments and variables."""
    played = []
    for step in section.steps:
        words = shlex.split(step.command[2:])
        if step.command.startswith("% "):
            machine.mock_driver(*words)
            played.append(Step(step.command))
            continue
        variables = {}
        while "=" in words[0]:
            name, _equals, value = words.pop(0).partition("=")
            variables[name] = value
        ran = run(*words[1:], **variables)
        answer = [f"1| {line}" for line in ran.stdout.splitlines()] + [f"2| {line}" for line in ran.stderr.splitlines()]
        played.append(Step(step.command, [*map(normal, answer), f"[rc={ran.returncode}]"]))
    return played


def main(path: Path, program: Path) -> None:
    recorded = []
    for section in read(path):
        with tempfile.TemporaryDirectory() as folder:
            machine = MockedMachine(Path(folder) / "state")
            machine.mock_driver("up", section.machine)
            recorded.append(Section(section.title, section.machine, play(section, program, machine)))
    comment = "\n".join(line for line in path.read_text().splitlines() if line.startswith("# "))
    path.write_text(write(recorded, comment))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
