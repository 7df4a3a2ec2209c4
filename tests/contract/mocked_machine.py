# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A machine of the mocked driver in a test's hands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from _resident import MOCK_DRIVER, TIMEOUT, resident

COMMAND = MOCK_DRIVER / "mock-driver"
BUILD = MOCK_DRIVER / "build"

# A program for MockedMachine.nvml: what it leaves in `answer` comes back.
_NVML = """
import json, sys
from pynvml import *
answer = None
def code(function, *arguments):
    try:
        function(*arguments)
    except NVMLError as error:
        return error.value
    return 0
{program}
print(json.dumps(answer))
"""


class MockedMachine:
    """The state file at `state` and programs that see it."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.environment = {
            **os.environ,
            "MOCK_DRIVER_PYTHON": sys.executable,
            "MOCK_DRIVER_STATE": str(state),
            "LD_LIBRARY_PATH": str(BUILD),
            "LC_ALL": "C",
        }

    def run(self, *command: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run any program on the machine, with these environment variables too."""
        environment = {**self.environment, **variables}
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT)

    def run_loaded(self, program: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """A program of `_resident`, with these environment variables too."""
        return resident().run(program, arguments, {**self.environment, **variables})

    def smi(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """The stand-in for nvidia-smi."""
        return self.run_loaded("nvidia-smi", *arguments, **variables)

    def mock_driver(self, *arguments: str | int | Path) -> str:
        """A mock-driver command that has to succeed; its output."""
        ran = self.run_loaded("mock-driver", *map(str, arguments))
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    def refusal(self, *arguments: str | int | Path) -> str:
        """A mock-driver command that has to fail; what it says."""
        ran = self.run_loaded("mock-driver", *map(str, arguments))
        assert ran.returncode != 0, ran.stdout
        return ran.stderr

    def calls(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.mock_driver("calls", "--json"))
        return found

    def start(self, program: str, **variables: str) -> subprocess.Popen[str]:
        """A Python program with pynvml that goes on beside the test."""
        command = [sys.executable, "-c", "from pynvml import *\nnvmlInit()\n" + program]
        environment = {**self.environment, **variables}
        return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def nvml(self, program: str, init: bool = True, **variables: str) -> Any:
        """What a Python program with pynvml leaves in `answer`; code(function, ...) is the NVML code of a call."""
        text = _NVML.format(program="nvmlInit()\n" * init + program)
        ran = self.run_loaded("text", text, **variables)
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)
