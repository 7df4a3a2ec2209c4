# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Before the playbook, also after its check mode, and after state absent: nothing of the collection is there."""

from __future__ import annotations

import pytest
from sharing import MODE_BEFORE, PIPE_DIRECTORY, UNIT, Machine


@pytest.mark.parametrize(
    "path",
    [
        "/etc/nvidia-mps",
        "/etc/systemd/system/nvidia-mps@.service",
        "/etc/systemd/system/multi-user.target.wants/" + UNIT,
        "/usr/local/sbin/gpuops-sharing-boot",
        "/var/lib/gpuops-sharing",
        PIPE_DIRECTORY,
    ],
)
def test_path_is_not_there(machine: Machine, path: str) -> None:
    assert not machine.host.file(path).exists


def test_systemd_knows_no_such_unit(machine: Machine) -> None:
    assert machine.unit("LoadState") == "not-found"
    assert machine.failed_units() == ""


def test_no_daemon_runs(machine: Machine) -> None:
    assert machine.host.process.filter(fname="nvidia-cuda-mps") == []


def test_cards_are_in_their_mode_from_before(machine: Machine) -> None:
    shared = machine.shared_card()
    assert {card.number: card.compute_mode for card in machine.cards()} == {
        shared.number: MODE_BEFORE[machine.name],
        1 - shared.number: "Default",
    }
