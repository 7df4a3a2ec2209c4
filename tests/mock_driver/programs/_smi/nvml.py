# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""NVML through ctypes, and only where the library is the mocked driver."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from ctypes import byref, c_char, c_int, c_uint, c_ulonglong, c_void_p
from dataclasses import dataclass
from typing import Any

from _smi import errors
from _smi.errors import NvmlError, Stop

LIBRARY = "libnvidia-ml.so.1"
# The symbol that only the mocked driver has.
MARK = "mockDriverVersion"
_NAME = 96
_PROCESS_LISTS = {
    "G": "GetGraphicsRunningProcesses_v3",
    "C": "GetComputeRunningProcesses_v3",
    "M+C": "GetMPSComputeRunningProcesses_v3",
}
_UNKNOWN_MEMORY = 2**64 - 1
_NO_INSTANCE = 2**32 - 1
MEBIBYTE = 2**20


class _PciInfo(ctypes.Structure):
    _fields_ = [
        ("busIdLegacy", c_char * 16),
        ("domain", c_uint),
        ("bus", c_uint),
        ("device", c_uint),
        ("pciDeviceId", c_uint),
        ("pciSubSystemId", c_uint),
        ("busId", c_char * 32),
    ]


class _Memory(ctypes.Structure):
    _fields_ = [("version", c_uint)] + [(name, c_ulonglong) for name in ("total", "reserved", "free", "used")]


class _Utilization(ctypes.Structure):
    _fields_ = [("gpu", c_uint), ("memory", c_uint)]


class _ProcessInfo(ctypes.Structure):
    _fields_ = [
        ("pid", c_uint),
        ("usedGpuMemory", c_ulonglong),
        ("gpuInstanceId", c_uint),
        ("computeInstanceId", c_uint),
    ]


@dataclass(frozen=True)
class Memory:
    """Device memory in MiB."""

    total: int
    reserved: int
    free: int
    used: int


@dataclass(frozen=True)
class Process:
    """A process on a card or in one of its MIG devices; memory in MiB, None where the driver does not say."""

    pid: int
    kind: str
    memory: int | None
    gpu_instance: int | None = None
    compute_instance: int | None = None


class Device:
    """A card. Every method raises NvmlError with the code of a call that failed."""

    def __init__(self, library: Nvml, handle: c_void_p) -> None:
        self.nvml = library
        self._handle = handle

    def call(self, function: str, *arguments: Any) -> None:
        self.nvml.call(f"nvmlDevice{function}", self._handle, *arguments)

    def _text(self, function: str) -> str:
        buffer = ctypes.create_string_buffer(_NAME)
        self.call(function, buffer, c_uint(_NAME))
        return buffer.value.decode(errors="replace")

    def _number(self, function: str, *arguments: Any) -> int:
        result = c_uint()
        self.call(function, *arguments, byref(result))
        return result.value

    def index(self) -> int:
        return self._number("GetIndex")

    def uuid(self) -> str:
        return self._text("GetUUID")

    def name(self) -> str:
        return self._text("GetName")

    def serial(self) -> str:
        return self._text("GetSerial")

    def pci(self) -> _PciInfo:
        info = _PciInfo()
        self.call("GetPciInfo_v3", byref(info))
        return info

    def bus_id(self) -> str:
        return self.pci().busId.decode()

    def memory(self) -> Memory:
        info = _Memory(version=ctypes.sizeof(_Memory) | 2 << 24)
        self.call("GetMemoryInfo_v2", byref(info))
        return Memory(*(getattr(info, name) // MEBIBYTE for name in ("total", "reserved", "free", "used")))

    def compute_capability(self) -> tuple[int, int]:
        major, minor = c_int(), c_int()
        self.call("GetCudaComputeCapability", byref(major), byref(minor))
        return major.value, minor.value

    def compute_mode(self) -> int:
        return self._number("GetComputeMode")

    def set_compute_mode(self, mode: int) -> None:
        self.call("SetComputeMode", c_uint(mode))

    def persistence_mode(self) -> bool:
        return bool(self._number("GetPersistenceMode"))

    def set_persistence_mode(self, enabled: bool) -> None:
        self.call("SetPersistenceMode", c_uint(enabled))

    def mig_mode(self) -> tuple[bool, bool]:
        """Current and pending."""
        current, pending = c_uint(), c_uint()
        self.call("GetMigMode", byref(current), byref(pending))
        return bool(current.value), bool(pending.value)

    def mig_enabled(self) -> bool:
        try:
            return self.mig_mode()[0]
        except NvmlError:
            return False

    def set_mig_mode(self, enabled: bool) -> int:
        """Returns NVML's code for whether the mode is in force already (0) or pending, and why."""
        activation = c_uint()
        self.call("SetMigMode", c_uint(enabled), byref(activation))
        return activation.value

    def number(self, function: str, *arguments: int) -> int:
        """Any reading that is one unsigned number."""
        return self._number(function, *(c_uint(argument) for argument in arguments))

    def utilization(self) -> int:
        """Per cent of the time in which the card worked."""
        result = _Utilization()
        self.call("GetUtilizationRates", byref(result))
        return result.gpu

    def ecc_mode(self) -> bool:
        current, pending = c_uint(), c_uint()
        self.call("GetEccMode", byref(current), byref(pending))
        return bool(current.value)

    def ecc_errors(self) -> int:
        """Uncorrected errors since the driver was loaded."""
        result = c_ulonglong()
        self.call("GetTotalEccErrors", c_uint(1), c_uint(0), byref(result))
        return result.value

    def mig_devices(self) -> list[Device]:
        """Those that can be had."""
        try:
            most = self._number("GetMaxMigDeviceCount")
        except NvmlError:
            return []
        found = []
        for index in range(most):
            handle = c_void_p()
            try:
                self.call("GetMigDeviceHandleByIndex", c_uint(index), byref(handle))
            except NvmlError:
                continue
            found.append(Device(self.nvml, handle))
        return found

    def processes(self, kinds: Iterable[str] = ("G", "C", "M+C")) -> list[Process]:
        """As the driver lists them; what is in the compute list and in the MPS list is an MPS client."""
        found: dict[int, Process] = {}
        for kind in kinds:
            for entry in self._running(_PROCESS_LISTS[kind]):
                memory = None if entry.usedGpuMemory == _UNKNOWN_MEMORY else entry.usedGpuMemory // MEBIBYTE
                instances = (entry.gpuInstanceId, entry.computeInstanceId)
                found[entry.pid] = Process(
                    entry.pid, kind, memory, *(None if number == _NO_INSTANCE else number for number in instances)
                )
        return list(found.values())

    def _running(self, function: str) -> list[_ProcessInfo]:
        size = 1024
        count = c_uint(size)
        entries = (_ProcessInfo * size)()
        self.call(function, byref(count), entries)
        return list(entries[: count.value])


class Nvml:
    """The library, initialised."""

    def __init__(self) -> None:
        try:
            self._library = ctypes.CDLL(LIBRARY)
        except OSError:
            raise _missing() from None
        if not hasattr(self._library, MARK):
            raise Stop(f"mock nvidia-smi: the {LIBRARY} found is not the mocked driver; nothing was done\n", 2)
        try:
            self.call("nvmlInitWithFlags", c_uint(0))
        except NvmlError as error:
            raise _init_failed(error.code, self) from None

    def call(self, function: str, *arguments: Any) -> None:
        code = getattr(self._library, function)(*arguments)
        if code:
            raise NvmlError(code)

    def count(self) -> int:
        result = c_uint()
        self.call("nvmlDeviceGetCount_v2", byref(result))
        return result.value

    def device(self, index: int) -> Device:
        handle = c_void_p()
        self.call("nvmlDeviceGetHandleByIndex_v2", c_uint(index), byref(handle))
        return Device(self, handle)

    def _system_text(self, function: str) -> str:
        buffer = ctypes.create_string_buffer(_NAME)
        self.call(function, buffer, c_uint(_NAME))
        return buffer.value.decode(errors="replace")

    def driver_version(self) -> str:
        return self._system_text("nvmlSystemGetDriverVersion")

    def library_version(self) -> str:
        return self._system_text("nvmlSystemGetNVMLVersion")

    def cuda_version(self) -> str:
        version = c_int()
        self.call("nvmlSystemGetCudaDriverVersion_v2", byref(version))
        return f"{version.value // 1000}.{version.value % 1000 // 10}"

    def process_name(self, pid: int) -> str:
        buffer = ctypes.create_string_buffer(1024)
        self.call("nvmlSystemGetProcessName", c_uint(pid), buffer, c_uint(1024))
        return buffer.value.decode(errors="replace")


def _missing() -> Stop:
    return Stop(
        "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure that the NVIDIA Display "
        "Driver is properly installed and present in your system.\n"
        "Please also try adding directory that contains libnvidia-ml.so to your system PATH.\n",
        errors.LIBRARY_NOT_FOUND,
    )


def _init_failed(code: int, nvml: Nvml) -> Stop:
    if code == errors.LIBRARY_NOT_FOUND:
        return _missing()
    if code == errors.DRIVER_NOT_LOADED:
        return Stop(
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest "
            "NVIDIA driver is installed and running.\n\n",
            code,
        )
    text = f"Failed to initialize NVML: {errors.value(code)}\n"
    if code == errors.VERSION_MISMATCH:
        # "12.535.309.01" is shown as 535.309.
        text += "NVML library version: " + ".".join(nvml.library_version().split(".")[1:3]) + "\n"
    return Stop(text, errors.status(code))
