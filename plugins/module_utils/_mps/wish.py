# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. What a task asks of MPS: options made into checked values. No I/O."""

from __future__ import annotations

import re
import typing as t

from .. import _selection
from .._errors import BadOption
from . import limits

STATES = ("started", "stopped", "absent")
MODES = ("exclusive_process", "unchanged")
LONGEST_PIPE_PATH = 87  # the daemon fails silently from 88 on: sun_path has 108 bytes (535, 550)
CATCH_ALL_PIPE = "/tmp/nvidia-mps"  # NVIDIA's default: every CUDA process of the host uses it
DEFAULT_PIPE_PARENT = "/run/nvidia-mps"
DEFAULT_LOG_PARENT = "/var/log/nvidia-mps"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_LONGEST_NAME = 64


class MemoryWish(t.NamedTuple):
    """A limit of pinned device memory: for one GPU of the daemon, or for all of them."""

    gpu: str
    mib: int


class Wish(t.NamedTuple):
    """One daemon as it shall be. ``gpus`` is empty only for a daemon that shall be stopped or absent."""

    name: str
    gpus: tuple[str, ...]
    state: str
    compute_mode: str
    tenths: int
    memory: tuple[MemoryWish, ...]
    clients: int | None
    pipe_directory: str
    log_directory: str

    @property
    def started(self) -> bool:
        """Whether the daemon shall run."""
        return self.state == "started"


def parse(raw: t.Sequence[t.Mapping[str, t.Any]]) -> list[Wish]:
    """Return the checked wishes of ``daemons``. Raises BadOption at the first value that is not usable."""
    wishes = [_parse_one(entry, f"daemons[{number}]") for number, entry in enumerate(raw)]
    _refuse_shared("name", [(wish.name, wish.name) for wish in wishes])
    _refuse_shared("pipe_directory", [(wish.name, wish.pipe_directory) for wish in wishes])
    return wishes


def _refuse_shared(option: str, pairs: t.Sequence[tuple[str, str]]) -> None:
    seen: dict[str, str] = {}
    for name, value in pairs:
        if value in seen:
            raise BadOption(
                f"daemons: {option}",
                value,
                f"stands twice (daemons {seen[value]} and {name}); each daemon needs its own",
            )
        seen[value] = name


def _parse_one(entry: t.Mapping[str, t.Any], option: str) -> Wish:
    name = _parse_name(entry.get("name"), f"{option}.name")
    state = entry.get("state") or "started"
    gpus = _parse_gpus(entry.get("gpus"), state, f"{option}.gpus")
    clients = _parse_optional(entry.get("clients"), limits.parse_clients, f"{option}.clients")
    percentage = _parse_optional(
        entry.get("active_thread_percentage"), limits.parse_percentage, f"{option}.active_thread_percentage"
    )
    memory = tuple(
        _parse_memory(raw, f"{option}.memory_limits[{number}]")
        for number, raw in enumerate(entry.get("memory_limits") or [])
    )
    if clients is not None and (percentage is not None or memory):
        other = "active_thread_percentage" if percentage is not None else "memory_limits"
        raise BadOption(
            f"{option}.clients", clients, f"already sets the shares (100/N and memory/N); drop clients or drop {other}"
        )
    if clients is not None:
        percentage = limits.share_of_threads(clients, f"{option}.clients")
    return Wish(
        name=name,
        gpus=gpus,
        state=state,
        compute_mode=entry.get("compute_mode") or "exclusive_process",
        tenths=limits.FULL if percentage is None else percentage,
        memory=memory,
        clients=clients,
        pipe_directory=_parse_pipe(entry.get("pipe_directory"), name, gpus, f"{option}.pipe_directory"),
        log_directory=_parse_directory(entry.get("log_directory"), f"{option}.log_directory")
        or f"{DEFAULT_LOG_PARENT}/{name}",
    )


T = t.TypeVar("T")


def _parse_optional(value: t.Any, parser: t.Callable[[t.Any, str], T], option: str) -> T | None:
    """An empty string is what a survey delivers for a question that was not answered."""
    return None if value is None or value == "" else parser(value, option)


def _parse_name(value: t.Any, option: str) -> str:
    name = "" if value is None else str(value)
    if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        raise BadOption(
            option,
            name,
            f"is no usable name; give 1 to {_LONGEST_NAME} letters, digits, '.', '_' and '-', beginning with a letter or a digit",
        )
    return name


def _parse_gpus(value: t.Any, state: str, option: str) -> tuple[str, ...]:
    if value is None:
        if state == "started":
            raise BadOption(
                option, "", "is missing; a started daemon needs GPUs: indices, UUIDs, PCI addresses, or 'all'"
            )
        return ()
    return tuple(_selection.clean(value, option))


def _parse_memory(raw: t.Mapping[str, t.Any], option: str) -> MemoryWish:
    gpu = _selection.clean([raw.get("gpu") if raw.get("gpu") is not None else _selection.ALL], f"{option}.gpu")[0]
    return MemoryWish(gpu, limits.parse_size(raw.get("size"), f"{option}.size"))


def _parse_directory(value: t.Any, option: str) -> str | None:
    if value is None or value == "":
        return None
    path = str(value)
    if not path.startswith("/") or re.search(r"[\s\"'\\$%]", path) or "/../" in f"{path}/":
        raise BadOption(
            option,
            path,
            "is no usable directory; give an absolute path without blanks, quotes, '\\', '$', '%' and '..'",
        )
    # One spelling a directory: two are compared by their text.
    return "/" + "/".join(part for part in path.split("/") if part not in ("", "."))


def _parse_pipe(value: t.Any, name: str, gpus: tuple[str, ...], option: str) -> str:
    path = _parse_directory(value, option) or f"{DEFAULT_PIPE_PARENT}/{name}"
    if len(path.encode()) > LONGEST_PIPE_PATH:
        raise BadOption(
            option,
            path,
            f"is {len(path.encode())} bytes long; the control daemon takes at most {LONGEST_PIPE_PATH} (sockets lie in it)",
        )
    if path == CATCH_ALL_PIPE and gpus and gpus != (_selection.ALL,):
        raise BadOption(
            option,
            path,
            "is NVIDIA's default, which every CUDA process of the host uses, so that each would see only this daemon's GPUs; "
            "it is allowed with gpus: all only: leave it out",
        )
    return path
