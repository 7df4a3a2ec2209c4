# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The fixture of the scenario's tests."""

from __future__ import annotations

import pytest
from sharing import Machine
from testinfra.host import Host


@pytest.fixture
def machine(host: Host) -> Machine:
    return Machine(host)
