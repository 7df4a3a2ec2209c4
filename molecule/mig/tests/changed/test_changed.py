# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""After another layout took the place of the first one on a card: what may stay stayed."""

from __future__ import annotations

import re
import typing as t

import pytest
from instances import Machine, uuids
from systems import play


def test_instances_are_where_they_shall_be(machine: Machine) -> None:
    assert machine.places() == machine.layouts.later


def test_what_may_stay_is_the_same(machine: Machine) -> None:
    before, now = uuids(machine.seen("slurmd")), machine.mig_uuids()
    assert len(before & now) == machine.layouts.kept
    assert len(now - before) == 1


def test_boot_will_bring_the_new_ones(machine: Machine) -> None:
    before = machine.devices()
    machine.destroy(machine.layouts.changed)
    assert machine.restart(), machine.said()
    assert machine.devices() == before


def test_systemd_knows_the_new_unit(machine: Machine) -> None:
    assert "# older" not in machine.host.file("/etc/systemd/system/nvidia-mig-layout.service").content_string
    assert machine.unit("NeedDaemonReload") == "no"


def pictures(machines: list[Machine]) -> list[tuple[str, int]]:
    """What is on the hosts, and how often their drivers were asked to change something."""
    return [(machine.host.check_output("picture"), machine.setter_calls()) for machine in machines]


def test_check_mode_tells_what_taking_back_would_do_and_does_nothing(machines: list[Machine]) -> None:
    before = pictures(machines)
    played = play("molecule/mig/absent.yml", "--check", "--diff")
    assert played.recap == {machine.name: (3, 0) for machine in machines}, played.output
    for machine in machines:
        assert re.search(rf"^\+GPU {machine.layouts.changed} .*MIG mode disabled$", played.output, re.MULTILINE)
    assert pictures(machines) == before


@pytest.fixture
def jobs(machines: list[Machine]) -> t.Iterator[dict[str, int]]:
    """A process in an instance of each host; its id."""
    pids = {}
    for machine in machines:
        machine.host.check_output("systemd-run --unit=job sleep infinity")
        pids[machine.name] = int(machine.host.check_output("systemctl show --property=MainPID --value job"))
        uuid = machine.instances()[machine.layouts.changed][0].uuid
        machine.host.check_output(f"mock-driver process add {uuid} {pids[machine.name]}")
    yield pids
    for machine in machines:
        machine.host.check_output("systemctl stop job")


def test_instance_in_use_stops_everything_before_it_begins(machines: list[Machine], jobs: dict[str, int]) -> None:
    before = pictures(machines)
    played = play("molecule/mig/absent.yml", "-e", '{"mig_layouts": [{"gpus": ["all"]}]}')
    assert played.recap == {machine.name: (0, 1) for machine in machines}, played.output
    for machine in machines:
        assert f"in use by {jobs[machine.name]} (sleep)" in " ".join(played.output.split())
    assert pictures(machines) == before
