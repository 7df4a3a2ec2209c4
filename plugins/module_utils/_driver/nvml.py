# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. Backend ``nvml``: the package nvidia-ml-py (module pynvml) over libnvidia-ml.so.1.

A call into NVML cannot be bounded from inside the process: where a driver hangs, so does the module.
"""

from __future__ import annotations

import contextlib
import typing as t

from .._errors import DriverAbsent
from .._gpu import COMPUTE_MODE_BY_NUMBER, NUMBER_BY_COMPUTE_MODE, Capability, Gpu, Process, System, kernel_pci
from .interface import MigDriver
from .nvml_call import call, code, optional, pynvml
from .nvml_mig import NvmlMig, read_mode

MIB = 1024 * 1024
# nvml.h: nvmlReturn_t
_NO_DRIVER = {
    9: "the NVIDIA kernel module is not loaded",
    12: "libnvidia-ml.so.1 was not found: no NVIDIA driver is installed",
    18: "the loaded kernel module and libnvidia-ml.so.1 are of different versions (was the driver updated without a reboot?)",
}


class NvmlDriver(NvmlMig, MigDriver):
    """NVML in this process."""

    backend = "nvml"

    def __init__(self) -> None:
        super().__init__()
        self.reopen()

    def reopen(self) -> None:
        self._handles.clear()
        self._created.clear()
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as exc:
            reason = _NO_DRIVER.get(code(exc), f"NVML says: {exc}")
            raise DriverAbsent(f"No usable NVIDIA driver: {reason}", reason=reason) from exc

    def close(self) -> None:
        with contextlib.suppress(pynvml.NVMLError):  # the work is done
            pynvml.nvmlShutdown()

    def system(self) -> System:
        cuda = optional(pynvml.nvmlSystemGetCudaDriverVersion_v2)
        return System(
            driver_version=optional(pynvml.nvmlSystemGetDriverVersion),
            nvml_version=optional(pynvml.nvmlSystemGetNVMLVersion),
            cuda_version=f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else None,
        )

    def gpus(self) -> list[Gpu]:
        return [self._gpu(index) for index in range(call("list the GPUs", pynvml.nvmlDeviceGetCount))]

    def _gpu(self, index: int) -> Gpu:
        try:
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            uuid = pynvml.nvmlDeviceGetUUID(handle)
            pci = kernel_pci(_text(pynvml.nvmlDeviceGetPciInfo(handle).busId))
        except pynvml.NVMLError as exc:
            return Gpu(index=index, error=str(exc))
        self._handles[uuid] = handle
        try:
            return Gpu(
                index=index,
                uuid=uuid,
                pci_bus_id=pci,
                name=optional(pynvml.nvmlDeviceGetName, handle),
                compute_capability=_capability(handle),
                memory_total_mib=_mib(optional(pynvml.nvmlDeviceGetMemoryInfo, handle)),
                compute_mode=_mode(optional(pynvml.nvmlDeviceGetComputeMode, handle)),
                persistence_mode=_flag(optional(pynvml.nvmlDeviceGetPersistenceMode, handle)),
                mig=optional(read_mode, handle),
                processes=_processes(handle),
            )
        except pynvml.NVMLError as exc:
            return Gpu(index=index, uuid=uuid, pci_bus_id=pci, error=str(exc))

    def compute_mode(self, gpu: Gpu) -> str:
        number = call(
            f"read the compute mode of {gpu.label}", lambda: pynvml.nvmlDeviceGetComputeMode(self._handle(gpu))
        )
        return COMPUTE_MODE_BY_NUMBER.get(number, str(number))

    def set_compute_mode(self, gpu: Gpu, mode: str) -> None:
        number = NUMBER_BY_COMPUTE_MODE[mode]
        call(
            f"set the compute mode of {gpu.label} to {mode}",
            lambda: pynvml.nvmlDeviceSetComputeMode(self._handle(gpu), number),
        )

    def set_persistence_mode(self, gpu: Gpu, on: bool) -> None:
        call(
            f"set the persistence mode of {gpu.label}",
            lambda: pynvml.nvmlDeviceSetPersistenceMode(self._handle(gpu), int(on)),
        )


def _text(value: t.Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _capability(handle: t.Any) -> Capability | None:
    pair = optional(pynvml.nvmlDeviceGetCudaComputeCapability, handle)
    return (pair[0], pair[1]) if pair else None


def _mib(memory: t.Any) -> int | None:
    return None if memory is None else memory.total // MIB


def _mode(number: int | None) -> str | None:
    return None if number is None else COMPUTE_MODE_BY_NUMBER.get(number)


def _flag(value: int | None) -> bool | None:
    return None if value is None else bool(value)


def _processes(handle: t.Any) -> tuple[Process, ...]:
    found: dict[int, Process] = {}
    for kind, function in (
        ("G", pynvml.nvmlDeviceGetGraphicsRunningProcesses),
        ("C", pynvml.nvmlDeviceGetComputeRunningProcesses),
        ("M+C", pynvml.nvmlDeviceGetMPSComputeRunningProcesses),
    ):
        for entry in optional(function, handle) or []:
            memory = None if entry.usedGpuMemory is None else entry.usedGpuMemory // MIB
            found[entry.pid] = Process(entry.pid, _name(entry.pid), memory, kind)
    return tuple(found[pid] for pid in sorted(found))


def _name(pid: int) -> str | None:
    try:
        return pynvml.nvmlSystemGetProcessName(pid)
    except pynvml.NVMLError:
        return None  # it ended meanwhile, or lives in another PID namespace
