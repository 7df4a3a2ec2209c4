# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The twelve steps of each module that changes something."""

from __future__ import annotations

import pytest

from harness import snapshot
from harness.machine import LABELS, Machine
from harness.steps import Twelve, by_ansible, follow, one_by_one

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
