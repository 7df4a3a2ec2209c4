# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. Layouts as a configuration of NVIDIA's mig-parted (version v1). Pure functions."""

from __future__ import annotations

import re
import typing as t

from .. import _selection
from .._errors import BadOption
from .._gpu import Gpu, kernel_pci
from .._instance import Profile
from . import compute, layout, packing
from .mig_parted import VERSION, Card, Raw, kind, refuse_twice


def to_v1(layouts: t.Any, name: t.Any, host: t.Any = None, drop_starts: bool = False) -> dict[str, t.Any]:
    """Return a file with one configuration that means the same as the layouts; fail where mig-parted cannot say it.

    ``host`` are the GPUs of a module's result, which tell the indices of those that are named otherwise.
    """
    if not isinstance(name, str) or not name.strip():
        raise BadOption("config", name, "is no name of a configuration")
    if not isinstance(layouts, (list, tuple)):
        raise BadOption("layouts", layouts, "is no list of layouts")
    if not layouts:
        raise BadOption("layouts", layouts, "has no layout, and mig-parted wants at least one entry in a configuration")
    cards = _read_host(host)
    entries = []
    named: dict[str, str] = {}
    for entry in layout.parse(layouts):
        devices = _indices(entry, cards)
        refuse_twice(devices, f"{entry.option}.gpus", named)
        entries.append(_entry_to_v1(entry, devices, drop_starts))
    return {"version": VERSION, "mig-configs": {name: entries}}


def _read_host(raw: t.Any) -> list[Gpu] | None:
    if raw is None or raw == "":
        return None
    remedy = "is no list of GPUs; give gpus of the result of nvidia_mig or nvidia_gpu_info"
    if not isinstance(raw, (list, tuple)):
        raise BadOption("gpus", kind(raw), remedy)
    gpus = []
    for number, entry in enumerate(raw):
        index = str(entry.get("index")) if isinstance(entry, t.Mapping) else ""
        if index == "-1":  # a lost GPU, of which only the UUID is known
            continue
        if not re.match(r"^[0-9]{1,4}$", index):
            raise BadOption(f"gpus[{number}]", entry, "is no GPU with an index; " + remedy.partition("; ")[2])
        uuid, pci = entry.get("uuid"), entry.get("pci_bus_id")
        gpus.append(Gpu(int(index), uuid=str(uuid) if uuid else None, pci_bus_id=kernel_pci(str(pci)) if pci else None))
    return gpus


def _indices(entry: layout.Layout, host: t.Sequence[Gpu] | None) -> list[Card]:
    """Return the cards of a layout as mig-parted can name them."""
    indices: list[Card] = []
    for name in entry.gpus:
        gpu = None if host is None or name.isdigit() else _selection.find(name, host)
        if name.isdigit():
            indices.append(int(name))
        elif name == _selection.ALL:
            indices.append(name)
        elif gpu:
            indices.append(gpu.index)
        elif host is None:
            raise BadOption(
                f"{entry.option}.gpus",
                name,
                "cannot be said in mig-parted's files, which know indices and 'all'; give indices, or give the filter "
                "gpus of the result of nvidia_mig, which tell the index",
            )
        else:
            raise BadOption(
                f"{entry.option}.gpus",
                name,
                f"is not in gpus, which has: {', '.join(gpu.label for gpu in host) or 'none'}",
            )
    return indices


def _entry_to_v1(entry: layout.Layout, gpus: list[Card], drop_starts: bool) -> dict[str, t.Any]:
    devices: t.Any = "all" if gpus == ["all"] else gpus
    if not entry.enabled:
        return {"devices": devices, "mig-enabled": False}
    if entry.instances is None:
        raise BadOption(
            f"{entry.option}.instances",
            "",
            "is left out (only the mode is asked for), and mig-parted's files always say the instances, too; give instances, [] for none",
        )
    counts: dict[str, int] = {}
    wished = []
    for wish in entry.instances:
        if wish.start is not None and not drop_starts:
            _refuse_start(f"{wish.option}.start", wish.start)
        names = _compute(wish, drop_starts)
        wished += [(wish.profile, tuple(sorted(names)))] * wish.number
        for name in names:
            counts[name] = counts.get(name, 0) + wish.number
    _refuse_other_packing(f"{entry.option}.instances", wished, counts)
    return {"devices": devices, "mig-enabled": True, "mig-devices": counts}


def _compute(wish: layout.InstanceWish, drop_starts: bool) -> tuple[str, ...]:
    """Return the keys of mig-devices that a wished GPU instance takes."""
    option = f"{wish.option}.compute_instances"
    names = []
    for name in wish.compute:
        size, _colon, start = name.partition(":")
        if start.isdigit() and not drop_starts:
            _refuse_start(option, name)
        device = packing.read(size if start.isdigit() else name, option)
        names.append(device.profile if device.slices == device.room else f"{device.slices}c.{device.profile}")
    room = packing.read(wish.profile, f"{wish.option}.profile").room
    profile = Profile(-1, wish.profile, room, 0, 0, ())
    shares = compute.check(wish._replace(compute=tuple(names)), profile, ())
    return tuple(share.name for share in compute.default(shares, profile))


def _refuse_start(option: str, value: t.Any) -> None:
    raise BadOption(
        option,
        value,
        "cannot be said in mig-parted's files, it chooses the places itself; drop the start, or give the filter drop_starts=true",
    )


def _refuse_other_packing(option: str, wished: t.Sequence[tuple[str, t.Any]], counts: Raw) -> None:
    """mig-parted's files count compute instances and do not say which go into one GPU instance."""
    packed = [
        (one["profile"], tuple(sorted(one.get("compute_instances") or (one["profile"],))))
        for one in packing.instances(counts, option)
        for _number in range(one["count"])
    ]
    if sorted(wished) != sorted(packed):
        raise BadOption(
            option,
            ", ".join(counts),
            "cannot be said in mig-parted's files: it would put these compute instances into GPU instances in another way; "
            "fill each GPU instance before the next",
        )
