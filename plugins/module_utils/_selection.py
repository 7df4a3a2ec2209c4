# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. Which GPUs an option names: pure functions on values."""

from __future__ import annotations

import re
import typing as t

from ._errors import BadOption, GpuLost, NoGpu
from ._gpu import Gpu, kernel_pci

ALL = "all"
_PCI = re.compile(r"^([0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}(\.[0-7])?$", re.IGNORECASE)
_NUMBER = re.compile(r"^-?[0-9]+(\.[0-9]+)?$")
_HIGHEST_INDEX = 63


def clean(tokens: t.Sequence[t.Any], option: str) -> list[str]:
    """Return the spellings of ``tokens`` without blanks; fail on what can never name a GPU, before any driver is asked."""
    if not tokens:
        raise BadOption(option, "[]", "names no GPU; give an index, a UUID, a PCI address, or 'all'")
    names = [str(token).strip() for token in tokens]
    for name in names:
        _check_spelling(name, option)
    if ALL in names and len(names) > 1:
        raise BadOption(option, ", ".join(names), "'all' stands alone; drop it or drop the others")
    return names


def _check_spelling(name: str, option: str) -> None:
    if not name:
        raise BadOption(option, "", "is empty; give an index, a UUID, a PCI address, or 'all'")
    if _NUMBER.match(name):
        if "." in name or int(name) > _HIGHEST_INDEX:
            meant = " or ".join(_sexagesimal(name))
            raise BadOption(
                option,
                name,
                f"is no GPU index; YAML reads an unquoted PCI address as a number: if {meant} is meant, write it in quotes",
            )
        if int(name) < 0:
            raise BadOption(option, name, "an index counts from 0")
    elif name.upper().startswith("MIG-"):
        raise BadOption(
            option,
            name,
            "names a MIG instance; this option takes whole GPUs (index, UUID GPU-..., PCI address, or 'all')",
        )
    elif not (name.upper().startswith("GPU-") or _PCI.match(name) or name == ALL):
        raise BadOption(option, name, "is no index, UUID (GPU-...), PCI address (0000:07:00.0), or 'all'")


def _sexagesimal(number: str) -> list[str]:
    """Undo what YAML 1.1 does to 07:00.0, a number to base 60; 81:00.0 and 0001:21:00.0 become the same one."""
    whole, _dot, decimals = number.lstrip("-").partition(".")
    function = decimals if re.match(r"^[0-7]$", decimals) else "0"
    minutes, seconds = divmod(int(whole), 60)
    addresses = [f'"{minutes:02d}:{seconds:02d}.{function}"'] if minutes < 100 else []
    if minutes >= 60:
        addresses.append(f'"{minutes // 60:04d}:{minutes % 60:02d}:{seconds:02d}.{function}"')
    return addresses


def key(name: str) -> str:
    """Return the one spelling that all spellings of a cleaned index, UUID or PCI address share."""
    if name.isdigit():
        return str(int(name))
    return kernel_pci(name) if _PCI.match(name) else name.lower()


def find(name: str, gpus: t.Sequence[Gpu]) -> Gpu | None:
    """Return the GPU that ``name`` (index, UUID or PCI address) means, or None."""
    if name.isdigit():
        return next((gpu for gpu in gpus if gpu.index == int(name)), None)
    if _PCI.match(name):
        return next((gpu for gpu in gpus if gpu.pci_bus_id == kernel_pci(name)), None)
    return next((gpu for gpu in gpus if gpu.uuid and gpu.uuid.lower() == name.lower()), None)


def choose(names: t.Sequence[str], gpus: t.Sequence[Gpu], option: str) -> list[Gpu]:
    """Return the GPUs that cleaned ``names`` mean, in order of index. ``all`` means those that answer.

    Raises NoGpu for an unknown GPU, BadOption for the same GPU in two spellings, GpuLost for a named GPU that does not answer.
    """
    if list(names) == [ALL]:
        healthy = [gpu for gpu in gpus if not gpu.error]
        if not healthy:
            raise NoGpu(f"{option}: all: this host has no GPU that answers{_list(gpus)}")
        return healthy
    chosen: dict[int, str] = {}
    result: list[Gpu] = []
    for name in names:
        gpu = find(name, gpus)
        if gpu is None:
            raise NoGpu(f"{option}: '{name}': there is no such GPU on this host{_list(gpus)}", option=option)
        if gpu.index in chosen:
            raise BadOption(option, f"{chosen[gpu.index]}, {name}", f"both name {gpu.label}; name each GPU once")
        if gpu.error:
            raise GpuLost(
                f"{option}: '{name}': {gpu.label} does not answer: {gpu.error}; leave it out, or reset or reboot",
                option=option,
            )
        chosen[gpu.index] = name
        result.append(gpu)
    return sorted(result, key=lambda gpu: gpu.index)


def _list(gpus: t.Sequence[Gpu]) -> str:
    if not gpus:
        return "; the driver shows none"
    return "; there are: " + ", ".join(gpu.label + (f" [{gpu.error}]" if gpu.error else "") for gpu in gpus)
