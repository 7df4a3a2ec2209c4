# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""NVIDIA's real nvidia-smi on the mocked driver says what was recorded."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import transcript
from mocked_machine import MockedMachine

RECORDINGS = Path(__file__).parent / "recordings"
PROGRAMS = {
    "535": (Path("/usr/bin/nvidia-smi"), "Debian 12's package nvidia-smi (non-free)"),
    "550": (
        Path(os.environ.get("NVIDIA_SMI_550", "")),
        "$NVIDIA_SMI_550, the program out of Debian 13's package nvidia-smi",
    ),
}
SECTIONS = [
    (path.stem, section.title)
    for path in sorted(RECORDINGS.glob("nvidia_smi_*.txt"))
    for section in transcript.read(path)
]


def real_program(version: str) -> Path:
    program, package = PROGRAMS[version]
    if not program.is_file():
        missing = f"nvidia-smi {version} is not there: {package}"
        if os.environ.get("GPUOPS_REQUIRE_REAL") == "1":
            pytest.fail(missing)
        pytest.skip(missing)
    return program


@pytest.mark.parametrize(("name", "title"), SECTIONS, ids=[f"{name}-{title}" for name, title in SECTIONS])
def test_real_nvidia_smi_answers_as_recorded(
    name: str, title: str, start_machine: Callable[[str], MockedMachine]
) -> None:
    program = real_program(name.rpartition("_")[2])
    recorded = {section.title: section for section in transcript.read(RECORDINGS / f"{name}.txt")}[title]
    played = transcript.play(recorded, program, start_machine(recorded.machine))
    assert [(step.command, step.answer) for step in played] == [(step.command, step.answer) for step in recorded.steps]


def test_real_nvidia_smi_lists_processes_by_their_kind(machine: MockedMachine) -> None:
    """The process table comes through NVIDIA's internal table, not through the public calls."""
    program = real_program("535")
    with (
        machine.start("import sys; sys.stdin.read()") as server,
        machine.start("import sys; sys.stdin.read()") as client,
    ):
        machine.mock_driver("process", "add", 0, server.pid, "--kind", "mps-server", "--memory", 300)
        machine.mock_driver("process", "add", 0, client.pid, "--kind", "mps-client", "--memory", 20)
        table = machine.run(program).stdout
        apps = machine.run(program, "--query-compute-apps=pid,used_memory", "--format=csv,noheader").stdout
        for process in (server, client):
            process.communicate()
    rows = [row.split() for row in table.splitlines() if "MiB |" in row]
    kinds = {row[4]: row[5] for row in rows if len(row) > 5 and row[4].isdigit()}
    assert kinds == {str(server.pid): "C", str(client.pid): "M+C"}
    assert sorted(apps.splitlines()) == sorted([f"{server.pid}, 300 MiB", f"{client.pid}, 20 MiB"])


def test_real_nvidia_smi_sees_what_another_client_set(machine: MockedMachine) -> None:
    program = real_program("535")
    machine.nvml("nvmlDeviceSetComputeMode(nvmlDeviceGetHandleByIndex(1), NVML_COMPUTEMODE_PROHIBITED)")
    assert machine.run(program, "--query-gpu=compute_mode", "--format=csv,noheader").stdout == "Default\nProhibited\n"
    assert machine.run(program, "-i", "1", "-c", "EXCLUSIVE_PROCESS").returncode == 0
    assert machine.nvml("answer = nvmlDeviceGetComputeMode(nvmlDeviceGetHandleByIndex(1))") == 3
