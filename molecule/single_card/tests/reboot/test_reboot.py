# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a boot did: the driver had forgotten the mode, and all who start jobs found it set and the daemon listening."""

from __future__ import annotations

import pytest
from sharing import UNIT, Machine


def test_driver_had_forgotten(machine: Machine) -> None:
    assert "Exclusive_Process" in machine.seen("before-boot")
    assert "Exclusive_Process" not in machine.seen("after-boot")


def test_unit_waits_for_the_driver(machine: Machine) -> None:
    assert machine.ready("nvidia-persistenced") <= machine.started(UNIT)


@pytest.mark.parametrize("unit", ["slurmd", "kubelet", "docker", "containerd"])
def test_who_starts_jobs_started_later(machine: Machine, unit: str) -> None:
    assert machine.seen(unit) == machine.seen("before-boot")
    assert machine.ready(UNIT) <= machine.started(unit)
