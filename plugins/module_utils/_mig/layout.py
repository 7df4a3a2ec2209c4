# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. What a task asks of MIG: options made into checked values, and met with the cards. No I/O."""

from __future__ import annotations

import re
import typing as t

from .. import _selection
from .._errors import BadOption, CommandFailed, DoesNotFit
from .._gpu import Gpu

_TRUE = ("true", "yes", "on", "1")
_FALSE = ("false", "no", "off", "0")
_LAYOUT = ("gpus", "enabled", "instances")
_INSTANCE = ("profile", "count", "start", "compute_instances")
_MOST = 64  # far more than any card takes


class InstanceWish(t.NamedTuple):
    """GPU instances of one kind that shall be there. ``compute`` is empty where any compute instance will do."""

    option: str
    profile: str
    number: int = 1
    start: int | None = None
    compute: tuple[str, ...] = ()


class Layout(t.NamedTuple):
    """How cards shall be cut. ``instances`` is None where only the mode is asked for."""

    option: str
    gpus: tuple[str, ...]
    enabled: bool = True
    instances: tuple[InstanceWish, ...] | None = None


class Protected(t.NamedTuple):
    """An instance that must stay: by a MIG device's UUID (lower case), or by a card's UUID and the id of a GPU instance."""

    text: str
    device: str | None = None
    card: str | None = None
    instance: int | None = None


def parse(raw: t.Sequence[t.Mapping[str, t.Any]]) -> list[Layout]:
    """Return the checked layouts of option ``layouts``. Raises BadOption at the first value that is not usable."""
    return [_parse_one(entry, f"layouts[{number}]") for number, entry in enumerate(raw)]


def choose(layouts: t.Sequence[Layout], gpus: t.Sequence[Gpu]) -> list[tuple[Gpu, Layout]]:
    """Return each card that is named with its layout, in order of index; fail on a card in two layouts or without MIG.

    ``all`` means the cards that can be cut, where cutting is what is asked.
    """
    chosen: dict[int, tuple[Gpu, Layout]] = {}
    for layout in layouts:
        option = f"{layout.option}.gpus"
        for gpu in _able(layout, _selection.choose(layout.gpus, gpus, option)):
            if gpu.index in chosen:
                other = chosen[gpu.index][1].option
                raise BadOption(
                    option, ", ".join(layout.gpus), f"{gpu.label} already stands in {other}; a card has one layout"
                )
            if gpu.mig is None:
                raise CommandFailed(f"{layout.option}: the driver cannot tell the MIG mode of {gpu.label}")
            if layout.enabled and not gpu.mig.capable:
                raise DoesNotFit(f"{layout.option}: {gpu.label} has no MIG mode; leave it out, or choose another card")
            chosen[gpu.index] = (gpu, layout)
    return [chosen[index] for index in sorted(chosen)]


def left_out(layouts: t.Sequence[Layout], gpus: t.Sequence[Gpu]) -> list[str]:
    """Return which cards ``all`` did not mean, and why."""
    told = []
    for layout in layouts:
        if layout.gpus == (_selection.ALL,):
            told += [f"{gpu.label} was left out: {gpu.error}" for gpu in gpus if gpu.error]
            healthy = [gpu for gpu in gpus if not gpu.error]
            able = _able(layout, healthy)
            told += [f"{gpu.label} was left out: it has no MIG mode" for gpu in healthy if gpu not in able]
    return told


def _able(layout: Layout, gpus: list[Gpu]) -> list[Gpu]:
    if layout.gpus != (_selection.ALL,) or not layout.enabled:
        return gpus
    # Where none can be cut, that is the error.
    return [gpu for gpu in gpus if gpu.mig is None or gpu.mig.capable] or gpus


def protect(names: t.Sequence[str], gpus: t.Sequence[Gpu]) -> list[Protected]:
    """Return what option ``protect`` names. Raises BadOption for what names nothing that could be there."""
    return [_parse_protected(name.strip(), gpus) for name in names if name.strip()]


def _parse_protected(name: str, gpus: t.Sequence[Gpu]) -> Protected:
    # MIG-GPU-<uuid>/<GPU instance>/<compute instance> is what drivers before 470 call a MIG device.
    old = re.match(r"^MIG-(GPU-[^/]+)/([0-9]+)/[0-9]+$", name, re.IGNORECASE)
    if re.match(r"^MIG-[0-9a-f-]{36}$", name, re.IGNORECASE):
        return Protected(name, device=name.lower())
    card, slash, instance = (old.group(1), "/", old.group(2)) if old else name.rpartition("/")
    card, instance = card.strip(), instance.strip()
    if not slash or not re.match(r"^[0-9]{1,3}$", instance):
        raise BadOption(
            "protect",
            name,
            "is no MIG device (UUID MIG-...), and no GPU with the id of a GPU instance (0/13, GPU-.../13)",
        )
    _selection.clean([card], "protect")
    gpu = _selection.find(card, gpus)
    if gpu is None:
        raise BadOption("protect", name, f"there is no GPU {card} on this host")
    return Protected(name, card=gpu.uuid, instance=int(instance))


def clean_profile(value: t.Any) -> str:
    """Return a profile's name as this collection compares it: lower case, without the word MIG that nvidia-smi prints."""
    return str(value).strip().lower().removeprefix("mig ").lstrip()


def nearest(name: str, names: t.Sequence[str]) -> str:
    """Return the one of ``names`` that a person may have meant."""
    import difflib  # here, since only a mistake needs it, and loading it takes a task longer than to plan a card

    return difflib.get_close_matches(name, names, n=1, cutoff=0)[0]


def _parse_one(entry: t.Any, option: str) -> Layout:
    _refuse_unknown(entry, _LAYOUT, option, "{gpus: [0], instances: [{profile: 1g.5gb, count: 7}]}")
    if _missing(entry.get("gpus")) and not isinstance(entry.get("gpus"), str):
        raise BadOption(f"{option}.gpus", "", "is missing; give indices, UUIDs, PCI addresses, or 'all'")
    gpus = tuple(_selection.clean(_as_list(entry["gpus"], f"{option}.gpus"), f"{option}.gpus"))
    enabled = _parse_switch(entry.get("enabled"), f"{option}.enabled")
    raw = entry.get("instances")
    if _missing(raw):
        return Layout(option, gpus, enabled)
    if not isinstance(raw, (list, tuple)):
        raise BadOption(f"{option}.instances", raw, "is no list; give entries like {profile: 1g.5gb, count: 7}")
    wishes = tuple(_parse_wish(wish, f"{option}.instances[{number}]") for number, wish in enumerate(raw))
    if wishes and not enabled:
        raise BadOption(
            f"{option}.instances",
            ", ".join(wish.profile for wish in wishes),
            "cannot be there with enabled: false; drop instances, or set enabled: true",
        )
    _refuse_same_place(wishes)
    return Layout(option, gpus, enabled, wishes)


def _refuse_unknown(entry: t.Any, known: t.Sequence[str], option: str, example: str) -> None:
    """The module's own options are checked by Ansible already; files and filters bring others."""
    if not isinstance(entry, t.Mapping):
        raise BadOption(option, entry, f"is no entry; give one like {example}")
    unknown = sorted(str(key) for key in set(entry) - set(known))
    if unknown:
        raise BadOption(option, ", ".join(unknown), f"is not known here; there are: {', '.join(known)}")


def _parse_wish(entry: t.Any, option: str) -> InstanceWish:
    _refuse_unknown(entry, _INSTANCE, option, "{profile: 1g.5gb, count: 7}")
    profile = _parse_profile(entry.get("profile"), f"{option}.profile")
    number = 1 if _missing(entry.get("count")) else _parse_number(entry["count"], f"{option}.count", 1, _MOST)
    start = None if _missing(entry.get("start")) else _parse_number(entry["start"], f"{option}.start", 0, _MOST)
    if start is not None and number != 1:
        raise BadOption(
            f"{option}.count", number, "with start there is one place, so one instance; drop count or start"
        )
    return InstanceWish(option, profile, number, start, _parse_compute(entry.get("compute_instances"), option))


def _parse_profile(value: t.Any, option: str) -> str:
    name = "" if value is None else clean_profile(value)
    if not name:
        raise BadOption(option, "", "is missing; give a profile's name, e.g. 1g.5gb (nvidia-smi mig -lgip lists them)")
    if re.match(r"^[0-9]+(:[0-9]+)?$", name):
        raise BadOption(
            option,
            value,
            "is an id, and ids differ between the cards of one node; give the profile's name, e.g. 1g.5gb",
        )
    return name


def _parse_compute(value: t.Any, option: str) -> tuple[str, ...]:
    if _missing(value):
        return ()
    names = tuple(clean_profile(name) for name in _as_list(value, f"{option}.compute_instances"))
    if not all(names) or not names:
        raise BadOption(
            f"{option}.compute_instances",
            value,
            "names no compute instance; give names like 1c.3g.20gb, or leave it out for the one that fills the GPU instance",
        )
    for name in names:
        if not re.match(r"^[^:]+(:[0-9]{1,2})?$", name):
            raise BadOption(
                f"{option}.compute_instances", name, "is no name, and no name with a start like 1c.3g.20gb:2"
            )
    return names


def _refuse_same_place(wishes: t.Sequence[InstanceWish]) -> None:
    seen: dict[tuple[str, int], str] = {}
    for wish in wishes:
        if wish.start is None:
            continue
        place = (wish.profile, wish.start)
        if place in seen:
            raise BadOption(f"{wish.option}.start", wish.start, f"{wish.profile} already stands there by {seen[place]}")
        seen[place] = wish.option


def _missing(value: t.Any) -> bool:
    """An empty string is what a survey delivers for a question that was not answered."""
    return value is None or value == ""


def _as_list(value: t.Any, option: str) -> list[t.Any]:
    """Ansible itself takes a comma list for a list."""
    if isinstance(value, (list, tuple)):
        return list(value)
    if isinstance(value, (str, int)) and not isinstance(value, bool):
        return str(value).split(",")
    raise BadOption(option, value, "is no list")


def _parse_switch(value: t.Any, option: str) -> bool:
    if _missing(value):
        return True
    text = str(value).strip().lower()
    if text not in _TRUE + _FALSE:
        raise BadOption(option, value, "is neither true nor false")
    return text in _TRUE


def _parse_number(value: t.Any, option: str, least: int, most: int) -> int:
    text = str(value).strip()
    if not (text.isascii() and text.isdigit() and len(text) < 10 and least <= int(text) <= most):
        raise BadOption(option, value, f"is no whole number from {least} to {most}")
    return int(text)
