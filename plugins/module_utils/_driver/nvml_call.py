# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. One call into NVML, and what its return code stands for (nvml.h: nvmlReturn_t)."""

from __future__ import annotations

import typing as t

from .._errors import CommandFailed, GpuLost, InUse, NotSupported, PermissionMissing, SharingError
from .interface import refusal

try:
    import pynvml
except ImportError:
    pynvml = None


def lack(binding: t.Any) -> str:
    """Return what is wrong with the binding; older ones than 11.515 lack functions, and give bytes for text."""
    if binding is None:
        return "is not installed"
    return "" if hasattr(binding, "convertStrBytes") else "is older than 11.515"


PYNVML_LACK = lack(pynvml)
T = t.TypeVar("T")

NO_SUCH_FUNCTION = (3, 13)  # not supported, function not found: this GPU or this driver has no such thing
# not supported, size, function not found, argument version, deprecated, unknown: the value is unknown
_UNREADABLE = (3, 7, 13, 25, 26, 999)
# invalid argument, not supported, no permission, not found, in use, insufficient resources: nothing was done
_REFUSED = (2, 3, 4, 6, 19, 23)
_LOST = (15, 16, 28)  # lost, reset required, in bad state


def call(action: str, function: t.Callable[[], T]) -> T:
    """Call NVML and turn its refusal into an error that says what was attempted."""
    try:
        return function()
    except pynvml.NVMLError as exc:
        number = code(exc)
        error = refusal(kind(number), f"Cannot {action}: {exc}", nvml_code=number)
        error.certain = number in _REFUSED
        raise error from exc


def kind(number: int) -> type[SharingError]:
    """Return which error an NVML return code stands for."""
    kinds: dict[int, type[SharingError]] = {3: NotSupported, 4: PermissionMissing, 19: InUse}
    return GpuLost if number in _LOST else kinds.get(number, CommandFailed)


def code(error: pynvml.NVMLError) -> int:
    return int(getattr(error, "value", 999))


def optional(function: t.Callable[..., T], *arguments: t.Any) -> T | None:
    """Return None where this driver or this GPU cannot tell."""
    try:
        return function(*arguments)
    except pynvml.NVMLError as exc:
        if code(exc) in _UNREADABLE:
            return None
        raise
