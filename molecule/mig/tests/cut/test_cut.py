# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""After the playbook, and again after a reboot: the cards are cut as declared."""

from __future__ import annotations

import json

import pytest
from instances import LEFT_ALONE, SAVED, Machine, uuids


def test_instances_are_where_they_shall_be(machine: Machine) -> None:
    assert machine.places() == machine.layouts.first


def test_nvidia_smi_lists_them(machine: Machine) -> None:
    devices = [one.uuid for card in machine.instances().values() for one in card]
    assert sorted(uuids(machine.devices())) == sorted(devices)


def test_card_that_is_not_named_sees_no_call_that_changes_anything(machine: Machine) -> None:
    faults = machine.host.check_output("mock-driver fault list").splitlines()
    refused = [line for line in faults if f"for GPU {LEFT_ALONE}:" in line]
    assert len(refused) == 4
    assert [line for line in refused if not line.endswith(" 0 seen")] == []


def test_every_place_is_written_down_for_the_next_boot(machine: Machine) -> None:
    written = json.loads(machine.host.file(SAVED).content_string)["layouts"]
    found = {entry["gpus"][0]: [f"{one['profile']}@{one['start']}" for one in entry["instances"]] for entry in written}
    assert found == {
        machine.card(index): [place.partition("(")[0] for place in places]
        for index, places in machine.layouts.first.items()
    }


def test_unit_is_enabled(machine: Machine) -> None:
    assert machine.host.service(machine.service).is_enabled


@pytest.mark.parametrize(
    ("path", "mode"),
    [
        (SAVED, 0o644),
        ("/etc/systemd/system/nvidia-mig-layout.service", 0o644),
        ("/usr/local/sbin/gpuops-sharing-mig", 0o755),
        ("/run/gpuops-sharing", 0o700),
    ],
)
def test_files_belong_to_root(machine: Machine, path: str, mode: int) -> None:
    file = machine.host.file(path)
    assert (file.user, file.group, oct(file.mode)) == ("root", "root", oct(mode))


def test_nothing_is_left_for_systemd_to_do(machine: Machine) -> None:
    assert machine.unit("NeedDaemonReload") == "no"
    assert machine.failed_units() == ""
