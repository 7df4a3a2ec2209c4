# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Bad days that systemd meets alone: the daemon is killed, the card is not there."""

from __future__ import annotations

import typing as t

import pytest
from sharing import UNIT, Machine
from systems import await_true

STATE = "/var/lib/mock-driver/state"


def test_killed_daemon_comes_back_with_its_limits(machine: Machine) -> None:
    killed = machine.unit("MainPID")
    machine.host.check_output(f"kill -9 {killed}")
    assert await_true(lambda: machine.unit("ActiveState") == "active" and machine.unit("MainPID") != killed)
    assert machine.limits() == "50.0\n8G"


def test_card_in_another_mode_is_put_right_before_the_daemon_starts(machine: Machine) -> None:
    uuid = machine.shared_card().uuid
    machine.host.check_output(f"systemctl stop {UNIT} && nvidia-smi -i {uuid} -c DEFAULT && systemctl start {UNIT}")
    assert machine.shared_card().compute_mode == "Exclusive_Process"
    assert "compute mode set to exclusive_process" in machine.journal()


@pytest.fixture
def other_card(machine: Machine) -> t.Iterator[str]:
    """Another machine's cards in the place of this one's; the UUID that is gone."""
    uuid = machine.shared_card().uuid
    machine.host.check_output(f"systemctl stop {UNIT} && mv {STATE} {STATE}.before && mock-driver up t4")
    yield uuid
    machine.host.check_output(f"systemctl stop {UNIT}; mv {STATE}.before {STATE}; systemctl reset-failed {UNIT}")
    machine.host.check_output(f"systemctl start {UNIT}")


def test_missing_card_is_an_error_in_the_journal(machine: Machine, other_card: str) -> None:
    start = machine.host.check_output("date '+%Y-%m-%d %H:%M:%S'")
    assert machine.host.run(f"systemctl start {UNIT}").rc != 0
    assert f"{other_card}: there is no such GPU" in machine.journal(start)
    assert machine.limits() == ""
