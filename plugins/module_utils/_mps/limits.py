# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. Percentages and sizes as the MPS control daemon takes and shows them. Pure functions.

NVIDIA's control program accepts anything and exits 0: 512K becomes 512 MiB, 2.5G becomes 2 MiB, 0 unsets, and the getter
cuts sizes from 1 GiB to whole GiB (transcripts of 535.309.01 and 550.163.01). So values are checked here, and only those are
taken that can be read back.
"""

from __future__ import annotations

import re
import typing as t

from .._errors import BadOption, DoesNotFit

GIB = 1024  # in MiB
FULL = 1000  # tenths of a percent: no limit

_PERCENTAGE = re.compile(r"^[0-9]+(\.[0-9]+)?$")
_SIZE = re.compile(r"^([0-9]+)([MG])$")


class Limits(t.NamedTuple):
    """What a daemon's next servers may use: tenths of a percent of the threads, and (device ordinal, MiB) of pinned memory."""

    tenths: int = FULL
    memory: tuple[tuple[int, int], ...] = ()


def parse_percentage(value: t.Any, option: str) -> int:
    """Return a percentage, 0 < x <= 100, in tenths; the daemon shows one decimal, so no more is taken."""
    text = str(value).strip()
    if not _PERCENTAGE.match(text):
        raise BadOption(option, value, "is no number; give a percentage above 0 and up to 100, without a sign, e.g. 50")
    whole, _dot, decimals = text.partition(".")
    tenths = int(whole) * 10 + int((decimals or "0")[0])
    if decimals.rstrip("0")[1:] and tenths <= FULL:
        shorter = show_percentage(max(tenths, 1))
        raise BadOption(
            option,
            value,
            f"has more than one decimal, and the daemon shows only one, so it could not be read back; give {shorter}",
        )
    if not 0 < tenths <= FULL:
        raise BadOption(option, value, "is out of range; give a percentage above 0 and up to 100")
    return tenths


def show_percentage(tenths: int) -> str:
    """Return a percentage as the daemon shows it: 50.0."""
    return f"{tenths // 10}.{tenths % 10}"


def parse_size(value: t.Any, option: str) -> int:
    """Return a size in MiB. Taken are whole MiB below 1 GiB and whole GiB from there (512M, 8G)."""
    text = str(value).strip().upper()
    match = _SIZE.match(text)
    if not match:
        raise BadOption(
            option, value, "is no size; give whole MiB below 1 GiB or whole GiB from there, e.g. 512M or 8G"
        )
    number, unit = int(match.group(1)), match.group(2)
    mib = number * GIB if unit == "G" else number
    if mib <= 0:
        raise BadOption(option, value, "is no limit; give a size above 0, or leave the limit out")
    if mib > GIB and mib % GIB:
        low = mib // GIB
        raise BadOption(
            option,
            value,
            f"the daemon shows sizes from 1 GiB in whole GiB only, so it could not be read back; give {low}G or {low + 1}G",
        )
    return mib


def show_size(mib: int) -> str:
    """Return a size as the daemon shows it: 512M, 8G."""
    return f"{mib // GIB}G" if mib >= GIB else f"{mib}M"


def read_size(text: str) -> int | None:
    """Return the MiB of a size that the daemon printed, None when it printed none (no limit is set)."""
    match = _SIZE.match(text.strip())
    return None if not match else int(match.group(1)) * (GIB if match.group(2) == "G" else 1)


def parse_clients(value: t.Any, option: str) -> int:
    """Return a number of clients that share a card, at least 1."""
    text = str(value).strip()
    if not re.match(r"^[0-9]+$", text) or int(text) < 1:
        raise BadOption(option, value, "is no number of clients; give a whole number from 1")
    return int(text)


def share_of_threads(clients: int, option: str) -> int:
    """Return 100 / clients in tenths of a percent, rounded down."""
    tenths = FULL // clients
    if tenths < 1:
        raise BadOption(option, clients, "is too many clients: the share of each would be under 0.1 percent")
    return tenths


def share_of_memory(clients: int, total_mib: int, option: str) -> int:
    """Return memory / clients in MiB, rounded down to what can be read back."""
    mib = total_mib // clients
    if mib > GIB:
        mib -= mib % GIB
    if mib < 1:
        raise BadOption(option, clients, f"is too many clients for {total_mib} MiB of memory")
    return mib


def check_fits(mib: int, total_mib: int | None, card: str, option: str) -> None:
    """Refuse a limit that is larger than the card."""
    if total_mib is not None and mib > total_mib:
        raise DoesNotFit(
            f"{option}: {show_size(mib)} is more than {card} has ({total_mib} MiB); give at most that", option=option
        )


def commands(wanted: Limits, current: Limits | None = None) -> list[str]:
    """Return the control commands that lead from ``current`` (None: a fresh daemon) to ``wanted``."""
    lines = []
    if current is None or current.tenths != wanted.tenths:
        lines.append(f"set_default_active_thread_percentage {show_percentage(wanted.tenths)}")
    have = dict(current.memory) if current else {}
    want = dict(wanted.memory)
    for ordinal in sorted(set(have) | set(want)):
        if have.get(ordinal) != want.get(ordinal):
            size = show_size(want[ordinal]) if ordinal in want else "0"  # 0 unsets
            lines.append(f"set_default_device_pinned_mem_limit {ordinal} {size}")
    return lines
