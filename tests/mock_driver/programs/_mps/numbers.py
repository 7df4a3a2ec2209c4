# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Numbers as NVIDIA's control daemon reads them: with C's atoi, strtod and sscanf, quirks included."""

from __future__ import annotations

import math
import re

_INTEGER = re.compile(r"\s*([+-]?\d+)")
_FLOAT = re.compile(r"\s*([+-]?(?:0[xX][0-9a-fA-F]+|\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?))")
_LIMIT = re.compile(r"\s*([+-]?\d+)(?:\s+([+-]?\d+)([^\s])?)?")
_WORD = 2**64
MEBIBYTE = 2**20
GIBIBYTE = 2**30


def integer(text: str) -> int:
    """atoi: leading digits, else 0."""
    match = _INTEGER.match(text)
    return int(match.group(1)) if match else 0


def is_integer(text: str) -> bool:
    """Whether atoi finds a number at all."""
    return _INTEGER.match(text) is not None


def percentage(text: str) -> float | None:
    """A percentage in (0, 100]; trailing text is ignored ("50%" is 50). None: not valid."""
    match = _FLOAT.match(text)
    if not match:
        return None
    number = match.group(1)
    value = float(int(number, 16)) if "x" in number.lower() else float(number)
    return value if math.isfinite(value) and 0.0 < value <= 100.0 else None


def memory_limit(arguments: str) -> tuple[int, int]:
    """Device and bytes of "DEV VALUE"; what cannot be read is 0, and 0 bytes means: no limit.

    The real one takes digits and one letter: G or g is GiB, anything else MiB ("512K" is 512 MiB, "2.5G" 2 MiB).
    A device that is no number makes the whole reading stop there, so "GPU-... 2G" unsets the limit of device 0.
    """
    match = _LIMIT.match(arguments)
    if not match:
        return 0, 0
    device, value, unit = match.groups()
    if value is None or arguments[match.end(1) : match.end(1) + 1].strip():
        return int(device), 0
    factor = GIBIBYTE if unit in ("G", "g") else MEBIBYTE
    return int(device), int(value) * factor % _WORD


def shown_limit(limit: int) -> str:
    """A limit as the getters print it: whole GiB from 1 GiB up, truncated, else whole MiB."""
    return f"{limit // GIBIBYTE}G" if limit >= GIBIBYTE else f"{limit // MEBIBYTE}M"
