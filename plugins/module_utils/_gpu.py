# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. Frozen values that describe GPUs, and names for the driver's numbers. No I/O."""

from __future__ import annotations

import functools
import re
import typing as t

# nvml.h: nvmlComputeMode_t. EXCLUSIVE_THREAD (1) can still be read from old drivers, but can no longer be set.
COMPUTE_MODE_BY_NUMBER = {0: "default", 1: "exclusive_thread", 2: "prohibited", 3: "exclusive_process"}
NUMBER_BY_COMPUTE_MODE = {name: number for number, name in COMPUTE_MODE_BY_NUMBER.items()}
SETTABLE_COMPUTE_MODES = ("default", "exclusive_process", "prohibited")

# CUDA compute capability (major, minor) from which an architecture begins; the last entry not above the card's is its own.
ARCHITECTURES = (
    ((3, 0), "kepler"),
    ((5, 0), "maxwell"),
    ((6, 0), "pascal"),
    ((7, 0), "volta"),
    ((7, 5), "turing"),
    ((8, 0), "ampere"),
    ((8, 9), "ada"),
    ((9, 0), "hopper"),
    ((10, 0), "blackwell"),
)
VOLTA = (7, 0)

Capability = tuple[int, int]


class Process(t.NamedTuple):
    """A process that holds a context on a GPU."""

    pid: int
    name: str | None
    memory_mib: int | None
    type: str  # C compute, G graphics, M+C client of an MPS server


class Mig(t.NamedTuple):
    """MIG mode of a GPU; ``pending`` differs from ``current`` until a reset or a reboot."""

    capable: bool
    current: bool
    pending: bool


class Gpu(t.NamedTuple):
    """A whole GPU as the driver shows it. ``error`` says why the rest is unknown; None where a value could not be read."""

    index: int  # type: ignore[assignment]  # the field's own word, though tuples have a method of that name
    uuid: str | None = None
    pci_bus_id: str | None = None
    name: str | None = None
    compute_capability: Capability | None = None
    memory_total_mib: int | None = None
    compute_mode: str | None = None
    persistence_mode: bool | None = None
    mig: Mig | None = None
    processes: tuple[Process, ...] = ()
    error: str | None = None

    @property
    def architecture(self) -> str | None:
        """Name of the GPU's architecture in lower case, from its compute capability."""
        if self.compute_capability is None:
            return None
        names = [name for start, name in ARCHITECTURES if start <= self.compute_capability]
        return names[-1] if names else None

    @property
    def label(self) -> str:
        """How messages name this GPU: index, and what else identifies it."""
        return _label(self.index, self.name, self.uuid, self.pci_bus_id)


# Every call of a driver is given a message in case it fails.
@functools.cache
def _label(index: int, name: str | None, uuid: str | None, pci: str | None) -> str:
    if index < 0:  # known by its UUID only: it does not answer
        return f"GPU {uuid}"
    parts = [part for part in (name, uuid, pci) if part]
    return f"GPU {index} ({', '.join(parts)})" if parts else f"GPU {index}"


class System(t.NamedTuple):
    """Versions of the running driver."""

    driver_version: str | None
    nvml_version: str | None
    cuda_version: str | None


def kernel_pci(address: str) -> str:
    """Return a PCI address as the kernel spells it (0000:07:00.0); the driver's own domain has eight digits."""
    match = re.match(r"^(?:([0-9a-fA-F]{1,8}):)?([0-9a-fA-F]{1,2}):([0-9a-fA-F]{1,2})(?:\.([0-7]))?$", address.strip())
    if not match:
        return address.strip().lower()
    domain, bus, device, function = match.groups()
    return f"{int(domain or '0', 16):04x}:{int(bus, 16):02x}:{int(device, 16):02x}.{function or '0'}"
