# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Machines and the means to run things on them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

Start = Callable[[str], "MigMachine"]

pytest.register_assert_rewrite("harness")

from harness import mig
from harness.machine import Machine
from harness.mig import MigMachine
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


@pytest.fixture(scope="session")
def modules_alone() -> Iterator[Modules]:
    """What sees no other test's daemons."""
    if mig.hindrance():
        if os.environ.get("GPUOPS_REQUIRE_REAL"):
            pytest.fail(mig.hindrance())
        pytest.skip(mig.hindrance())
    server = mig.alone()
    yield server
    server.close()


@pytest.fixture
def new_mig_machine(modules_alone: Modules) -> Iterator[Start]:
    """Start a machine whose cards can be cut."""
    started: list[MigMachine] = []

    def start(name: str) -> MigMachine:
        started.append(MigMachine(name, modules_alone))
        return started[-1]

    yield start
    for machine in started:
        machine.close()


@pytest.fixture
def mig_machine(new_mig_machine: Start) -> MigMachine:
    """Two A100 that can be cut."""
    return new_mig_machine("a100-40gb-x2")


@pytest.fixture(params=mig.PROGRAMS)
def either_way(request: pytest.FixtureRequest, new_mig_machine: Start) -> Start:
    """Start a machine whose driver is spoken to in each way."""

    def start(name: str) -> MigMachine:
        machine = new_mig_machine(name)
        machine.speak(request.param)
        return machine

    return start
