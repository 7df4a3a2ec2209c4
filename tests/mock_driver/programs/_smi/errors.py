# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""NVML's return codes in the words and exit statuses of nvidia-smi 535 (recorded for each code, 0 to 30 and 999)."""

from __future__ import annotations

INVALID_ARGUMENT = 2
NOT_SUPPORTED = 3
NO_PERMISSION = 4
NOT_FOUND = 6
DRIVER_NOT_LOADED = 9
LIBRARY_NOT_FOUND = 12
GPU_IS_LOST = 15
VERSION_MISMATCH = 18
IN_USE = 19

_TEXTS = {
    1: "Uninitialized",
    2: "Invalid Argument",
    3: "Not Supported",
    4: "Insufficient Permissions",
    5: "Already Initialized",
    6: "Not Found",
    7: "Insufficient Size",
    8: "Insufficient External Power",
    9: "Driver Not Loaded",
    10: "Timeout",
    11: "Interrupt Request Issue",
    12: "NVML Shared Library Not Found",
    13: "Function Not Found",
    14: "Corrupted infoROM",
    15: "GPU is lost",
    16: "GPU requires reset",
    17: "GPU access blocked by the operating system",
    18: "Driver/library version mismatch",
    19: "In use by another client",
    20: "Insufficient Memory",
    21: "No data",
    22: "vGPU ECC not supported",
    23: "Insufficient Resources",
    24: "Invalid Frequency",
    25: "Argument version mismatch",
    26: "Requested functionality has been deprecated",
    27: "System is not in ready state",
}
_OWN_STATUS = {2, 3, 4, 6, 8, 9, 11, 12, 13, 14, 15, 17, 18, 19, 23}


class NvmlError(Exception):
    """A call that NVML did not answer with success."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Stop(Exception):
    """Ends the program: what is printed last, and the exit status."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.text = text
        self.status = status


def text(code: int) -> str:
    """The words for a code where something was to be done."""
    return _TEXTS.get(code, "Unknown Error")


def value(code: int) -> str:
    """The words for a code where a value was to be shown."""
    return "N/A" if code == NOT_SUPPORTED else text(code)


def status(code: int) -> int:
    """The exit status for a code."""
    return code if code in _OWN_STATUS else 255
