# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What goes wrong on purpose, in NVML functions and in programs."""

from __future__ import annotations

from library import layout
from library.state import MockDriverError

SPECIAL = {
    "LIE": layout.FAULT_LIE,
    "HANG": layout.FAULT_HANG,
    "HANG_IGNORING_TERM": layout.FAULT_HANG_IGNORING_TERM,
    "GARBAGE": layout.FAULT_GARBAGE,
}
SPECIAL_NAMES = {code: name for name, code in SPECIAL.items()}


def add_fault(
    state: layout.State, target: str, code: int, first: int = 1, last: int = layout.ANY, gpu: int = layout.ANY
) -> None:
    """From its `first` to its `last` call from now on, `target` goes wrong with `code`; on that card only, if given."""
    for fault in state.faults:
        if not fault.used:
            fault.target, fault.code, fault.gpu = target.encode(), code, gpu
            fault.first, fault.last, fault.seen = first, last, 0
            fault.used = 1
            return
    raise MockDriverError(f"{layout.MAX_FAULTS} faults are set already; clear them first: mock-driver fault clear")


def clear_faults(state: layout.State) -> None:
    for fault in state.faults:
        fault.used = 0


def program_fault(state: layout.State, program: str) -> str | None:
    """Count a start of the program, and the name of the fault that meets it."""
    name = None
    for fault in state.faults:
        if fault.used and fault.target == program.encode():
            fault.seen += 1
            if fault.first <= fault.seen <= fault.last:
                name = SPECIAL_NAMES[fault.code]
    return name
