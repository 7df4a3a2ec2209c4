# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Values as nvidia-smi words them, in its CSV, its log, its XML and its table."""

from __future__ import annotations

import time
from collections.abc import Callable

from _smi import errors
from _smi.errors import NvmlError
from _smi.nvml import Device, Nvml, Process

COMPUTE_MODES = ("Default", "Exclusive_Thread", "Prohibited", "Exclusive_Process")


def enabled(state: bool) -> str:
    return "Enabled" if state else "Disabled"


def compute_mode(device: Device) -> str:
    mode = device.compute_mode()
    return COMPUTE_MODES[mode] if mode < len(COMPUTE_MODES) else "Unknown"


def capability(device: Device) -> str:
    return "{}.{}".format(*device.compute_capability())


def or_reason(read: Callable[[], object]) -> str:
    """The value, or why there is none."""
    try:
        return str(read())
    except NvmlError as error:
        return errors.value(error.code)


def mebibytes(read: Callable[[], int]) -> str:
    text = or_reason(read)
    return f"{text} MiB" if text.isdigit() else text


def used_memory(process: Process) -> str:
    return "N/A" if process.memory is None else f"{process.memory} MiB"


def instances(process: Process) -> tuple[str, str]:
    """Ids of the GPU and the compute instance that the process is in."""
    if process.gpu_instance is None or process.compute_instance is None:
        return "N/A", "N/A"
    return str(process.gpu_instance), str(process.compute_instance)


def by_pid(device: Device) -> list[Process]:
    """Processes on the card, in MIG mode those in its MIG devices, one after the other."""
    found: list[Process] = []
    for place in device.mig_devices() if device.mig_enabled() else [device]:
        try:
            found += sorted(place.processes(), key=lambda process: process.pid)
        except NvmlError:
            continue
    return found


def cut(text: str, width: int) -> str:
    """Shortened as in a cell that is too small."""
    return text if len(text) <= width else text[: width - 3] + "..."


def program(nvml: Nvml, pid: int) -> str:
    return or_reason(lambda: nvml.process_name(pid))


def timestamp() -> str:
    return time.strftime("%a %b %e %H:%M:%S %Y")
