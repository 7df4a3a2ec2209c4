# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The mocked driver, built once, and machines on it."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from _resident import MOCK_DRIVER
from mocked_machine import MockedMachine

# A run under nohup ignores SIGHUP, and so would the daemons that tests send it to.
signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session")
def built() -> Path:
    """The folder of the mocked driver, with its library built."""
    subprocess.run(["make", "-s", "-C", MOCK_DRIVER, f"PYTHON={sys.executable}"], check=True)
    return MOCK_DRIVER


@pytest.fixture(scope="session")
def fresh_state(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The state of a machine as it is after `up`, which takes longer than a copy of it."""
    folder = tmp_path_factory.mktemp("fresh")

    def state(name: str) -> Path:
        if not (folder / name).exists():
            MockedMachine(folder / name).mock_driver("up", name)
        return folder / name

    return state


@pytest.fixture
def start_machine(fresh_state: Callable[[str], Path], tmp_path: Path) -> Callable[[str], MockedMachine]:
    """Start a machine by its name; it goes with the test's folder."""

    def start(name: str) -> MockedMachine:
        state = tmp_path / f"{name}.state"
        shutil.copy(fresh_state(name), state)
        return MockedMachine(state)

    return start


@pytest.fixture
def machine(start_machine: Callable[[str], MockedMachine]) -> MockedMachine:
    """Two A100."""
    return start_machine("a100-40gb-x2")
