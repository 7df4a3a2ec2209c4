# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Processes on a card: put there by `mock-driver process` and by the stand-in programs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from library import layout
from library.state import MockDriverError

KINDS = {
    "compute": layout.PROCESS_COMPUTE,
    "graphics": layout.PROCESS_GRAPHICS,
    "mps-server": layout.PROCESS_MPS_SERVER,
    "mps-client": layout.PROCESS_MPS_CLIENT,
}
KIND_NAMES = {number: name for name, number in KINDS.items()}
MIB = 1024 * 1024
PROHIBITED = 2
EXCLUSIVE_PROCESS = 3


def alive(pid: int) -> bool:
    """Neither gone nor a zombie: the same rule as the library's."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state not in "ZX"


def living(gpu: layout.Gpu) -> Iterator[layout.Process]:
    return (process for process in gpu.processes if process.pid and alive(process.pid))


def find_gpu(state: layout.State, name: str | int) -> layout.Gpu:
    """A card by index, UUID or PCI address."""
    wanted = str(name).lower()
    for index in range(state.gpu_count):
        gpu = state.gpus[index]
        slot = f"{gpu.pci_bus:02x}:{gpu.pci_device:02x}.0"
        addresses = {f"{gpu.pci_domain:08x}:{slot}", f"{gpu.pci_domain:04x}:{slot}", slot}
        if wanted in {str(index), gpu.uuid.decode().lower(), *addresses}:
            return gpu
    raise MockDriverError(f"unknown GPU {name!r}: give an index below {state.gpu_count}, a UUID or a PCI address")


def add_process(state: layout.State, gpu_name: str | int, pid: int, kind: str = "compute", memory_mib: int = 0) -> None:
    """Start using a card, or be refused as the card's compute mode refuses."""
    gpu = find_gpu(state, gpu_name)
    if not alive(pid):
        raise MockDriverError(f"process {pid} does not live")
    others = [process for process in living(gpu) if process.pid != pid and process.kind != layout.PROCESS_GRAPHICS]
    owners = [process.pid for process in others if process.kind != layout.PROCESS_MPS_CLIENT]
    if kind != "graphics" and gpu.compute_mode == PROHIBITED:
        raise MockDriverError(f"GPU {gpu_name} refuses process {pid}: its compute mode is prohibited")
    if kind in ("compute", "mps-server") and gpu.compute_mode == EXCLUSIVE_PROCESS and owners:
        raise MockDriverError(
            f"GPU {gpu_name} refuses process {pid}: its compute mode is exclusive_process and {owners[0]} has it"
        )
    remove_process(state, gpu_name, pid, missing_ok=True)
    for process in gpu.processes:
        if not process.pid or not alive(process.pid):
            process.memory, process.kind = memory_mib * MIB, KINDS[kind]
            process.gpu_instance = process.compute_instance = layout.ANY
            process.pid = pid
            return
    raise MockDriverError(f"GPU {gpu_name} has {layout.MAX_PROCESSES} processes already")


def remove_process(state: layout.State, gpu_name: str | int, pid: int, missing_ok: bool = False) -> None:
    for process in find_gpu(state, gpu_name).processes:
        if process.pid == pid:
            process.pid = 0
            return
    if not missing_ok:
        raise MockDriverError(f"process {pid} is not on GPU {gpu_name}")
