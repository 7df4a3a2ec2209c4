# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The machine as a table that a person can read."""

from __future__ import annotations

from command.machine import COMPUTE_MODES
from library import layout
from library.processes import living, mig_devices

INSTANCES = ["GI", "PROFILE", "AT", "CI", "PROFILE", "UUID", "PROCESSES"]


def pci_address(gpu: layout.Gpu) -> str:
    return f"{gpu.pci_domain:08X}:{gpu.pci_bus:02X}:{gpu.pci_device:02X}.0"


def mig(gpu: layout.Gpu, model: layout.Model) -> str:
    if not model.mig_capable:
        return "not capable"
    current, pending = (("off", "on")[mode] for mode in (gpu.mig_current, gpu.mig_pending))
    return current if current == pending else f"{current}, {pending} pending"


def instances(gpu: layout.Gpu, model: layout.Model) -> list[list[str]]:
    """A row for each MIG device of the card, and for each GPU instance without one."""
    rows = []
    for gi, instance in enumerate(gpu.gpu_instances):
        if not instance.used:
            continue
        profile = model.profiles[instance.profile]
        place = [str(gi), profile.name.decode(), f"{instance.start}:{instance.size}"]
        devices = [ci for owner, ci in mig_devices(gpu) if owner == gi]
        for ci in devices:
            compute = instance.compute_instances[ci]
            name = profile.compute_profiles[compute.profile].name.decode()
            pids = [
                str(process.pid)
                for process in living(gpu)
                if (process.gpu_instance, process.compute_instance) == (gi, ci)
            ]
            rows.append([*place, str(ci), name, compute.uuid.decode(), " ".join(pids) or "-"])
        if not devices:
            rows.append([*place, "-", "-", "-", "-"])
    return rows


def slices(gpu: layout.Gpu, model: layout.Model) -> str:
    """What instance has which memory slice of the card, as a map."""
    owners = ["."] * model.mig_memory_slices
    for gi, instance in enumerate(gpu.gpu_instances):
        if instance.used:
            owners[instance.start : instance.start + instance.size] = [str(gi)] * instance.size
    return " ".join(f"{owner:>2}" for owner in owners)


def mig_devices_of(state: layout.State, index: int) -> str:
    gpu = state.gpus[index]
    model = state.models[gpu.model]
    head = f"\nGPU {index}, GPU instances by slice: {slices(gpu, model)}"
    rows = instances(gpu, model)
    return "\n".join([head, table([INSTANCES, *rows])] if rows else [head])


def table(rows: list[list[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def show(state: layout.State) -> str:
    lines = [f"machine {state.machine.decode()}, driver {state.driver_version.decode()}"]
    if state.init_result:
        lines.append(f"nvmlInit answers {state.init_result}")
    rows = [["GPU", "NAME", "UUID", "PCI", "COMPUTE MODE", "PERSISTENCE", "MIG", "PROCESSES"]]
    for index in range(state.gpu_count):
        gpu = state.gpus[index]
        model = state.models[gpu.model]
        rows.append(
            [
                str(index),
                model.name.decode(),
                gpu.uuid.decode(),
                pci_address(gpu),
                "lost" if gpu.lost else COMPUTE_MODES[gpu.compute_mode],
                ("off", "on")[gpu.persistence],
                mig(gpu, model),
                " ".join(str(process.pid) for process in living(gpu)) or "-",
            ]
        )
    lines.append(table(rows) if state.gpu_count else "no GPUs")
    lines += [mig_devices_of(state, index) for index in range(state.gpu_count) if state.gpus[index].mig_current]
    return "\n".join(lines)
