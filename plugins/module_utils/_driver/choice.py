# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. Which backend serves a task."""

from __future__ import annotations

import sys

from .._command import Commands
from .._errors import BadOption, DriverAbsent
from .interface import MigDriver
from .nvml_call import PYNVML_LACK

BACKENDS = ("auto", "nvml", "nvidia_smi")


def open_driver(backend: str, commands: Commands) -> MigDriver:
    """Return the wanted backend; ``auto`` is NVML where this interpreter has nvidia-ml-py, else nvidia-smi.

    Raises BadOption where the named backend is not installed and DriverAbsent where there is no driver to talk to.
    """
    if backend == "nvml" and PYNVML_LACK:
        raise BadOption(
            "backend",
            backend,
            f"the Python package nvidia-ml-py {PYNVML_LACK} for {sys.executable}; install 11.515 or newer there, or use backend nvidia_smi",
        )
    # Only the backend that serves is loaded: an import costs every task on every host some milliseconds.
    if backend in ("auto", "nvml") and not PYNVML_LACK:
        from .nvml import NvmlDriver

        return NvmlDriver()
    program = commands.which("nvidia-smi")
    if program:
        from .nvidia_smi import NvidiaSmiDriver

        return NvidiaSmiDriver(commands, program)
    if backend == "nvidia_smi":
        raise DriverAbsent(
            "No usable NVIDIA driver: the command nvidia-smi was not found on this host",
            reason="nvidia-smi was not found",
        )
    raise DriverAbsent(
        f"No usable NVIDIA driver: there is neither the command nvidia-smi nor the Python package nvidia-ml-py "
        f"(for {sys.executable}); install the NVIDIA driver",
        reason="neither nvidia-smi nor the Python package nvidia-ml-py was found",
    )
