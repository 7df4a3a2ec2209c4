# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Every value as a string, as surveys deliver them."""

from __future__ import annotations

from typing import Any

import pytest

from harness.machine import UUIDS, Machine

TYPED: dict[str, dict[str, Any]] = {
    "limits": {"gpus": [0], "active_thread_percentage": 50, "memory_limits": [{"gpu": 0, "size": "8G"}]},
    "clients": {"gpus": [0, 1], "clients": 4},
    "all": {"gpus": "all", "active_thread_percentage": 33.3},
}
STRINGS: dict[str, dict[str, Any]] = {
    "limits": {
        "gpus": "0",
        "active_thread_percentage": "50",
        "memory_limits": [{"gpu": "0", "size": "8g"}],
        "clients": "",
        "state": "started",
    },
    "clients": {
        "gpus": "0,1",
        "clients": "4",
        "active_thread_percentage": "",
        "compute_mode": "exclusive_process",
    },
    "all": {"gpus": "all", "active_thread_percentage": "33.30"},
}


@pytest.mark.parametrize("case", list(TYPED))
def test_mps(machine: Machine, case: str) -> None:
    strings = machine.mps(
        machine.daemon(**STRINGS[case]), stop_timeout="2", timeout="20", purge="false", force="no", backend="auto"
    )
    assert strings.changed, strings
    with machine.untouched():
        assert not machine.mps(machine.daemon(**TYPED[case])).changed


@pytest.mark.parametrize("gpus", ["0,1", "all", f"{UUIDS[0]},1", ["0", "1"]])
def test_compute_mode(machine: Machine, gpus: Any) -> None:
    assert machine.compute_mode("prohibited", gpus=gpus, timeout="5").changed
    assert machine.compute_modes() == ["prohibited", "prohibited"]


@pytest.mark.parametrize(
    "name", [1, "1", " 1 ", UUIDS[1], UUIDS[1].lower(), "0000:0f:00.0", "00000000:0F:00.0", "0f:00.0", ["0F:00.0"]]
)
def test_one_card_by_any_of_its_names(machine: Machine, name: Any) -> None:
    assert machine.compute_mode("prohibited", gpus=name).changed
    assert machine.compute_modes() == ["default", "prohibited"]


def test_directories_left_empty_are_the_defaults(machine: Machine) -> None:
    result = machine.mps(machine.daemon(pipe_directory="", log_directory="", state="absent"), check=True)
    (daemon,) = result["daemons"]
    assert (daemon["pipe_directory"], daemon["log_directory"]) == (
        "/run/nvidia-mps/render",
        "/var/log/nvidia-mps/render",
    )
