# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which cards -i means: always in the order of the indices, each once, unknown ones silently left out."""

from __future__ import annotations

import re

from _smi import errors
from _smi.errors import NvmlError, Stop
from _smi.nvml import Device, Nvml

_PCI = re.compile(r"(?:([0-9a-fA-F]+):)?([0-9a-fA-F]+):([0-9a-fA-F]+)\.[0-9a-fA-F]+")
_LOST = "GPU is lost.  Reboot the system to recover this GPU\n\n\n"


def lost_or_unknown(code: int) -> str:
    return _LOST if code == errors.GPU_IS_LOST else "Unknown Error\n"


def count(nvml: Nvml, failure: str = "Unable to determine the number of GPUs") -> int:
    try:
        return nvml.count()
    except NvmlError as error:
        raise Stop(failure.format(errors.value(error.code)), errors.status(error.code)) from None


def select(nvml: Nvml, wanted: str | None) -> list[Device]:
    """The cards of -i, else all; ends the program where there is none."""
    total = count(nvml)
    if wanted is None:
        indices = list(range(total))
    else:
        if not wanted:
            raise Stop("Failed to parse device string on command line", 255)
        words = wanted.split(",")
        by_name = _by_name(nvml, total) if any(not word.isdigit() for word in words) else {}
        indices = sorted(index for index in {_index(word, by_name) for word in words} if 0 <= index < total)
    if not indices:
        raise Stop("No devices were found\n", 6)
    return [_device(nvml, index) for index in indices]


def _index(word: str, by_name: dict[str, int]) -> int:
    if word.isdigit():
        return int(word)
    return by_name.get(_canonical(word), -1)


def _canonical(word: str) -> str:
    """A PCI address in one spelling; anything else unchanged."""
    match = _PCI.fullmatch(word)
    if not match:
        return word
    domain, bus, device = (int(part or "0", 16) for part in match.groups())
    return f"{domain:08X}:{bus:02X}:{device:02X}.0"


def _by_name(nvml: Nvml, total: int) -> dict[str, int]:
    """UUID and PCI address of every card; the real one, too, fails here when any card is lost."""
    names = {}
    for index in range(total):
        try:
            device = nvml.device(index)
            names[device.uuid()] = index
            names[_canonical(device.bus_id())] = index
        except NvmlError as error:
            raise Stop(f"Problem with GPU {index}: {lost_or_unknown(error.code)}", 255) from None
    return names


def _device(nvml: Nvml, index: int) -> Device:
    try:
        return nvml.device(index)
    except NvmlError as error:
        reason = lost_or_unknown(error.code)
        raise Stop(
            f"Unable to determine the device handle for GPU{index}: {reason}", errors.status(error.code)
        ) from None
