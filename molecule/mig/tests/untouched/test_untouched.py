# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""After check mode alone, and after state absent: the host is as it was before the playbook."""

from __future__ import annotations

import difflib

from instances import Machine


def test_host_is_as_before(machine: Machine) -> None:
    """Files with owner, mode and content, units, and cards; molecule/mig/prepare.yml draws the picture."""
    before = machine.host.file("/opt/picture-before").content_string.splitlines()
    now = machine.host.check_output("picture").splitlines()
    assert any("MIG" in line for line in before) and any("etc/systemd/system" in line for line in before)
    assert list(difflib.unified_diff(before, now, lineterm="", n=0)) == []


def test_cards_are_whole(machine: Machine) -> None:
    assert machine.mig_uuids() == set()
    assert machine.instances() == {}


def test_nothing_failed(machine: Machine) -> None:
    assert machine.failed_units() == ""
