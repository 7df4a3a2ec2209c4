# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. What this collection needs from a GPU driver. A backend never retries and never decides."""

from __future__ import annotations

import abc

from .._gpu import Gpu, System


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
