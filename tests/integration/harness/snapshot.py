# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What can be seen of a machine from outside: the driver's counters, the files, the control daemons."""

from __future__ import annotations

import hashlib
import importlib
import os
import stat
import sys
from pathlib import Path
from typing import Any

MOCK_DRIVER = Path(__file__).resolve().parents[2] / "mock_driver"
CONTROL = "nvidia-cuda-mps-control"
# The machine itself, what tests and Ansible put there, the lock that every run takes, and what daemons say.
NOT_OURS = ("machine", "bin", "ansible", "var/lock", "log")


def take(folder: Path) -> dict[str, Any]:
    """Counters (`calls`, `setter_calls`, `changes`), `files` by path and `daemons` by pid, all in a form that JSON can carry."""
    return {**counters(folder / "machine"), "files": files(folder), "daemons": daemons(folder)}


def _mock_driver(module: str) -> Any:
    if str(MOCK_DRIVER) not in sys.path:
        sys.path.append(str(MOCK_DRIVER))
    return importlib.import_module(module)


def counters(state: Path) -> dict[str, int]:
    """How often NVML was called so far, and how often to change something."""
    with _mock_driver("library.state").open_state(state) as opened:
        counted = _mock_driver("command.record").counts(opened)
    return {name: counted[name] for name in ("calls", "setter_calls", "changes")}


def compute_modes(state: Path) -> list[str]:
    """The compute mode of each card."""
    names = _mock_driver("command.machine").COMPUTE_MODES
    with _mock_driver("library.state").open_state(state) as opened:
        return [names[opened.gpus[index].compute_mode] for index in range(opened.gpu_count)]


def files(folder: Path) -> dict[str, str]:
    """Kind, permissions and contents of everything under the folder but what tests themselves put there."""
    seen = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if not any(name == other or name.startswith(other + "/") for other in NOT_OURS):
            seen[name] = _describe(path)
    return seen


def _describe(path: Path) -> str:
    mode = path.lstat().st_mode
    content = hashlib.sha256(path.read_bytes()).hexdigest() if stat.S_ISREG(mode) else ""
    return f"{stat.filemode(mode)} {content}".rstrip()


def daemons(folder: Path) -> list[int]:
    """The control daemons on pipe directories of this machine."""
    return [
        pid
        for pid, environment in processes(folder)
        if environment.get("CUDA_MPS_PIPE_DIRECTORY", "").startswith(f"{folder}/") and is_daemon(pid)
    ]


def is_daemon(pid: int) -> bool:
    """Whether a process is a control daemon, not its front end."""
    arguments = command(pid)
    return CONTROL in arguments[:2] and "-d" in arguments


def command(pid: int) -> list[str]:
    """A process's command line, programs without their folders."""
    return [os.path.basename(argument) for argument in _read(f"/proc/{pid}/cmdline").split("\0")]


def processes(folder: Path) -> list[tuple[int, dict[str, str]]]:
    """Every living process that was started on this machine, with its environment."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            pairs = (entry.partition("=") for entry in _read(f"/proc/{name}/environ").split("\0") if entry)
            environment = {key: value for key, _equals, value in pairs}
            if environment.get("MOCK_DRIVER_STATE") == str(folder / "machine"):
                found.append((int(name), environment))
    return found


def _read(path: str) -> str:
    try:
        return Path(path).read_bytes().decode(errors="replace")
    except OSError:
        return ""
