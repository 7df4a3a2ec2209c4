# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. Backend ``nvml``: the package nvidia-ml-py (module pynvml) over libnvidia-ml.so.1.

A call into NVML cannot be bounded from inside the process: where a driver hangs, so does the module.
"""

from __future__ import annotations

import typing as t

from .._errors import CommandFailed, DriverAbsent, GpuLost, InUse, NotSupported, PermissionMissing, SharingError
from .._gpu import COMPUTE_MODE_BY_NUMBER, NUMBER_BY_COMPUTE_MODE, Capability, Gpu, Mig, Process, System, kernel_pci
from .interface import Driver, refusal

try:
    import pynvml
except ImportError:
    HAS_PYNVML = False
else:
    HAS_PYNVML = True

MIB = 1024 * 1024
T = t.TypeVar("T")

# nvml.h: nvmlReturn_t
_NO_DRIVER = {
    9: "the NVIDIA kernel module is not loaded",
    12: "libnvidia-ml.so.1 was not found: no NVIDIA driver is installed",
    18: "the loaded kernel module and libnvidia-ml.so.1 are of different versions (was the driver updated without a reboot?)",
}
_UNREADABLE = {
    3,
    7,
    13,
    25,
    26,
    999,
}  # not supported, size, function not found, argument version, deprecated, unknown: the value is unknown
_LOST = {15, 16, 28}  # lost, reset required, in bad state


class NvmlDriver(Driver):
    """NVML in this process."""

    backend = "nvml"

    def __init__(self) -> None:
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as exc:
            reason = _NO_DRIVER.get(_code(exc), f"NVML says: {exc}")
            raise DriverAbsent(f"No usable NVIDIA driver: {reason}", reason=reason) from exc

    def close(self) -> None:
        pynvml.nvmlShutdown()

    def system(self) -> System:
        cuda = _optional(pynvml.nvmlSystemGetCudaDriverVersion_v2)
        return System(
            driver_version=_optional(pynvml.nvmlSystemGetDriverVersion),
            nvml_version=_optional(pynvml.nvmlSystemGetNVMLVersion),
            cuda_version=f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else None,
        )

    def gpus(self) -> list[Gpu]:
        return [self._gpu(index) for index in range(_call("list the GPUs", pynvml.nvmlDeviceGetCount))]

    def _gpu(self, index: int) -> Gpu:
        try:
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            uuid = pynvml.nvmlDeviceGetUUID(handle)
            pci = kernel_pci(_text(pynvml.nvmlDeviceGetPciInfo(handle).busId))
        except pynvml.NVMLError as exc:
            return Gpu(index=index, error=str(exc))
        try:
            return Gpu(
                index=index,
                uuid=uuid,
                pci_bus_id=pci,
                name=_optional(pynvml.nvmlDeviceGetName, handle),
                compute_capability=_capability(handle),
                memory_total_mib=_mib(_optional(pynvml.nvmlDeviceGetMemoryInfo, handle)),
                compute_mode=_mode(_optional(pynvml.nvmlDeviceGetComputeMode, handle)),
                persistence_mode=_flag(_optional(pynvml.nvmlDeviceGetPersistenceMode, handle)),
                mig=_mig(handle),
                processes=_processes(handle),
            )
        except pynvml.NVMLError as exc:
            return Gpu(index=index, uuid=uuid, pci_bus_id=pci, error=str(exc))

    def compute_mode(self, gpu: Gpu) -> str:
        number = _call(
            f"read the compute mode of {gpu.label}", lambda: pynvml.nvmlDeviceGetComputeMode(self._handle(gpu))
        )
        return COMPUTE_MODE_BY_NUMBER.get(number, str(number))

    def set_compute_mode(self, gpu: Gpu, mode: str) -> None:
        number = NUMBER_BY_COMPUTE_MODE[mode]
        _call(
            f"set the compute mode of {gpu.label} to {mode}",
            lambda: pynvml.nvmlDeviceSetComputeMode(self._handle(gpu), number),
        )

    @staticmethod
    def _handle(gpu: Gpu) -> t.Any:
        return pynvml.nvmlDeviceGetHandleByUUID(gpu.uuid)


def _call(action: str, function: t.Callable[[], T]) -> T:
    """Call NVML and turn its refusal into an error that says what was attempted."""
    try:
        return function()
    except pynvml.NVMLError as exc:
        code = _code(exc)
        raise refusal(kind(code), f"Cannot {action}: {exc}", nvml_code=code) from exc


def kind(code: int) -> type[SharingError]:
    """Return which error an NVML return code stands for."""
    kinds: dict[int, type[SharingError]] = {3: NotSupported, 4: PermissionMissing, 19: InUse}
    return GpuLost if code in _LOST else kinds.get(code, CommandFailed)


def _code(error: pynvml.NVMLError) -> int:
    return int(getattr(error, "value", 999))


def _optional(function: t.Callable[..., T], *arguments: t.Any) -> T | None:
    """Return None where this driver or this GPU cannot tell."""
    try:
        return function(*arguments)
    except pynvml.NVMLError as exc:
        if _code(exc) in _UNREADABLE:
            return None
        raise


def _text(value: t.Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _capability(handle: t.Any) -> Capability | None:
    pair = _optional(pynvml.nvmlDeviceGetCudaComputeCapability, handle)
    return (pair[0], pair[1]) if pair else None


def _mib(memory: t.Any) -> int | None:
    return None if memory is None else memory.total // MIB


def _mode(number: int | None) -> str | None:
    return None if number is None else COMPUTE_MODE_BY_NUMBER.get(number)


def _flag(value: int | None) -> bool | None:
    return None if value is None else bool(value)


def _mig(handle: t.Any) -> Mig:
    modes = _optional(pynvml.nvmlDeviceGetMigMode, handle)
    return Mig(False, False, False) if modes is None else Mig(True, bool(modes[0]), bool(modes[1]))


def _processes(handle: t.Any) -> tuple[Process, ...]:
    found: dict[int, Process] = {}
    for kind, function in (
        ("G", pynvml.nvmlDeviceGetGraphicsRunningProcesses),
        ("C", pynvml.nvmlDeviceGetComputeRunningProcesses),
        ("M+C", pynvml.nvmlDeviceGetMPSComputeRunningProcesses),
    ):
        for entry in _optional(function, handle) or []:
            memory = None if entry.usedGpuMemory is None else entry.usedGpuMemory // MIB
            found[entry.pid] = Process(entry.pid, _name(entry.pid), memory, kind)
    return tuple(found[pid] for pid in sorted(found))


def _name(pid: int) -> str | None:
    try:
        return pynvml.nvmlSystemGetProcessName(pid)
    except pynvml.NVMLError:
        return None  # it ended meanwhile, or lives in another PID namespace
