# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The --query-* switches: values as comma separated text."""

from __future__ import annotations

from collections.abc import Callable

from _smi import errors, options, reading
from _smi.errors import NvmlError, Stop
from _smi.nvml import Device, Nvml, Process

Field = tuple[str, str, Callable[[Nvml, Device], object]]
# The name asked for -> the name shown, the unit, the value.
_GPU: dict[str, Field] = {
    "index": ("index", "", lambda nvml, device: device.index()),
    "uuid": ("uuid", "", lambda nvml, device: device.uuid()),
    "name": ("name", "", lambda nvml, device: device.name()),
    "serial": ("serial", "", lambda nvml, device: device.serial()),
    "count": ("count", "", lambda nvml, device: nvml.count()),
    "driver_version": ("driver_version", "", lambda nvml, device: nvml.driver_version()),
    "pci.bus_id": ("pci.bus_id", "", lambda nvml, device: device.bus_id()),
    "compute_mode": ("compute_mode", "", lambda nvml, device: reading.compute_mode(device)),
    "compute_cap": ("compute_cap", "", lambda nvml, device: reading.capability(device)),
    "persistence_mode": ("persistence_mode", "", lambda nvml, device: reading.enabled(device.persistence_mode())),
    "memory.total": ("memory.total", "MiB", lambda nvml, device: device.memory().total),
    "memory.used": ("memory.used", "MiB", lambda nvml, device: device.memory().used),
    "memory.free": ("memory.free", "MiB", lambda nvml, device: device.memory().free),
    "mig.mode.current": ("mig.mode.current", "", lambda nvml, device: reading.enabled(device.mig_mode()[0])),
    "mig.mode.pending": ("mig.mode.pending", "", lambda nvml, device: reading.enabled(device.mig_mode()[1])),
}
_GPU.update({alias: _GPU[name] for alias, name in (("gpu_name", "name"), ("gpu_uuid", "uuid"), ("gpu_serial", "serial"), ("gpu_bus_id", "pci.bus_id"))})

ProcessField = tuple[str, str, Callable[[Nvml, Device, Process], object]]


def _used_memory(process: Process) -> int:
    if process.memory is None:
        raise NvmlError(errors.NOT_SUPPORTED)
    return process.memory


_PROCESS: dict[str, ProcessField] = {
    "pid": ("pid", "", lambda nvml, device, process: process.pid),
    "process_name": ("process_name", "", lambda nvml, device, process: nvml.process_name(process.pid)),
    "used_gpu_memory": ("used_gpu_memory", "MiB", lambda nvml, device, process: _used_memory(process)),
    "gpu_name": ("gpu_name", "", lambda nvml, device, process: device.name()),
    "gpu_uuid": ("gpu_uuid", "", lambda nvml, device, process: device.uuid()),
    "gpu_serial": ("gpu_serial", "", lambda nvml, device, process: device.serial()),
    "gpu_bus_id": ("gpu_bus_id", "", lambda nvml, device, process: device.bus_id()),
}
_PROCESS.update({"name": _PROCESS["process_name"], "used_memory": _PROCESS["used_gpu_memory"]})


def _shown(read: Callable[[], object], unit: str) -> str:
    try:
        value = str(read())
    except NvmlError as error:
        return f"[{errors.value(error.code)}]"
    return f"{value} {unit}" if unit else value


def _columns(names: str, known: dict[str, tuple[str, str, Callable[..., object]]]) -> list[tuple[str, str, Callable[..., object]]]:
    columns = []
    for name in names.split(","):
        if name not in known:
            raise Stop(f'Field "{name}" is not a valid field to query.\n\n', 2)
        columns.append(known[name])
    return columns


def _table(columns: list[tuple[str, str, Callable[..., object]]], rows: list[tuple[object, ...]], layout: str) -> str:
    header, units = options.csv_format(layout)
    lines = [", ".join(f"{name} [{unit}]" if unit else name for name, unit, _read in columns)] if header else []
    for row in rows:
        lines.append(", ".join(_shown(lambda: read(*row), unit if units else "") for _name, unit, read in columns))
    return "".join(f"{line}\n" for line in lines)


def gpus(nvml: Nvml, devices: list[Device], fields: str, layout: str) -> str:
    return _table(_columns(fields, _GPU), [(nvml, device) for device in devices], layout)


def compute_apps(nvml: Nvml, devices: list[Device], fields: str, layout: str) -> str:
    rows: list[tuple[object, ...]] = [
        (nvml, device, process) for device in devices for process in device.processes() if "C" in process.kind
    ]
    return _table(_columns(fields, _PROCESS), rows, layout)
