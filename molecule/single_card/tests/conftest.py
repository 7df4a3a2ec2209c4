# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The fixture of the scenario's tests, and the unit's journal with each failure."""

from __future__ import annotations

import typing as t

import pytest
from machine import UNIT, Machine
from testinfra.host import Host


@pytest.fixture
def machine(host: Host) -> Machine:
    return Machine(host)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> t.Iterator[None]:
    """Print the unit's journal with a failure."""
    outcome: t.Any = yield
    report = outcome.get_result()
    found = getattr(item, "funcargs", {}).get("machine")
    if report.when == "call" and report.failed and found is not None:
        report.sections.append((f"journal of {UNIT}", found.journal()))
