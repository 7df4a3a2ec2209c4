# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. What this collection needs from a GPU driver. A backend never retries and never decides."""

from __future__ import annotations

import abc
import typing as t

from .._errors import GpuLost, InUse, PermissionMissing, SharingError
from .._gpu import Gpu, Mig, System
from .._instance import ComputeProfile, GpuInstance, Placement, Profile

_REMEDIES: dict[type[SharingError], str] = {
    PermissionMissing: "run as root (become: true)",
    InUse: "end the processes that use it",
    GpuLost: "reset the GPU or reboot the host",
}

# Why a driver took a MIG mode but could not activate it at once: nvmlDeviceSetMigMode's activation status by its NVML code.
PENDING = {3: "not supported", 10: "timeout", 16: "gpu requires reset", 19: "in use by another client"}


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


class MigDriver(Driver):
    """A driver that also cuts GPUs."""

    @abc.abstractmethod
    def reopen(self) -> None:
        """Take hold of the driver again after ``close``."""

    @abc.abstractmethod
    def set_persistence_mode(self, gpu: Gpu, on: bool) -> None:
        """Ask for persistence mode on or off."""

    @abc.abstractmethod
    def mig_mode(self, gpu: Gpu) -> Mig:
        """Return the MIG mode that ``gpu`` has now and after a reset."""

    @abc.abstractmethod
    def set_mig_mode(self, gpu: Gpu, on: bool) -> str | None:
        """Ask for MIG mode on or off; where it is only pending, return why in the words of ``PENDING`` or in the driver's own, else None."""

    @abc.abstractmethod
    def mig_profiles(self, gpu: Gpu) -> tuple[Profile, ...]:
        """Return the kinds of GPU instances that ``gpu`` offers, in the driver's order."""

    @abc.abstractmethod
    def instances(self, gpu: Gpu) -> tuple[GpuInstance, ...]:
        """Return the GPU instances of ``gpu`` with their compute instances, in order of place."""

    @abc.abstractmethod
    def compute_profiles(self, gpu: Gpu, instance: int) -> tuple[ComputeProfile, ...]:
        """Return the kinds of compute instances that a GPU instance offers, with their places where the driver tells these."""

    @abc.abstractmethod
    def create_gpu_instance(self, gpu: Gpu, profile: Profile, placement: Placement) -> int:
        """Create a GPU instance at a place and return its id."""

    @abc.abstractmethod
    def destroy_gpu_instance(self, gpu: Gpu, instance: int) -> None:
        """Destroy a GPU instance that has no compute instance."""

    @abc.abstractmethod
    def create_compute_instance(
        self, gpu: Gpu, instance: int, profile: ComputeProfile, placement: Placement | None
    ) -> int:
        """Create a compute instance, at the driver's choice where ``placement`` is None, and return its id."""

    @abc.abstractmethod
    def destroy_compute_instance(self, gpu: Gpu, instance: int, compute_instance: int) -> None:
        """Destroy a compute instance that nobody uses."""
