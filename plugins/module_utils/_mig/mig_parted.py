# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. Configurations of NVIDIA's mig-parted (version v1) as layouts, and layouts as those. Pure functions.

Keys of mig-devices are profiles; a smaller compute instance is 1c.3g.20gb. mig-parted v0.15 puts each compute instance beside the one before it,
into the same GPU instance, as long as there is room.
"""

from __future__ import annotations

import re
import typing as t

from .._errors import BadOption
from . import layout

VERSION = "v1"
_FIELDS = {"device-filter", "devices", "mig-enabled", "mig-devices"}
_DEVICE = re.compile(r"^(?:([1-9])c\.)?(([1-9])g\..+)$")

Raw = t.Mapping[str, t.Any]


class Device(t.NamedTuple):
    """A key of mig-devices: compute slices, the GPU instance's profile and its slices."""

    slices: int
    profile: str
    room: int


def from_v1(data: t.Any, name: str | None, filters: t.Mapping[str, t.Any]) -> list[dict[str, t.Any]]:
    """Return the layouts of a configuration. ``filters`` says which GPUs a device-filter means on this host."""
    configs = _configs(data)
    if name is None and len(configs) == 1:
        name = next(iter(configs))
    if name not in configs:
        raise BadOption(
            "config",
            "" if name is None else name,
            f"is no configuration of this file; it has: {', '.join(sorted(configs))}",
        )
    layouts = []
    for number, entry in enumerate(configs[name]):
        place = f"mig-configs.{name}[{number}]"
        if not isinstance(entry, t.Mapping):
            raise BadOption(place, entry, "is no entry with devices and mig-enabled")
        converted = _entry_from_v1(entry, place, filters)
        if converted:
            layouts.append(converted)
    return layouts


def to_v1(layouts: t.Any, name: str) -> dict[str, t.Any]:
    """Return a file with one configuration that means the same as the layouts; fail where mig-parted cannot say it."""
    if not isinstance(layouts, (list, tuple)):
        raise BadOption("layouts", layouts, "is no list of layouts")
    return {"version": VERSION, "mig-configs": {name: [_entry_to_v1(entry) for entry in layout.parse(layouts)]}}


def _configs(data: t.Any) -> dict[str, t.Sequence[Raw]]:
    if not isinstance(data, t.Mapping) or not isinstance(data.get("mig-configs"), t.Mapping):
        remedy = "is no mig-parted file; give its content as a mapping (from_yaml) with version and mig-configs"
        raise BadOption("file", data if isinstance(data, str) else type(data).__name__, remedy)
    if data.get("version") != VERSION:
        raise BadOption("version", data.get("version"), f"is not known; this takes files of version {VERSION}")
    return dict(data["mig-configs"])


def _entry_from_v1(entry: Raw, place: str, filters: t.Mapping[str, t.Any]) -> dict[str, t.Any] | None:
    unknown = sorted(set(entry) - _FIELDS)
    if unknown:
        raise BadOption(
            place, ", ".join(unknown), f"is no field of version {VERSION}; it has: {', '.join(sorted(_FIELDS))}"
        )
    gpus = _gpus(entry, place, filters)
    if not gpus:
        return None
    if not isinstance(entry.get("mig-enabled"), bool):
        raise BadOption(f"{place}.mig-enabled", entry.get("mig-enabled"), "is neither true nor false")
    if not entry["mig-enabled"]:
        return {"gpus": gpus, "enabled": False}
    devices = entry.get("mig-devices")
    if not isinstance(devices, t.Mapping):
        raise BadOption(
            f"{place}.mig-devices", devices, "is missing; mig-parted wants it where mig-enabled is true, {} for none"
        )
    return {"gpus": gpus, "enabled": True, "instances": _instances(devices, f"{place}.mig-devices")}


def _gpus(entry: Raw, place: str, filters: t.Mapping[str, t.Any]) -> list[t.Any]:
    devices = entry.get("devices")
    if devices == "all":
        gpus: list[t.Any] = ["all"]
    elif isinstance(devices, (list, tuple)) and all(_is_whole(device) for device in devices):
        gpus = list(devices)
    else:
        raise BadOption(f"{place}.devices", devices, "is neither 'all' nor a list of indices")
    wanted = entry.get("device-filter")
    if not wanted:
        return gpus
    meant: list[t.Any] = []
    for one in wanted if isinstance(wanted, (list, tuple)) else [wanted]:
        if one not in filters:
            raise BadOption(
                f"{place}.device-filter",
                one,
                "cannot be carried over: layouts name cards, not models; say with device_filters which GPUs of the host it means, e.g. "
                f"device_filters={{'{one}': [0, 1]}} ([] for none)",
            )
        meant += filters[one]
    if gpus == ["all"]:
        return list(dict.fromkeys(meant))
    return [gpu for gpu in gpus if str(gpu) in {str(one) for one in meant}]


def _is_whole(value: t.Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _instances(devices: Raw, place: str) -> list[dict[str, t.Any]]:
    """Return entries of ``instances``, in the file's order of profiles."""
    wholes: dict[str, int] = {}
    parts: dict[str, list[Device]] = {}
    for key, value in devices.items():
        device = _device(str(key), place)
        if not _is_whole(value) or value < 0:
            raise BadOption(f"{place}.{key}", value, "is no number of devices")
        parts.setdefault(device.profile, [])
        if device.slices == device.room:
            wholes[device.profile] = wholes.get(device.profile, 0) + value
        else:
            parts[device.profile] += [device] * value
    entries: list[dict[str, t.Any]] = []
    for profile, smaller in parts.items():
        if wholes.get(profile):
            entries.append({"profile": profile, "count": wholes[profile]})
        for names in _pack(smaller):
            if entries and entries[-1].get("compute_instances") == names and entries[-1]["profile"] == profile:
                entries[-1]["count"] += 1
            else:
                entries.append({"profile": profile, "count": 1, "compute_instances": names})
    return entries


def _device(key: str, place: str) -> Device:
    parts = _DEVICE.match(layout.clean_profile(key))
    if not parts or int(parts.group(1) or 0) > int(parts.group(3)):
        raise BadOption(place, key, "is no MIG device; they are called like 1g.5gb, 1g.5gb+me or 1c.3g.20gb")
    room = int(parts.group(3))
    return Device(int(parts.group(1) or room), parts.group(2), room)


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


def _entry_to_v1(entry: layout.Layout) -> dict[str, t.Any]:
    named = [gpu for gpu in entry.gpus if not gpu.isdigit()]
    if named and named != ["all"]:
        raise BadOption(
            f"{entry.option}.gpus",
            ", ".join(named),
            "cannot be said in mig-parted's files, which know indices and 'all'; give indices",
        )
    devices: t.Any = "all" if named else [int(gpu) for gpu in entry.gpus]
    if not entry.enabled:
        return {"devices": devices, "mig-enabled": False}
    if entry.instances is None:
        raise BadOption(
            f"{entry.option}.instances",
            "",
            "is left out (only the mode is asked for), and mig-parted's files always say the instances, too; give instances, [] for none",
        )
    counts: dict[str, int] = {}
    for wish in entry.instances:
        if wish.start is not None:
            raise BadOption(
                f"{wish.option}.start",
                wish.start,
                "cannot be said in mig-parted's files, it chooses the places itself; drop start",
            )
        for name in wish.compute or (wish.profile,):
            counts[name] = counts.get(name, 0) + wish.number
    _refuse_other_packing(entry, counts)
    return {"devices": devices, "mig-enabled": True, "mig-devices": counts}


def _refuse_other_packing(entry: layout.Layout, counts: Raw) -> None:
    """mig-parted's files count compute instances and do not say which go into one GPU instance."""
    wished = [
        (wish.profile, tuple(sorted(wish.compute or (wish.profile,))))
        for wish in entry.instances or ()
        for _number in range(wish.number)
    ]
    packed = [
        (one["profile"], tuple(sorted(one.get("compute_instances") or (one["profile"],))))
        for one in _instances(counts, entry.option)
        for _number in range(one["count"])
    ]
    if sorted(wished) != sorted(packed):
        raise BadOption(
            f"{entry.option}.instances",
            ", ".join(counts),
            "cannot be said in mig-parted's files: it would put these compute instances into GPU instances in another way; "
            "fill each GPU instance before the next",
        )
