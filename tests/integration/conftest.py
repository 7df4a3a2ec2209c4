# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Machines and the means to run things on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

pytest.register_assert_rewrite("harness")

from harness.machine import Machine
from harness.modules import Modules


@pytest.fixture(scope="session")
def modules() -> Iterator[Modules]:
    server = Modules()
    yield server
    server.close()


@pytest.fixture
def new_machine(modules: Modules) -> Iterator[Callable[[str], Machine]]:
    """Start a machine by the name of its file; it goes with the test."""
    started: list[Machine] = []

    def start(name: str) -> Machine:
        started.append(Machine(name, modules))
        return started[-1]

    yield start
    for machine in started:
        machine.close()


@pytest.fixture
def machine(new_machine: Callable[[str], Machine]) -> Machine:
    """Two A100."""
    return new_machine("a100-40gb-x2")
