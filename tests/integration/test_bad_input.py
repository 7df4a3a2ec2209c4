# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a task may get wrong: the message names the option, the value and what to do, and nothing was changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness.machine import Machine
from harness.modules import Modules

PCI = "0000:07:00.0"

# of an entry of daemons: what is given, and what the message must hold: option, value, remedy
ENTRIES: dict[str, tuple[dict[str, Any], tuple[str, str, str]]] = {
    "no such index": ({"gpus": [9]}, ("daemons[0].gpus", "'9'", "there are: GPU 0 (")),
    "no such uuid": ({"gpus": ["GPU-00000000"]}, ("daemons[0].gpus", "'GPU-00000000'", "there are: GPU 0 (")),
    "no such address": ({"gpus": ["0000:99:00.0"]}, ("daemons[0].gpus", "'0000:99:00.0'", "there are: GPU 0 (")),
    "one card in two spellings": ({"gpus": [0, PCI]}, ("daemons[0].gpus", f"'0, {PCI}'", "name each GPU once")),
    "no cards": ({"gpus": []}, ("daemons[0].gpus", "[]", "give an index, a UUID, a PCI address, or 'all'")),
    "an empty string": ({"gpus": ""}, ("daemons[0].gpus", "''", "give an index, a UUID, a PCI address, or 'all'")),
    "gpus left out": ({"gpus": None}, ("daemons[0].gpus", "is missing", "indices, UUIDs, PCI addresses, or 'all'")),
    "all and another": ({"gpus": ["all", 0]}, ("daemons[0].gpus", "'all, 0'", "drop the others")),
    "an unquoted address": (
        {"gpus": [420.0]},
        ("daemons[0].gpus", "'420.0'", 'if "07:00.0" is meant, write it in quotes'),
    ),
    "a large unquoted address": ({"gpus": [4860]}, ("daemons[0].gpus", "'4860'", '"81:00.0"')),
    "a negative index": ({"gpus": [-1]}, ("daemons[0].gpus", "'-1'", "counts from 0")),
    "a MIG instance": ({"gpus": ["MIG-1"]}, ("daemons[0].gpus", "'MIG-1'", "takes whole GPUs")),
    "a word": ({"gpus": ["first"]}, ("daemons[0].gpus", "'first'", "index, UUID (GPU-...), PCI address")),
    "0 percent": (
        {"active_thread_percentage": 0},
        ("daemons[0].active_thread_percentage", "'0'", "above 0 and up to 100"),
    ),
    "101 percent": (
        {"active_thread_percentage": 101},
        ("daemons[0].active_thread_percentage", "'101'", "above 0 and up to 100"),
    ),
    "abc percent": ({"active_thread_percentage": "abc"}, ("daemons[0].active_thread_percentage", "'abc'", "e.g. 50")),
    "a percent sign": (
        {"active_thread_percentage": "50%"},
        ("daemons[0].active_thread_percentage", "'50%'", "without a sign"),
    ),
    "a negative percentage": (
        {"active_thread_percentage": -5},
        ("daemons[0].active_thread_percentage", "'-5'", "above 0"),
    ),
    "two decimals": (
        {"active_thread_percentage": 33.33},
        ("daemons[0].active_thread_percentage", "'33.33'", "give 33.3"),
    ),
    "kilobytes": ({"memory_limits": [{"size": "512K"}]}, ("daemons[0].memory_limits[0].size", "'512K'", "512M or 8G")),
    "broken gigabytes": (
        {"memory_limits": [{"size": "2.5G"}]},
        ("daemons[0].memory_limits[0].size", "'2.5G'", "512M or 8G"),
    ),
    "between two gigabytes": (
        {"memory_limits": [{"size": "1500M"}]},
        ("daemons[0].memory_limits[0].size", "'1500M'", "give 1G or 2G"),
    ),
    "a negative size": (
        {"memory_limits": [{"size": "-1G"}]},
        ("daemons[0].memory_limits[0].size", "'-1G'", "512M or 8G"),
    ),
    "no size": ({"memory_limits": [{"size": "0"}]}, ("daemons[0].memory_limits[0].size", "'0'", "512M or 8G")),
    "0 gigabytes": (
        {"memory_limits": [{"size": "0G"}]},
        ("daemons[0].memory_limits[0].size", "'0G'", "leave the limit out"),
    ),
    "more than the card has": (
        {"memory_limits": [{"size": "41G"}]},
        ("daemons[0].memory_limits[0].size", "41G", "40960 MiB"),
    ),
    "a limit for another card": (
        {"memory_limits": [{"gpu": 1, "size": "1G"}]},
        ("daemons[0].memory_limits[0].gpu", "'1'", "the GPUs of this daemon (GPU 0"),
    ),
    "two limits for one card": (
        {"memory_limits": [{"gpu": 0, "size": "1G"}, {"gpu": PCI, "size": "2G"}]},
        ("daemons[0].memory_limits[1].gpu", f"'{PCI}'", "give one"),
    ),
    "0 clients": ({"clients": 0}, ("daemons[0].clients", "'0'", "a whole number from 1")),
    "half a client": ({"clients": "1.5"}, ("daemons[0].clients", "'1.5'", "a whole number from 1")),
    "many clients": ({"clients": 1001}, ("daemons[0].clients", "1001", "too many clients")),
    "clients and a percentage": (
        {"clients": 2, "active_thread_percentage": 50},
        ("daemons[0].clients", "2", "drop active_thread_percentage"),
    ),
    "clients and a size": (
        {"clients": 2, "memory_limits": [{"size": "1G"}]},
        ("daemons[0].clients", "2", "drop memory_limits"),
    ),
    "no name": ({"name": ""}, ("daemons[0].name", "''", "1 to 64 letters")),
    "a path as name": ({"name": "../etc"}, ("daemons[0].name", "'../etc'", "1 to 64 letters")),
    "a name with a blank": ({"name": "a b"}, ("daemons[0].name", "'a b'", "1 to 64 letters")),
    "a name that looks like an option": (
        {"name": "-x"},
        ("daemons[0].name", "'-x'", "beginning with a letter or a digit"),
    ),
    "a long name": ({"name": "n" * 65}, ("daemons[0].name", "n" * 65, "1 to 64 letters")),
    "a long pipe path": ({"pipe_directory": "/" + "p" * 87}, ("daemons[0].pipe_directory", "p" * 87, "at most 87")),
    "a relative pipe path": (
        {"pipe_directory": "run/mps"},
        ("daemons[0].pipe_directory", "'run/mps'", "an absolute path"),
    ),
    "a pipe path with a blank": (
        {"pipe_directory": "/run/my mps"},
        ("daemons[0].pipe_directory", "'/run/my mps'", "without blanks"),
    ),
    "NVIDIA's pipe path for one card": (
        {"pipe_directory": "/tmp/nvidia-mps"},
        ("daemons[0].pipe_directory", "'/tmp/nvidia-mps'", "leave it out"),
    ),
    "a relative log path": ({"log_directory": "log"}, ("daemons[0].log_directory", "'log'", "an absolute path")),
    "an unknown state": ({"state": "running"}, ("state", "running", "started, stopped, absent")),
    "an unknown compute mode": (
        {"compute_mode": "default"},
        ("compute_mode", "default", "exclusive_process, unchanged"),
    ),
}

# of the whole task
TASKS: dict[str, tuple[dict[str, Any], tuple[str, str, str]]] = {
    "no time to stop": ({"stop_timeout": 0}, ("stop_timeout", "0", "from 1 to 3600")),
    "no time": ({"timeout": 0}, ("timeout", "0", "above 0 and up to 3600")),
    "an unknown service": ({"service": "init"}, ("service", "init", "auto, systemd, none")),
    "an unknown backend": ({"backend": "cuda"}, ("backend", "cuda", "auto, nvml, nvidia_smi")),
    "a word for a number": ({"stop_timeout": "soon"}, ("stop_timeout", "soon", "int")),
}

MODES: dict[str, tuple[Any, str]] = {
    "nvidia-smi's 0": (0, "by its name: default"),
    "nvidia-smi's 1": (1, "exclusive_process is what takes its place"),
    "nvidia-smi's 2": ("2", "by its name: prohibited"),
    "nvidia-smi's 3": (3, "by its name: exclusive_process"),
    "a mode that was removed": ("exclusive_thread", "exclusive_process is what takes its place"),
    "upper case": ("EXCLUSIVE_PROCESS", "by its name: exclusive_process"),
    "with a blank": ("Exclusive Process", "by its name: exclusive_process"),
    "a word": ("shared", "default, exclusive_process, prohibited"),
    "nothing": ("", "default, exclusive_process, prohibited"),
}


@pytest.fixture(scope="module")
def machine(modules: Modules) -> Iterator[Machine]:
    """One for all: whatever a test here changed would be a failure."""
    started = Machine("a100-40gb-x2", modules)
    yield started
    started.close()


def table(cases: dict[str, Any], names: str) -> Any:
    """Cases by name."""
    return pytest.mark.parametrize(names.split(), list(cases.values()), ids=list(cases))


@table(ENTRIES, "entry message")
def test_entry_of_daemons(machine: Machine, entry: dict[str, Any], message: tuple[str, ...]) -> None:
    with machine.untouched():
        refused = machine.mps(machine.daemon(**entry))
    for part in message:
        assert part in refused.message


@table(TASKS, "options message")
def test_options_of_mps(machine: Machine, options: dict[str, Any], message: tuple[str, ...]) -> None:
    with machine.untouched():
        refused = machine.mps(machine.daemon(), **options)
    for part in message:
        assert part in refused.message


@table(MODES, "mode remedy")
def test_compute_mode(machine: Machine, mode: Any, remedy: str) -> None:
    with machine.untouched():
        refused = machine.compute_mode(mode)
    assert refused.message.startswith(f"mode: '{mode}'") and remedy in refused.message


@pytest.mark.parametrize("module", ["nvidia_compute_mode", "nvidia_gpu_info"])
@table(
    {name: case for name, case in ENTRIES.items() if "gpus" in case[0] and case[0]["gpus"] is not None}, "entry message"
)
def test_gpus(machine: Machine, module: str, entry: dict[str, Any], message: tuple[str, ...]) -> None:
    options = {"mode": "prohibited"} if module == "nvidia_compute_mode" else {}
    with machine.untouched():
        refused = machine.run(module, **entry, **options)
    for part in message:
        assert part.replace("daemons[0].gpus", "gpus") in refused.message


def two(first: dict[str, Any], second: dict[str, Any]) -> Callable[[Machine], list[dict[str, Any]]]:
    """Two entries that do not go together."""
    return lambda machine: [machine.daemon(**{"name": "one", **first}), machine.daemon(**{"name": "two", **second})]


@table(
    {
        "a card twice": (
            two({"gpus": [0]}, {"gpus": [PCI]}),
            ("daemons[1].gpus", f"'{PCI}'", "already belongs to daemon 'one'; a card has one daemon"),
        ),
        "a card and all": (
            two({"gpus": [1]}, {"gpus": "all"}),
            ("daemons[1].gpus", "'all'", "already belongs to daemon 'one'; a card has one daemon"),
        ),
        "a name twice": (
            two({"name": "same"}, {"name": "same", "gpus": [1]}),
            ("daemons: name", "'same'", "each daemon needs its own"),
        ),
        "a directory twice": (
            two({"pipe_directory": "/run/same"}, {"gpus": [1], "pipe_directory": "/run/same"}),
            ("daemons: pipe_directory", "'/run/same'", "each daemon needs its own"),
        ),
    },
    "entries message",
)
def test_two_daemons(
    machine: Machine, entries: Callable[[Machine], list[dict[str, Any]]], message: tuple[str, ...]
) -> None:
    with machine.untouched():
        refused = machine.mps(*entries(machine))
    for part in message:
        assert part in refused.message
