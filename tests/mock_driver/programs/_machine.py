# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the stand-ins know of the mocked machine beside NVML: which faults a test asked for."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from library.layout import State

HANG = "HANG"  # sleeps for ever; a server: never reports that it is ready
HANG_IGNORING_TERM = "HANG_IGNORING_TERM"  # the same, and SIGTERM does not end it
GARBAGE = "GARBAGE"  # prints nonsense and says that all went well
LIE = "LIE"  # a setter says that all went well and changes nothing
SWALLOW = "SWALLOW"  # front end: nothing is sent, nothing printed, exit status 0

SMI = "nvidia-smi"
CONTROL = "nvidia-cuda-mps-control"
SERVER = "nvidia-cuda-mps-server"
# For tests without a machine.
_VARIABLES = {SMI: "MOCK_SMI_FAULT", CONTROL: "MOCK_MPS_FAULT", SERVER: "MOCK_MPS_SERVER_FAULT"}
_SERVER_MEMORY_MIB = 30
_DEFAULT_STATE = "/var/lib/mock-driver/state"

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))


def _open(stack: ExitStack) -> State | None:
    """The machine, locked until the stack ends; None where none is up, or these programs stand alone."""
    if not os.path.exists(os.environ.get("MOCK_DRIVER_STATE") or _DEFAULT_STATE):
        return None  # saves the imports, which take longer than all the rest
    try:
        from library.state import MockDriverError, open_state
    except ImportError:
        return None
    try:
        return stack.enter_context(open_state())
    except MockDriverError:
        return None


def fault(program: str) -> str:
    """Counts a start of the program; the fault that a test asked for, else an empty text."""
    wrong = os.environ.get(_VARIABLES[program], "")
    with ExitStack() as stack:
        if wrong or (state := _open(stack)) is None:
            return wrong
        from library.faults import program_fault

        return program_fault(state, program) or ""


def lies(program: str) -> bool:
    """Whether the last start of the program that was counted was to meet the fault LIE."""
    if os.environ.get(_VARIABLES[program]) == LIE:
        return True
    with ExitStack() as stack:
        state = _open(stack)
        if state is None:
            return False
        from library.layout import FAULT_LIE

        faults = (fault for fault in state.faults if fault.used and fault.target == program.encode())
        return any(fault.code == FAULT_LIE and fault.first <= fault.seen <= fault.last for fault in faults)


def hang(wrong: str) -> None:
    """Sleeps for ever where the fault says so."""
    if wrong == HANG_IGNORING_TERM:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if wrong in (HANG, HANG_IGNORING_TERM):
        while True:
            signal.pause()


def misbehave(wrong: str) -> None:
    """Does what a fault says that concerns a command as a whole; returns for the other faults."""
    hang(wrong)
    if wrong == GARBAGE:
        sys.stdout.write("\x00\x7f%s <<garbage>> 12,\n")
        sys.stdout.flush()
        os._exit(0)


def _visible(state: State) -> list[str]:
    """UUIDs of the cards that this process's environment shows to CUDA: up to the first word that names none.

    Indices are taken in the order of the PCI addresses, as with CUDA_DEVICE_ORDER=PCI_BUS_ID.
    """
    uuids = [state.gpus[index].uuid.decode() for index in range(state.gpu_count)]
    wanted = os.environ.get("CUDA_VISIBLE_DEVICES")
    if wanted is None:
        return uuids
    found: list[str] = []
    for word in wanted.split(","):
        word = word.strip()
        if word.isdigit():
            matches = uuids[int(word) : int(word) + 1]
        else:
            matches = [uuid for uuid in uuids if word.startswith("GPU-") and uuid.startswith(word)]
        if len(matches) != 1 or matches[0] in found:
            break
        found += matches
    return found


def visible_devices() -> list[str]:
    """The cards of this process; without a machine what its environment says."""
    with ExitStack() as stack:
        state = _open(stack)
        if state is not None:
            return _visible(state)
    return [word for word in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if word]


@dataclass
class Reset:
    """What became of the cards that were to be reset, by index; `missing` has to be reset together with them."""

    unsupported: list[int] = field(default_factory=list)
    forbidden: list[int] = field(default_factory=list)
    missing: list[int] = field(default_factory=list)
    busy: list[int] = field(default_factory=list)
    done: list[int] = field(default_factory=list)


def reset(indices: list[int], lie: bool) -> Reset:
    """Resets those cards that may be reset and are free; a lie resets none and says the same."""
    answer = Reset()
    with ExitStack() as stack:
        state = _open(stack)
        if state is None:
            return answer
        from library.processes import living
        from library.reset import may_change, reset_gpu

        gpus = {index: state.gpus[index] for index in indices}
        answer.unsupported = [index for index, gpu in gpus.items() if not gpu.reset]
        answer.forbidden = [] if may_change(state) else indices
        if state.reset_together:
            answer.missing = [index for index in range(state.gpu_count) if index not in gpus]
        if answer.unsupported or answer.forbidden or answer.missing:
            return answer
        answer.busy = [index for index, gpu in gpus.items() if any(living(gpu))]
        answer.done = [] if state.reset_together and answer.busy else [i for i in indices if i not in answer.busy]
        if not lie:
            for index in answer.done:
                reset_gpu(state, gpus[index])
    return answer


def _use_cards(kind: str, memory: int, most: int) -> bool:
    """Puts this process on the first `most` of its cards; says whether it may run. Without a machine it may."""
    with ExitStack() as stack:
        state = _open(stack)
        if state is None:
            return True
        from library.processes import add_process, find_gpu
        from library.state import MockDriverError

        devices = _visible(state)[:most]
        if not devices or any(find_gpu(state, device).lost for device in devices):
            return False
        try:
            for device in devices:
                add_process(state, device, os.getpid(), kind, memory)
        except MockDriverError:
            return False
        return True


def use_cards_as_server() -> bool:
    return _use_cards("mps-server", _SERVER_MEMORY_MIB, sys.maxsize)


def use_card_as_client(memory: int) -> bool:
    return _use_cards("mps-client", memory, 1)
