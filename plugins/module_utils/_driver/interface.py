# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. What this collection needs from a GPU driver. A backend never retries and never decides."""

from __future__ import annotations

import abc
import typing as t

from .._errors import GpuLost, InUse, PermissionMissing, SharingError
from .._gpu import Gpu, System

_REMEDIES: dict[type[SharingError], str] = {
    PermissionMissing: "run as root (become: true)",
    InUse: "end the processes that use it",
    GpuLost: "reset the GPU or reboot the host",
}


def refusal(kind: type[SharingError], message: str, **details: t.Any) -> SharingError:
    """Return the error for a refusal of the driver, with what can be done about it."""
    remedy = _REMEDIES.get(kind)
    return kind(f"{message}; {remedy}" if remedy else message, **details)


class Driver(abc.ABC):
    """A way to talk to the driver. Methods return values of ``_gpu`` or raise errors of ``_errors``."""

    backend: str

    @abc.abstractmethod
    def system(self) -> System:
        """Return the versions of the running driver."""

    @abc.abstractmethod
    def gpus(self) -> list[Gpu]:
        """Return every GPU in order of index; one that does not answer carries ``error``."""

    @abc.abstractmethod
    def compute_mode(self, gpu: Gpu) -> str:
        """Return the compute mode that ``gpu`` has now."""

    @abc.abstractmethod
    def set_compute_mode(self, gpu: Gpu, mode: str) -> None:
        """Ask for a compute mode. No error means only that the driver did not refuse: read it back."""

    @abc.abstractmethod
    def close(self) -> None:
        """Let go of the driver."""
