# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The machine as a table that a person can read."""

from __future__ import annotations

from command.machine import COMPUTE_MODES
from library import layout
from library.processes import living


def pci_address(gpu: layout.Gpu) -> str:
    return f"{gpu.pci_domain:08X}:{gpu.pci_bus:02X}:{gpu.pci_device:02X}.0"


def mig(gpu: layout.Gpu, model: layout.Model) -> str:
    if not model.mig_capable:
        return "not capable"
    current, pending = (("off", "on")[mode] for mode in (gpu.mig_current, gpu.mig_pending))
    return current if current == pending else f"{current}, {pending} pending"


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
    return "\n".join(lines)
