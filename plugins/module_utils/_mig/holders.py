# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. Who holds a card that has to be let go: processes, their services, kernel modules (proc(5))."""

from __future__ import annotations

import contextlib
import os
import re
import typing as t

from .._gpu import Gpu

PERSISTENCED = "nvidia-persiste"  # as /proc cuts its name
# Programs that hold cards for a living, and the service that an operator stops (NVIDIA MIG User Guide).
SERVICES = {
    "nv-hostengine": "nvidia-dcgm (or dcgm)",
    PERSISTENCED: "nvidia-persistenced",
    "nvsm_core": "nvsm",
    "dcgm-exporter": "dcgm-exporter",
    "nvidia-device-p": "the Kubernetes device plugin",
    "Xorg": "the display server",
}
_BLOCKING_MODULES = ("nvidia_drm",)  # with a display on it, it keeps a card from being reset


class Holder(t.NamedTuple):
    """A process that has a card open."""

    pid: int
    name: str
    service: str | None

    def __str__(self) -> str:
        return f"{self.pid} ({self.name}" + (f", service {self.service}" if self.service else "") + ")"


def open_devices(proc: str = "/proc") -> dict[str, set[int]]:
    """Return which processes have which of NVIDIA's device files open."""
    found: dict[str, set[int]] = {}
    for pid in filter(str.isdigit, _names(proc)):
        for number in _names(f"{proc}/{pid}/fd"):
            target = _target(f"{proc}/{pid}/fd/{number}")
            if target.startswith("/dev/nvidia"):
                found.setdefault(target, set()).add(int(pid))
    return found


def find(gpu: Gpu, devices: t.Mapping[str, t.Collection[int]], proc: str = "/proc") -> list[Holder]:
    """Return who holds ``gpu``: the processes that the driver names, and whoever has its device file open."""
    pids = {process.pid for process in gpu.processes} | set(devices.get(_device(gpu, proc) or "", ()))
    return [describe(pid, proc) for pid in sorted(pids - {os.getpid()})]


def describe(pid: int, proc: str = "/proc") -> Holder:
    """Return what is known of a process."""
    name = _read(f"{proc}/{pid}/comm").strip() or "?"
    return Holder(pid, name, SERVICES.get(name))


def modules(proc: str = "/proc") -> list[str]:
    """Return the loaded kernel modules that keep cards from being reset while something uses them."""
    lines = _read(f"{proc}/modules").splitlines()
    rows = [line.split() for line in lines]
    return [row[0] for row in rows if len(row) > 2 and row[0] in _BLOCKING_MODULES and row[2] != "0"]


def nvswitch(proc: str = "/proc") -> bool:
    """Whether this machine's cards are joined by NVSwitches (the driver lists them)."""
    return bool(_names(f"{proc}/driver/nvidia-nvswitch/devices"))


def _device(gpu: Gpu, proc: str) -> str | None:
    """The device file goes by a minor number, which need not be the index."""
    match = re.search(
        r"^Device Minor:\s*(\d+)", _read(f"{proc}/driver/nvidia/gpus/{gpu.pci_bus_id}/information"), re.MULTILINE
    )
    return f"/dev/nvidia{match.group(1)}" if match else None


def _names(folder: str) -> list[str]:
    """What is in a folder, nothing where it is not there or may not be seen."""
    with contextlib.suppress(OSError):
        return os.listdir(folder)
    return []


def _target(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""  # it ended meanwhile


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as handle:
            return handle.read()
    except OSError:
        return ""
