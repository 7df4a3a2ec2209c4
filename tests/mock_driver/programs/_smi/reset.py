# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""--gpu-reset, which the real nvidia-smi cannot do on the mocked driver.

The texts are in the real program. Assumed is which of them comes when, that cards which are free are reset though others of
the same call are in use, and the exit status 255.
"""

from __future__ import annotations

from collections.abc import Callable

import _machine
from _smi import errors
from _smi.errors import Stop
from _smi.nvml import Device

_NOT_ALONE = (
    "GPU Reset couldn't progress because the specified devices do not meet the reset criterion (e.g. NVLink connected GPUs "
    "must be reset together). Please append the following device indexes to the command line and retry.\n"
)
_BUSY = (
    "{} currently being used by one or more other processes (e.g., Fabric Manager, CUDA application, graphics application "
    "such as an X server, or a monitoring application such as another instance of nvidia-smi). Please first kill all "
    "processes using {} and all compute applications running in the system.\n"
)


def _in_use(bus_ids: list[str]) -> str:
    lines = "".join(f"  GPU {bus_id}: {errors.text(errors.IN_USE)}\n" for bus_id in bus_ids)
    count, which = (
        ("1 device is", "this device") if len(bus_ids) == 1 else (f"{len(bus_ids)} devices are", "these devices")
    )
    return f"The following GPUs could not be reset:\n{lines}\n" + _BUSY.format(count, which)


def gpu_reset(write: Callable[[str], object], devices: list[Device], _option: str, _value: str, lie: bool) -> None:
    names = {device.index(): device.bus_id() for device in devices}
    answer = _machine.reset(list(names), lie)
    for index in answer.unsupported[:1]:
        raise Stop(f"Resetting GPU {names[index]} is not supported.\n", errors.NOT_SUPPORTED)
    for index in answer.forbidden[:1]:
        code = errors.NO_PERMISSION
        raise Stop(f"Unable to reset GPU {names[index]}: {errors.text(code)}\n", errors.status(code))
    if answer.missing:
        raise Stop(_NOT_ALONE + ",".join(map(str, answer.missing)) + "\n", 255)
    for index in answer.done:
        write(f"GPU {names[index]} was successfully reset.\n")
    if answer.busy:
        raise Stop(_in_use([names[index] for index in answer.busy]), 255)
    write("All done.\n")
