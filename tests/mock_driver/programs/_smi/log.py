# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""-q -d: the log, with the sections COMPUTE and PIDS."""

from __future__ import annotations

from _smi import reading
from _smi.errors import Stop
from _smi.nvml import Device, Nvml

SECTIONS = ("COMPUTE", "PIDS")


def _line(depth: int, label: str, value: str) -> str:
    return f"{'    ' * depth + label:<42}: {value}\n"


def _processes(nvml: Nvml, device: Device) -> str:
    processes = reading.by_pid(device)
    if not processes:
        return _line(1, "Processes", "None")
    text = "    Processes\n"
    for process in processes:
        gpu_instance, compute_instance = reading.instances(process)
        text += _line(2, "GPU instance ID", gpu_instance) + _line(2, "Compute instance ID", compute_instance)
        text += _line(2, "Process ID", str(process.pid))
        text += _line(3, "Type", process.kind) + _line(3, "Name", reading.program(nvml, process.pid))
        text += _line(3, "Used GPU Memory", reading.used_memory(process))
    return text


def sections(display: str) -> list[str]:
    names = display.upper().split(",")
    for name in names:
        if name not in SECTIONS:
            raise Stop(f"mock nvidia-smi: option -d {name} is not known to this stand-in\n", 2)
    return names


def _gpu(nvml: Nvml, device: Device, names: list[str]) -> str:
    shown = f"GPU {reading.or_reason(device.bus_id)}\n"
    if "COMPUTE" in names:
        shown += _line(1, "Compute Mode", reading.or_reason(lambda: reading.compute_mode(device)))
    if "PIDS" in names:
        shown += _processes(nvml, device)
    return shown + "\n"


def text(nvml: Nvml, devices: list[Device], names: list[str]) -> str:
    shown = "\n==============NVSMI LOG==============\n\n"
    shown += _line(0, "Timestamp", reading.timestamp())
    shown += _line(0, "Driver Version", reading.or_reason(nvml.driver_version))
    shown += _line(0, "CUDA Version", reading.or_reason(nvml.cuda_version))
    shown += "\n" + _line(0, "Attached GPUs", reading.or_reason(nvml.count))
    return shown + "".join(_gpu(nvml, device, names) for device in devices)
