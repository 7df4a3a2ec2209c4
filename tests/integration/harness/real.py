# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""NVIDIA's own programs, from Debian's packages nvidia-smi and nvidia-cuda-mps, on the mocked library."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from harness.machine import PROGRAMS, Machine
from harness.modules import COLLECTIONS

PACKAGES = {"nvidia-smi": "nvidia-smi", "nvidia-cuda-mps-control": "nvidia-cuda-mps"}


def use(machine: Machine, program: str) -> Path:
    """Put NVIDIA's own program before the stand-in; without it the test is skipped, or fails where GPUOPS_REQUIRE_REAL is set."""
    path = ":".join(part for part in os.environ["PATH"].split(":") if Path(part) != PROGRAMS)
    found = shutil.which(program, path=path)
    if found is None:
        missing = f"NVIDIA's {program} is not installed (Debian: package {PACKAGES[program]})"
        if os.environ.get("GPUOPS_REQUIRE_REAL"):
            pytest.fail(missing)
        pytest.skip(missing)
    (machine.folder / "bin" / program).symlink_to(found)
    return Path(found).resolve()


def hide_pynvml(machine: Machine) -> None:
    """Make nvidia-ml-py as good as not installed for what Ansible starts."""
    folder = machine.folder / "bin" / "without-pynvml"
    folder.mkdir()
    (folder / "pynvml.py").write_text("raise ImportError('No module named pynvml')\n")
    machine.environment["PYTHONPATH"] = f"{folder}:{COLLECTIONS}"


class Choice:
    """Which programs a machine has: the `stand-ins`, or the `real` ones and no nvidia-ml-py, so that nvidia-smi is used."""

    def __init__(self, machine: Machine, name: str) -> None:
        self.backend = "nvml"
        self._control = PROGRAMS / "nvidia-cuda-mps-control"
        if name == "real":
            self._control = use(machine, "nvidia-cuda-mps-control")
            use(machine, "nvidia-smi")
            hide_pynvml(machine)
            self.backend = "nvidia_smi"

    def is_running(self, pid: int) -> bool:
        """Whether a daemon is the program of choice."""
        executable = Path(os.readlink(f"/proc/{pid}/exe"))
        return executable == self._control or (
            self._control.parent == PROGRAMS and executable.name.startswith("python")
        )
