# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""No option at all: the table that everybody knows."""

from __future__ import annotations

from collections.abc import Callable

from _smi import errors, mig_devices, reading
from _smi.errors import NvmlError
from _smi.nvml import Device, Nvml

# What the stand-in calls itself in the table's head.
VERSION = "535.309.01"
_TEMPERATURE_GPU = 0
_WIDE = "-" * 87

_HEAD = """\
|-----------------------------------------+----------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |         Memory-Usage | GPU-Util  Compute M. |
|                                         |                      |               MIG M. |
|=========================================+======================+======================|
"""
_RULE = "+-----------------------------------------+----------------------+----------------------+\n"
_PROCESSES = f"""\
+{_WIDE}+
| Processes:{" " * 76}|
|  GPU   GI   CI        PID   Type   Process name                            GPU Memory |
|        ID   ID                                                             Usage      |
|{"=" * 87}|
"""
_COMPUTE_MODES = ("Default", "E. Thread", "Prohibited", "E. Process")


def _short(read: Callable[[], object]) -> str:
    """The value, N/A where there is none, ERR! where something is wrong."""
    try:
        return str(read())
    except NvmlError as error:
        return "N/A" if error.code == errors.NOT_SUPPORTED else "ERR!"


def _persistence(device: Device) -> str:
    shown = {"True": "    On  ", "False": "    Off ", "N/A": "   N/A  ", "ERR!": "   ERR! "}
    return shown[_short(device.persistence_mode)]


def _switch(read: Callable[[], object]) -> str:
    return {"1": "On", "0": "Off"}.get(_short(read), "N/A")


def _power(device: Device) -> str:
    draw = _short(lambda: device.number("GetPowerUsage"))
    limit = _short(lambda: device.number("GetEnforcedPowerLimit"))
    watts = [f"{round(int(text) / 1000)}W" if text.isdigit() else text for text in (draw, limit)]
    return f"{watts[0]} / {reading.cut(watts[1], 4):>4}"


def _memory(device: Device) -> str:
    try:
        memory = device.memory()
    except NvmlError as error:
        return f"{'N/A':>20}" if error.code == errors.NO_PERMISSION else f"{errors.text(error.code):<20}"
    used = f"{memory.used}MiB"
    total = reading.cut(f"{memory.total}MiB", 8)
    return f"{used:>9} / {total}".rjust(20)


def _ecc(device: Device) -> object:
    """In MIG mode errors are counted by MIG device, and the card shows only whether they are corrected."""
    if not device.mig_enabled():
        return device.ecc_errors()
    return "On" if device.ecc_mode() else "Off"


def _gpu(device: Device) -> str:
    bus_id = reading.or_reason(device.bus_id)
    display = _switch(lambda: device.number("GetDisplayActive"))
    temperature = _short(lambda: device.number("GetTemperature", _TEMPERATURE_GPU))
    state = _short(lambda: device.number("GetPerformanceState"))
    state = f"P{state}" if state.isdigit() else state
    fan = _short(lambda: device.number("GetFanSpeed"))
    mode = _short(lambda: _COMPUTE_MODES[device.compute_mode()])
    used = _short(device.utilization)
    mig = {"True": "Enabled", "False": "Disabled"}
    mig_mode = _short(lambda: mig[str(device.mig_mode()[0])])
    heat = f"{temperature}C" if temperature.isdigit() else temperature
    return (
        f"| {f'{_short(device.index):>3}':<5}{_short(device.name):<27.27}{_persistence(device)}"
        f"| {bus_id} {display:>3} | {_short(lambda: _ecc(device)):>20} |\n"
        f"| {f'{fan}%' if fan.isdigit() else fan:>3} {heat:>5} {state:>5}{_power(device):>24} "
        f"| {_memory(device)} | {f'{used}%' if used.isdigit() else used:>7} {mode:>12} |\n"
        f"|{' ' * 41}|{' ' * 22}| {mig_mode:>20} |\n" + _RULE
    )


def _processes(nvml: Nvml, devices: list[Device]) -> str:
    rows = ""
    for device in devices:
        for process in reading.by_pid(device):
            memory = "N/A" if process.memory is None else f"{process.memory}MiB"
            name = reading.program(nvml, process.pid)
            name = name if len(name) <= 38 else "..." + name[-35:]
            instances = "   N/A  N/A "
            if process.gpu_instance is not None:
                instances = f"{process.gpu_instance:>5}{process.compute_instance:>5}  "
            rows += (
                f"| {_short(device.index):>4}{instances}{process.pid:>9} {process.kind:>6}   {name:<38}{memory:>12} |\n"
            )
    return rows or f"|  No running processes found{' ' * 59}|\n"


def text(nvml: Nvml, devices: list[Device]) -> str:
    driver = reading.or_reason(nvml.driver_version)
    cuda = reading.or_reason(nvml.cuda_version)
    in_mig_mode = [device for device in devices if device.mig_enabled()]
    title = f" NVIDIA-SMI {VERSION:<22} Driver Version: {driver:<12} CUDA Version: {cuda}"
    return (
        f"{reading.timestamp():<31}\n+{_WIDE}+\n|{title:<87}|\n{_HEAD}"
        + "".join(_gpu(device) for device in devices)
        + f"{' ' * 89}\n"
        + (f"{mig_devices.table(in_mig_mode)}{' ' * 89}\n" if in_mig_mode else "")
        + _PROCESSES
        + _processes(nvml, devices)
        + f"+{_WIDE}+\n"
    )
