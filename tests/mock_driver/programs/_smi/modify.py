# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""-c, -pm and -mig. As with the real one, exit status 0 does not mean that a card was changed."""

from __future__ import annotations

from collections.abc import Callable

from _smi import errors
from _smi.errors import NvmlError, Stop
from _smi.nvml import Device

_MODES = ("DEFAULT", "EXCLUSIVE_THREAD", "PROHIBITED", "EXCLUSIVE_PROCESS")
_EXCLUSIVE_THREAD = 1
_SWITCH = ("DISABLED", "ENABLED")
_WARNING = "Treating as warning and moving on.\n"
_EARLY = "Terminating early due to previous errors.\n"

_IN_USE = (
    "{} is currently being used by one or more other processes (e.g. CUDA application or a monitoring application such "
    "as another instance of nvidia-smi). Please first kill all processes using the device and retry the command or "
    "reboot the system to make MIG mode effective.\n"
)
_RESET = "Reboot the system or try nvidia-smi --gpu-reset to make MIG mode effective on GPU {}\n"
_NOT_PERSISTENT = (
    "\nWarning: persistence mode is disabled on device {}. See the Known Issues section of the nvidia-smi(1) man page for "
    "more information. Run with [--help | -h] switch to get more information on how to enable persistence mode.\n"
)

Write = Callable[[str], object]


def _number(option: str, value: str, names: tuple[str, ...], what: str) -> int:
    if value in names:
        return names.index(value)
    if not value.isdigit():
        raise Stop(f"ERROR: Option {value} is invalid for {option}. Please run 'nvidia-smi -h' for help.\n\n", 2)
    if int(value) >= len(names):
        raise Stop(f"Invalid {what}: {value}\n{_EARLY}", 2)
    return int(value)


def _failed(write: Write, failure: str, code: int) -> None:
    write(f"{failure}: {errors.text(code)}\n")
    if code != errors.NOT_SUPPORTED:
        raise Stop(_EARLY, errors.status(code))
    write(_WARNING)


def _set_compute_mode(write: Write, device: Device, mode: int, lie: bool) -> None:
    name = _MODES[mode]
    bus_id = device.bus_id()
    if mode == _EXCLUSIVE_THREAD:
        write("Exclusive_Thread was deprecated! Use value 3:Exclusive_Process instead.\n" + _WARNING)
        return
    try:
        current = device.compute_mode()
    except NvmlError as error:
        if error.code == errors.NOT_SUPPORTED:
            write(f"Compute mode is not supported for GPU {bus_id}.\n" + _WARNING)
        else:
            _failed(write, f"Unable to determine current compute mode for GPU {bus_id}", error.code)
        return
    if current == mode:
        write(f"Compute mode is already set to {name} for GPU {bus_id}.\n")
        return
    try:
        if not lie:
            device.set_compute_mode(mode)
    except NvmlError as error:
        if error.code == errors.NOT_SUPPORTED and device.mig_enabled():
            write(f"Setting compute mode to {name} is not supported on a MIG-enabled device.\n")
        _failed(write, f"Unable to set the compute mode for GPU {bus_id}", error.code)
        return
    write(f"Set compute mode to {name} for GPU {bus_id}.\n")


def compute_mode(write: Write, devices: list[Device], option: str, value: str, lie: bool) -> None:
    mode = _number(option, value, _MODES, "compute mode")
    if value == _MODES[_EXCLUSIVE_THREAD]:
        write("Warning: EXCLUSIVE_THREAD mode is deprecated and will be removed in future releases.\n")
    for device in devices:
        _set_compute_mode(write, device, mode, lie)
    write("All done.\n")


def _set_persistence_mode(write: Write, device: Device, wanted: bool, lie: bool) -> None:
    bus_id = device.bus_id()
    word = "Enabled" if wanted else "Disabled"
    try:
        current = device.persistence_mode()
    except NvmlError as error:
        if error.code == errors.NOT_SUPPORTED:
            write(f"Setting persistence mode is not supported for GPU {bus_id} on this platform.\n" + _WARNING)
        else:
            _failed(write, f"Unable to determine current persistence mode for GPU {bus_id}", error.code)
        return
    if current == wanted:
        write(f"Persistence mode is already {word} for GPU {bus_id}.\n")
        return
    try:
        if not lie:
            device.set_persistence_mode(wanted)
    except NvmlError as error:
        _failed(write, f"Unable to set persistence mode for GPU {bus_id}", error.code)
        return
    write(f"{word} persistence mode for GPU {bus_id}.\n")


def persistence_mode(write: Write, devices: list[Device], option: str, value: str, lie: bool) -> None:
    wanted = bool(_number(option, value, _SWITCH, "persistence mode"))
    for device in devices:
        _set_persistence_mode(write, device, wanted, lie)
    write("All done.\n")


def _set_mig_mode(write: Write, device: Device, wanted: bool, lie: bool) -> None:
    bus_id = device.bus_id()
    verb = "enable" if wanted else "disable"
    try:
        activation = 0 if lie else device.set_mig_mode(wanted)
    except NvmlError as error:
        _failed(write, f"Unable to {verb} MIG Mode for GPU {bus_id}", error.code)
        return
    if activation:
        write(f"Warning: MIG mode is in pending {verb} state for GPU {bus_id}:{errors.text(activation)}\n")
        write(_IN_USE.format(bus_id) if activation == errors.IN_USE else _RESET.format(bus_id))
        return
    write(f"{verb.capitalize()}d MIG Mode for GPU {bus_id}\n")
    if not device.persistence_mode():
        write(_NOT_PERSISTENT.format(bus_id))


def mig_mode(write: Write, devices: list[Device], option: str, value: str, lie: bool) -> None:
    wanted = bool(_number(option, value, _SWITCH, "MIG Mode"))
    for device in devices:
        _set_mig_mode(write, device, wanted, lie)
    write("All done.\n")


CHANGES = {"compute_mode": compute_mode, "persistence_mode": persistence_mode, "mig_mode": mig_mode}
