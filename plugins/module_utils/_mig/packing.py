# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. Which instances NVIDIA's mig-parted makes of the devices that its files count. Pure functions.

Keys of mig-devices are profiles; a smaller compute instance is 1c.3g.20gb. mig-parted v0.15 puts each compute instance beside the one before it,
into the same GPU instance, as long as there is room.
"""

from __future__ import annotations

import re
import typing as t

from .._errors import BadOption
from . import layout

_DEVICE = re.compile(r"^(?:([1-9])c\.)?(([1-9])g\.[1-9][0-9]*gb(?:[+-][a-z][a-z.]*)*)$")
_MOST = 64  # far more than any card takes

Raw = t.Mapping[str, t.Any]


class Device(t.NamedTuple):
    """A key of mig-devices: compute slices, the GPU instance's profile and its slices."""

    slices: int
    profile: str
    room: int


def instances(devices: Raw, place: str) -> list[dict[str, t.Any]]:
    """Return entries of ``instances``, in the file's order of profiles."""
    wholes: dict[str, int] = {}
    parts: dict[str, list[Device]] = {}
    for key, value in devices.items():
        device = read(str(key), place)
        if not is_whole(value) or not 0 <= value <= _MOST:
            raise BadOption(f"{place}.{key}", value, f"is no number of devices from 0 to {_MOST}")
        parts.setdefault(device.profile, [])
        if device.slices == device.room:
            wholes[device.profile] = wholes.get(device.profile, 0) + value
        else:
            parts[device.profile] += [device] * value
    entries: list[dict[str, t.Any]] = []
    for profile, smaller in parts.items():
        if wholes.get(profile):
            entries.append({"profile": profile, "count": wholes[profile], **_whole(profile, place)})
        for names in _pack(smaller):
            if entries and entries[-1].get("compute_instances") == names and entries[-1]["profile"] == profile:
                entries[-1]["count"] += 1
            else:
                entries.append({"profile": profile, "count": 1, "compute_instances": names})
    return entries


def read(key: str, place: str) -> Device:
    """Return what a key of mig-devices means."""
    parts = _DEVICE.match(layout.clean_profile(key))
    if not parts or int(parts.group(1) or 0) > int(parts.group(3)):
        raise BadOption(place, key, "is no MIG device; they are called like 1g.5gb, 1g.5gb+me or 1c.3g.20gb")
    room = int(parts.group(3))
    return Device(int(parts.group(1) or room), parts.group(2), room)


def is_whole(value: t.Any) -> bool:
    """Whether a value is a whole number; Python takes True for one."""
    return isinstance(value, int) and not isinstance(value, bool)


def _whole(profile: str, place: str) -> dict[str, t.Any]:
    """Layouts take any compute instances where none are named, mig-parted only the one that fills the GPU instance."""
    return {"compute_instances": [profile]} if read(profile, place).room > 1 else {}


def _pack(devices: t.Sequence[Device]) -> list[list[str]]:
    """Return the compute instances of each GPU instance, largest first, each beside the one before it while there is room."""
    packed: list[list[str]] = []
    left = 0
    for device in sorted(devices, key=lambda one: -one.slices):
        if device.slices > left:
            packed.append([])
            left = device.room
        packed[-1].append(f"{device.slices}c.{device.profile}")
        left -= device.slices
    return packed
