# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. Configurations of NVIDIA's mig-parted (version v1) as layouts. Pure functions."""

from __future__ import annotations

import typing as t

from .. import _selection
from .._errors import BadOption
from . import packing
from .packing import is_whole

VERSION = "v1"
_FIELDS = ("version", "mig-configs")
_ENTRY_FIELDS = ("device-filter", "devices", "mig-enabled", "mig-devices")
_CARDS = "give a list like [0, 1] (indices, UUIDs or PCI addresses), one of these, a comma list, 'all', or [] for none"

Raw = t.Mapping[str, t.Any]
Card = t.Union[int, str]  # an index, or else a UUID, a PCI address or 'all'


class Entry(t.NamedTuple):
    """An entry of a configuration. ``devices`` is None for all."""

    place: str
    devices: tuple[int, ...] | None
    filters: tuple[str, ...]
    enabled: bool
    instances: tuple[dict[str, t.Any], ...]


def from_v1(data: t.Any, name: t.Any, filters: t.Any) -> list[dict[str, t.Any]]:
    """Return the layouts of a configuration. ``filters`` says which GPUs a device-filter means on this host."""
    meant = _read_filters(filters)
    name, raw = _choose(data, name)
    entries = [_read_entry(entry, f"mig-configs.{name}[{number}]") for number, entry in enumerate(raw)]
    _refuse_untold(entries, meant)
    layouts = []
    named: dict[str, str] = {}
    for entry in entries:
        gpus = _gpus(entry, meant)
        refuse_twice(gpus, entry.place, named)
        # A file for nodes of several models has entries for the others, too: mig-parted passes over them.
        if gpus:
            wish = {"instances": list(entry.instances)} if entry.enabled else {}
            layouts.append({"gpus": gpus, "enabled": entry.enabled, **wish})
    return layouts


def _choose(data: t.Any, name: t.Any) -> tuple[str, t.Sequence[t.Any]]:
    """Return the name and the entries of the configuration that is asked for, or of the only one."""
    if not isinstance(data, t.Mapping):
        remedy = "is no mig-parted file; give its content as a mapping (from_yaml) with version and mig-configs"
        raise BadOption("file", kind(data), remedy)
    _refuse_unknown(data, _FIELDS, "file")
    if data.get("version") != VERSION:
        raise BadOption("version", data.get("version"), f"is not known; this takes files of version {VERSION}")
    configs = data.get("mig-configs")
    if not isinstance(configs, t.Mapping) or not configs:
        raise BadOption(
            "mig-configs", kind(configs), "has no configurations; give a mapping of names to lists of entries"
        )
    named = {str(key): value for key, value in configs.items()}
    if name in (None, "") and len(named) == 1:
        name = next(iter(named))
    if str(name) not in named:
        offered = ", ".join(sorted(named))
        raise BadOption("config", "" if name is None else name, f"is no configuration of this file; it has: {offered}")
    entries = named[str(name)]
    if not isinstance(entries, (list, tuple)) or not entries:
        raise BadOption(
            f"mig-configs.{name}", kind(entries), "has no entries; give a list, each with devices and mig-enabled"
        )
    return str(name), entries


def _read_entry(entry: t.Any, place: str) -> Entry:
    if not isinstance(entry, t.Mapping):
        raise BadOption(place, entry, "is no entry with devices and mig-enabled")
    _refuse_unknown(entry, _ENTRY_FIELDS, place)
    enabled = entry.get("mig-enabled")
    if not isinstance(enabled, bool):
        raise BadOption(f"{place}.mig-enabled", enabled, "is neither true nor false")
    return Entry(
        place,
        _read_devices(entry.get("devices"), f"{place}.devices"),
        _read_device_filter(entry.get("device-filter"), f"{place}.device-filter"),
        enabled,
        _read_instances(entry.get("mig-devices"), enabled, f"{place}.mig-devices"),
    )


def _read_devices(raw: t.Any, place: str) -> tuple[int, ...] | None:
    if raw == "all":
        return None
    if not isinstance(raw, (list, tuple)) or not raw or not all(is_whole(one) and one >= 0 for one in raw):
        raise BadOption(place, raw, "is neither 'all' nor a list of indices, [0, 1]")
    return tuple(dict.fromkeys(raw))


def _read_device_filter(raw: t.Any, place: str) -> tuple[str, ...]:
    filters = raw if isinstance(raw, (list, tuple)) else [raw] if raw not in (None, "") else []
    for one in filters:
        if not isinstance(one, str) or not one.strip():
            raise BadOption(
                place, one, "is no device-filter; give one like '0x20B010DE', in quotes, or a list of these"
            )
    return tuple(one.strip() for one in filters)


def _read_instances(raw: t.Any, enabled: bool, place: str) -> tuple[dict[str, t.Any], ...]:
    if not enabled:
        if raw:
            raise BadOption(place, raw, "cannot be there with mig-enabled: false; drop it, or set mig-enabled: true")
        return ()
    if raw is None:
        raise BadOption(place, raw, "is missing; mig-parted wants it where mig-enabled is true, {} for none")
    if not isinstance(raw, t.Mapping):
        raise BadOption(place, raw, "is no mapping of MIG devices to their numbers, like {1g.5gb: 7}, or {} for none")
    return tuple(packing.instances(raw, place))


def _read_filters(raw: t.Any) -> dict[str, dict[str, Card]]:
    """Return what each device-filter means: cards by the spelling that all their spellings share."""
    if raw is None or raw == "":
        return {}
    if not isinstance(raw, t.Mapping):
        raise BadOption("device_filters", raw, "is no dictionary; give one like {'0x20B010DE': [0, 1]}")
    meant: dict[str, dict[str, Card]] = {}
    for key, value in raw.items():
        if not isinstance(key, str):
            problem = "is no device-filter; YAML reads an unquoted 0x20B010DE as a number: write it in quotes"
            raise BadOption("device_filters", key, problem)
        if _same(key) in meant:
            raise BadOption("device_filters", key, "stands there twice, in different spellings; drop one")
        meant[_same(key)] = _read_cards(value, f"device_filters['{key}']")
    return meant


def _read_cards(raw: t.Any, option: str) -> dict[str, Card]:
    tokens = raw if isinstance(raw, (list, tuple)) else [raw]
    if any(isinstance(token, bool) or not isinstance(token, (str, int, float)) for token in tokens) or raw == "":
        raise BadOption(option, raw, f"names no cards; {_CARDS}")
    if isinstance(raw, str):
        tokens = raw.split(",")
    names = _selection.clean(tokens, option) if tokens else []
    # Of several spellings of a card the first one stays.
    cards: dict[str, Card] = {}
    for name in names:
        cards.setdefault(_selection.key(name), int(name) if name.isdigit() else name)
    return cards


def _same(device_filter: str) -> str:
    """Device-filters are hexadecimal numbers: case means nothing."""
    return device_filter.strip().lower()


def _refuse_untold(entries: t.Sequence[Entry], meant: t.Mapping[str, t.Any]) -> None:
    """All at once: files for several models have dozens of device-filters."""
    untold = {one: entry.place for entry in reversed(entries) for one in entry.filters if _same(one) not in meant}
    names = [one for entry in entries for one in entry.filters if one in untold]
    if names:
        raise BadOption(
            f"{untold[names[0]]}.device-filter",
            ", ".join(dict.fromkeys(names)),
            "cannot be carried over: layouts name cards, not models; say with device_filters which GPUs of the host each means, e.g. "
            f"device_filters={{'{names[0]}': [0, 1]}} ([] for none)",
        )


def _gpus(entry: Entry, meant: t.Mapping[str, t.Mapping[str, Card]]) -> list[Card]:
    """Return the cards of an entry: those that its devices and its device-filters both mean."""
    devices = entry.devices
    if not entry.filters:
        return ["all"] if devices is None else list(devices)
    cards = {key: card for one in entry.filters for key, card in meant[_same(one)].items()}
    if _selection.ALL in cards:
        return ["all"] if devices is None else list(devices)
    if devices is None:
        return list(cards.values())
    others = [str(card) for card in cards.values() if not isinstance(card, int)]
    if others:
        raise BadOption(
            f"{entry.place}.devices",
            list(devices),
            f"are indices, and device_filters names {', '.join(others)} for {', '.join(entry.filters)}: whether these are the same cards "
            "cannot be told here; name the cards by index there, too",
        )
    return [index for index in devices if str(index) in cards]


def _refuse_unknown(raw: Raw, known: t.Sequence[str], place: str) -> None:
    unknown = sorted(str(key) for key in set(raw) - set(known))
    if unknown:
        problem = f"is no field of version {VERSION}; it has: {', '.join(sorted(known))}"
        raise BadOption(place, ", ".join(unknown), problem)


def refuse_twice(gpus: t.Sequence[Card], option: str, named: dict[str, str]) -> None:
    """``named`` tells where each card stands so far."""
    for gpu in gpus:
        key = _selection.key(str(gpu))
        other = named.get(key) or named.get(_selection.ALL)
        if key == _selection.ALL and named:
            other = next(iter(named.values()))
        if other == option:
            raise BadOption(option, gpu, "stands there twice; name each GPU once")
        if other:
            raise BadOption(option, gpu, f"already stands in {other}; a card has one layout")
        named[key] = option


def kind(value: t.Any) -> str:
    """Return how a message shows what may be a whole file."""
    if isinstance(value, t.Mapping):
        return "a mapping" if value else "{}"
    if isinstance(value, (list, tuple)):
        return "a list" if value else "[]"
    text = "null" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
