# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The fixtures of the scenario's tests."""

from __future__ import annotations

import pytest
import testinfra
from instances import Machine
from systems import INVENTORY
from testinfra.host import Host


@pytest.fixture
def machine(host: Host) -> Machine:
    return Machine(host)


@pytest.fixture
def machines() -> list[Machine]:
    """All hosts, for what is played on them at once."""
    return [Machine(host) for host in testinfra.get_hosts(["ansible://gpu"], ansible_inventory=str(INVENTORY))]
