# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The commands of the MPS control daemon: NVIDIA's own programs and the stand-in answer as was recorded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from _programs import PROGRAMS, Answer, ControlProgram, Mps, eventually, open_mps

RECORDING: dict[str, Any] = yaml.safe_load(
    (Path(__file__).parent / "recordings" / "mps_control.yaml").read_text(encoding="utf-8")
)
# What the daemon logs of its own accord, between any two commands.
ASIDES = ("Starting new server", "Accepting connection", "NEW UI")


@pytest.fixture(params=PROGRAMS, ids=str)
def mps(request: pytest.FixtureRequest) -> Iterator[Mps]:
    # A server of the stand-in daemon never becomes ready, as the stand-in server never does under NVIDIA's daemon.
    opened = open_mps(request.param, MOCK_MPS_SERVER_FAULT="HANG")
    yield opened
    opened.close()


def all_closed(mps: Mps) -> None:
    """Wait for the log: a front end is answered before the daemon notes that it is closed."""
    eventually(
        lambda: mps.log().count("NEW UI") == mps.log().count("UI closed"),
        "the log does not say that all front ends are closed",
    )


def logged(messages: list[str]) -> list[tuple[str, list[str]]]:
    """What the log says of each command."""
    found: list[tuple[str, list[str]]] = []
    for message in messages:
        if message.startswith("Cmd:"):
            found.append((message[4:], []))
        elif message == "UI closed":
            break
        elif found and not message.startswith(ASIDES):
            found[-1][1].append(message)
    return found


def said(step: dict[str, Any], key: str, program: ControlProgram) -> list[str] | None:
    return step.get(f"{key}_{program.version}", step.get(key))


@pytest.mark.parametrize("title", RECORDING)
def test_answers_as_recorded(mps: Mps, title: str) -> None:
    section = RECORDING[title]
    steps = [step for step in section["steps"] if step.get("since", 0) <= mps.program.version]
    mps.start()
    server = str(mps.start_server()) if section.get("server") else ""
    all_closed(mps)
    before = len(mps.log())

    def with_server(text: str) -> str:
        return text.replace("{server}", server)

    prints = [said(step, "prints", mps.program) or [] for step in steps]
    logs = [said(step, "logs", mps.program) for step in steps]
    answer = mps.ask(*(with_server(step["send"]) for step in steps))
    assert answer == Answer([with_server(line) for lines in prints for line in lines], "", 0)
    expected = [
        (with_server(step["send"]), [with_server(line) for line in (log if log is not None else printed) if line])
        for step, printed, log in zip(steps, prints, logs)
    ]
    all_closed(mps)
    assert logged(mps.log()[before:]) == expected
