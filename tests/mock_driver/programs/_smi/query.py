# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The --query-* switches: values as comma separated text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable

from _smi import errors, options, reading
from _smi.errors import NvmlError, Stop
from _smi.nvml import Device, Nvml, Process


@dataclass(frozen=True)
class Subject:
    """What a row is about."""

    nvml: Nvml
    device: Device
    process: Process | NvmlError | None = None

    def _process(self) -> Process:
        assert self.process is not None
        if isinstance(self.process, NvmlError):
            raise self.process
        return self.process

    def pid(self) -> int:
        return self._process().pid

    def used_memory(self) -> int:
        memory = self._process().memory
        if memory is None:
            raise NvmlError(errors.NOT_SUPPORTED)
        return memory


@dataclass(frozen=True)
class Field:
    """A column: the name shown, how to read it, and the unit."""

    name: str
    read: Callable[[Subject], object]
    unit: str = ""

    def heading(self) -> str:
        return f"{self.name} [{self.unit}]" if self.unit else self.name

    def shown(self, subject: Subject, units: bool) -> str:
        try:
            value = str(self.read(subject))
        except NvmlError as error:
            return f"[{errors.value(error.code)}]"
        return f"{value} {self.unit}" if units and self.unit else value


def _known(fields: list[Field], aliases: dict[str, str]) -> dict[str, Field]:
    known = {field.name: field for field in fields}
    return {**known, **{alias: known[name] for alias, name in aliases.items()}}


_GPU = _known(
    [
        Field("index", lambda row: row.device.index()),
        Field("uuid", lambda row: row.device.uuid()),
        Field("name", lambda row: row.device.name()),
        Field("serial", lambda row: row.device.serial()),
        Field("count", lambda row: row.nvml.count()),
        Field("driver_version", lambda row: row.nvml.driver_version()),
        Field("pci.bus_id", lambda row: row.device.bus_id()),
        Field("compute_mode", lambda row: reading.compute_mode(row.device)),
        Field("compute_cap", lambda row: reading.capability(row.device)),
        Field("persistence_mode", lambda row: reading.enabled(row.device.persistence_mode())),
        Field("accounting.mode", lambda row: reading.enabled(bool(row.device.number("GetAccountingMode")))),
        Field("memory.total", lambda row: row.device.memory().total, "MiB"),
        Field("memory.used", lambda row: row.device.memory().used, "MiB"),
        Field("memory.free", lambda row: row.device.memory().free, "MiB"),
        Field("mig.mode.current", lambda row: reading.enabled(row.device.mig_mode()[0])),
        Field("utilization.gpu", lambda row: row.device.utilization(), "%"),
        Field("mig.mode.pending", lambda row: reading.enabled(row.device.mig_mode()[1])),
    ],
    {"gpu_name": "name", "gpu_uuid": "uuid", "gpu_serial": "serial", "gpu_bus_id": "pci.bus_id"},
)
_PROCESS = _known(
    [
        Field("pid", lambda row: row.pid()),
        Field("process_name", lambda row: row.nvml.process_name(row.pid())),
        Field("used_gpu_memory", lambda row: row.used_memory(), "MiB"),
        Field("gpu_name", lambda row: row.device.name()),
        Field("gpu_uuid", lambda row: row.device.uuid()),
        Field("gpu_serial", lambda row: row.device.serial()),
        Field("gpu_bus_id", lambda row: row.device.bus_id()),
    ],
    {"name": "process_name", "used_memory": "used_gpu_memory"},
)


def _table(names: str, known: dict[str, Field], rows: list[Subject], layout: str) -> str:
    header, units = options.csv_format(layout)
    for name in names.split(","):
        if name not in known:
            raise Stop(f'Field "{name}" is not a valid field to query.\n\n', 2)
    fields = [known[name] for name in names.split(",")]
    lines = [", ".join(field.heading() for field in fields)] if header else []
    lines += [", ".join(field.shown(row, units) for field in fields) for row in rows]
    return "".join(f"{line}\n" for line in lines)


def gpus(nvml: Nvml, devices: list[Device], names: str, layout: str) -> str:
    return _table(names, _GPU, [Subject(nvml, device) for device in devices], layout)


def _apps(nvml: Nvml, device: Device) -> list[Subject]:
    try:
        return [Subject(nvml, device, process) for process in device.processes(["C"])]
    except NvmlError as error:
        return [Subject(nvml, device, error)]


def compute_apps(nvml: Nvml, devices: list[Device], names: str, layout: str) -> str:
    return _table(names, _PROCESS, [row for device in devices for row in _apps(nvml, device)], layout)
