# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""With each failure of a scenario's tests, the journal of the unit that they are about."""

from __future__ import annotations

import typing as t

import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> t.Iterator[None]:
    """Print the unit's journal with a failure."""
    outcome: t.Any = yield
    report = outcome.get_result()
    found = getattr(item, "funcargs", {}).get("machine")
    if report.when == "call" and report.failed and found is not None:
        report.sections.append((f"journal of {found.service}", found.journal()))
