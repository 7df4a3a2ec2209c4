# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The MIG devices of a card, as -L and the table show them. What cannot be read in full is not shown."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from ctypes import byref, c_uint, c_ulonglong
from dataclasses import dataclass

from _smi import reading
from _smi.errors import NvmlError
from _smi.nvml import MEBIBYTE, Device, Memory

_EMPTY = f"|  No MIG devices found{' ' * 65}|\n+{'-' * 87}+\n"
_HEAD = """\
+---------------------------------------------------------------------------------------+
| MIG devices:                                                                          |
+------------------+--------------------------------+-----------+-----------------------+
| GPU  GI  CI  MIG |                   Memory-Usage |        Vol|      Shared           |
|      ID  ID  Dev |                     BAR1-Usage | SM     Unc| CE ENC DEC OFA JPG    |
|                  |                                |        ECC|                       |
|==================+================================+===========+=======================|
"""
_RULE = "+------------------+--------------------------------+-----------+-----------------------+\n"
# Between MIG devices of one GPU instance, which share its memory.
_RULE_INSIDE = _RULE.replace("-" * 32 + "+-", " " * 32 + "+-")


class Attributes(ctypes.Structure):
    """nvmlDeviceAttributes_t"""

    _fields_ = [
        *((name, c_uint) for name in ("sm", "ce", "dec", "enc", "jpeg", "ofa", "gpu_slices", "compute_slices")),
        ("memory_mib", c_ulonglong),
    ]


class _Bar1(ctypes.Structure):
    _fields_ = [(name, c_ulonglong) for name in ("total", "free", "used")]


@dataclass(frozen=True)
class MigDevice:
    card: int
    index: int
    gpu_instance: int
    compute_instance: int
    attributes: Attributes
    memory: Memory
    bar1: Memory
    ecc_errors: int


def _read(card: int, device: Device) -> MigDevice:
    attributes, bar1 = Attributes(), _Bar1()
    device.call("GetAttributes_v2", byref(attributes))
    device.call("GetBAR1MemoryInfo", byref(bar1))
    return MigDevice(
        card,
        device.index(),
        device.number("GetGpuInstanceId"),
        device.number("GetComputeInstanceId"),
        attributes,
        device.memory(),
        Memory(bar1.total // MEBIBYTE, 0, bar1.free // MEBIBYTE, bar1.used // MEBIBYTE),
        device.ecc_errors(),
    )


def read(device: Device) -> list[MigDevice]:
    found = []
    for handle in device.mig_devices():
        try:
            found.append(_read(device.index(), handle))
        except NvmlError:
            continue
    return found


def listing(device: Device) -> str:
    text = ""
    for index, handle in enumerate(device.mig_devices()):
        try:
            name = "MIG" + handle.name().rpartition("MIG")[2]
            text += f"  {name:<15} Device {index:2}: (UUID: {handle.uuid()})\n"
        except NvmlError:
            continue
    return text


def _usage(memory: Memory) -> str:
    used, total = f"{memory.used}MiB", reading.cut(f"{memory.total}MiB", 9)
    return f"{used:>19} / {total:>8}".ljust(32)


def _rows(device: MigDevice, first_of_instance: bool) -> str:
    had = device.attributes
    memory, bar1 = (_usage(device.memory), _usage(device.bar1)) if first_of_instance else (" " * 32, " " * 32)
    return (
        f"|{device.card:>3} {device.gpu_instance:>4}{device.compute_instance:>4} {device.index:>3}  |{memory}"
        f"|{had.sm:>3}{device.ecc_errors:>7} |{had.ce:>3}{had.enc:>4}{had.dec:>5}{had.ofa:>5}{had.jpeg:>5} |\n"
        f"|{' ' * 18}|{bar1}|{' ' * 11}|{' ' * 23}|\n"
    )


def table(devices: Iterable[Device]) -> str:
    found = [mig_device for device in devices for mig_device in read(device)]
    text = _HEAD if found else _HEAD + _EMPTY
    for place, device in enumerate(found):
        before, after = found[place - 1 : place], found[place + 1 : place + 2]
        instance = (device.card, device.gpu_instance)
        same_before, same_after = (
            any((other.card, other.gpu_instance) == instance for other in others) for others in (before, after)
        )
        text += _rows(device, not same_before) + (_RULE_INSIDE if same_after else _RULE)
    return text
