# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a boot did: the driver had forgotten its instances, and all who need them found the very same ones."""

from __future__ import annotations

import pytest
from instances import Machine, uuids

FORGETS_THE_MODE = {"gpuops-deb12": False, "gpuops-deb13": True}  # Ampere keeps it on the card


def test_driver_had_forgotten(machine: Machine) -> None:
    assert uuids(machine.seen("before-boot")) != set()
    after = machine.seen("after-boot")
    assert uuids(after) == set()
    assert ("Enabled" not in after) == FORGETS_THE_MODE[machine.name]


def test_the_very_same_devices_are_back(machine: Machine) -> None:
    assert machine.look() == machine.seen("before-boot")


@pytest.mark.parametrize("unit", ["slurmd", "kubelet", "docker", "containerd", "nvidia-dcgm", "dcgm"])
def test_who_needs_them_started_later(machine: Machine, unit: str) -> None:
    assert machine.seen(unit) == machine.seen("before-boot")


@pytest.mark.parametrize("unit", ["nvidia-persistenced", "nvidia-fabricmanager"])
def test_unit_waits_for_what_makes_cards_ready(machine: Machine, unit: str) -> None:
    assert machine.ready(unit) <= machine.started(machine.service)


def test_unit_is_active_and_tells_each_card(machine: Machine) -> None:
    assert machine.host.service(machine.service).is_running
    told = [line for line in machine.said().splitlines() if line.endswith(": as written down")]
    assert sorted(told) == sorted(f"{machine.card(index)}: as written down" for index in machine.layouts.first)
