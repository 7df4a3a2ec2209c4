# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Processes on a card or in its MIG instances: put there by `mock-driver process` and by the stand-in programs."""

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


def find_instance(
    state: layout.State, name: str | int, gi: int | None, ci: int | None
) -> tuple[layout.Gpu, int | None, int | None]:
    """A card or, by the ids of its GPU and compute instance or by its UUID, a MIG device."""
    for index in range(state.gpu_count):
        for gpu_instance, compute_instance in mig_devices(state.gpus[index]):
            found = state.gpus[index].gpu_instances[gpu_instance].compute_instances[compute_instance]
            if found.uuid.decode() == str(name):
                return state.gpus[index], gpu_instance, compute_instance
    gpu = find_gpu(state, name)
    if (gi is None) != (ci is None):
        raise MockDriverError("give both a GPU instance and a compute instance, or neither")
    if gi is not None and (gi, ci) not in mig_devices(gpu):
        there = ", ".join(f"{gi}/{ci}" for gi, ci in mig_devices(gpu)) or "none"
        raise MockDriverError(f"GPU {name} has no compute instance {ci} in GPU instance {gi}; there are: {there}")
    return gpu, gi, ci


def mig_devices(gpu: layout.Gpu) -> list[tuple[int, int]]:
    """GPU and compute instance ids of the card's MIG devices, in NVML's order."""
    return [
        (gi, ci)
        for gi, gpu_instance in enumerate(gpu.gpu_instances)
        if gpu_instance.used
        for ci, compute_instance in enumerate(gpu_instance.compute_instances)
        if compute_instance.used
    ]


def add_process(
    state: layout.State,
    gpu_name: str | int,
    pid: int,
    kind: str = "compute",
    memory_mib: int = 0,
    gi: int | None = None,
    ci: int | None = None,
) -> None:
    """Start using a card or a MIG device, or be refused as its compute mode refuses."""
    gpu, gi, ci = find_instance(state, gpu_name, gi, ci)
    place = (layout.ANY, layout.ANY) if gi is None or ci is None else (gi, ci)
    mode = gpu.compute_mode if gi is None or ci is None else gpu.gpu_instances[gi].compute_instances[ci].compute_mode
    if not alive(pid):
        raise MockDriverError(f"process {pid} does not live")
    others = [
        process
        for process in living(gpu)
        if process.pid != pid
        and process.kind != layout.PROCESS_GRAPHICS
        and (process.gpu_instance, process.compute_instance) == place
    ]
    owners = [process.pid for process in others if process.kind != layout.PROCESS_MPS_CLIENT]
    if kind != "graphics" and mode == PROHIBITED:
        raise MockDriverError(f"GPU {gpu_name} refuses process {pid}: its compute mode is prohibited")
    if kind in ("compute", "mps-server") and mode == EXCLUSIVE_PROCESS and owners:
        raise MockDriverError(
            f"GPU {gpu_name} refuses process {pid}: its compute mode is exclusive_process and {owners[0]} has it"
        )
    _remove(gpu, pid)
    for process in gpu.processes:
        if not process.pid or not alive(process.pid):
            process.memory, process.kind = memory_mib * MIB, KINDS[kind]
            process.gpu_instance, process.compute_instance = place
            process.pid = pid
            return
    raise MockDriverError(f"GPU {gpu_name} has {layout.MAX_PROCESSES} processes already")


def _remove(gpu: layout.Gpu, pid: int) -> bool:
    for process in gpu.processes:
        if process.pid == pid:
            process.pid = 0
            return True
    return False


def remove_process(state: layout.State, gpu_name: str | int, pid: int) -> None:
    gpu, _gi, _ci = find_instance(state, gpu_name, None, None)
    if not _remove(gpu, pid):
        raise MockDriverError(f"process {pid} is not on GPU {gpu_name}")
