# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the stand-ins know of the mocked machine beside NVML: which faults a test asked for."""

from __future__ import annotations

import os
import signal
import sys

HANG = "HANG"  # sleeps for ever
HANG_IGNORING_TERM = "HANG_IGNORING_TERM"  # the same, and SIGTERM does not end it
GARBAGE = "GARBAGE"  # prints nonsense and says that all went well
LIE = "LIE"  # a setter says that all went well and changes nothing
SWALLOW = "SWALLOW"  # front end: nothing is sent, nothing printed, exit status 0
NEVER_READY = "NEVER_READY"  # MPS server: lives, but never reports to the daemon

_VARIABLES = {
    "nvidia-smi": "MOCK_SMI_FAULT",
    "nvidia-cuda-mps-control": "MOCK_MPS_FAULT",
    "nvidia-cuda-mps-server": "MOCK_MPS_FAULT",
}


def fault(program: str) -> str:
    """The fault that a test asked for, else an empty text."""
    return os.environ.get(_VARIABLES[program], "")


def misbehave(wrong: str) -> None:
    """Does what a fault says that concerns a command as a whole; returns for the other faults."""
    if wrong == HANG_IGNORING_TERM:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if wrong in (HANG, HANG_IGNORING_TERM):
        while True:
            signal.pause()
    if wrong == GARBAGE:
        sys.stdout.write("\x00\x7f%s <<garbage>> 12,\n")
        sys.stdout.flush()
        os._exit(0)


def visible_devices() -> list[str]:
    return []


def add_server(pid: int) -> bool:
    return True


def add_client(pid: int, memory: int) -> bool:
    return True
