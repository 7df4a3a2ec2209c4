# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. The task of nvidia_gpu_info: read, and tell."""

from __future__ import annotations

import typing as t

from ansible.module_utils.basic import AnsibleModule

from .. import _selection
from .._command import Commands
from .._driver.choice import open_driver
from .._errors import DriverAbsent, SharingError
from .._gpu import Gpu, System
from .._mps import limits, process
from .._mps.control import Control
from .._mps.live import Daemon
from . import task

SPECIFICATION: dict[str, t.Any] = {**task.GPUS, **task.COMMON}


def main() -> None:
    """Run the module."""
    task.run(SPECIFICATION, _body)


def _body(module: AnsibleModule, commands: Commands) -> dict[str, t.Any]:
    names = _selection.clean(module.params["gpus"], "gpus")
    driver, gpus = _read(module.params["backend"], commands)
    chosen = gpus if names == [_selection.ALL] else _named(names, gpus, driver)
    return {
        "changed": False,
        "driver": driver,
        "gpus": [_show_gpu(gpu) for gpu in chosen],
        "mps_daemons": _daemons(commands, gpus),
    }


def _named(names: t.Sequence[str], gpus: t.Sequence[Gpu], driver: t.Mapping[str, t.Any]) -> list[Gpu]:
    """Without a driver there is no GPU, and the answer says why; a lost GPU can be shown."""
    if not driver["present"]:
        return []
    shown = [gpu._replace(error=None) for gpu in gpus]
    indices = [gpu.index for gpu in _selection.choose(names, shown, "gpus")]
    return [gpu for gpu in gpus if gpu.index in indices]


def _read(backend: str, commands: Commands) -> tuple[dict[str, t.Any], list[Gpu]]:
    try:
        driver = open_driver(backend, commands)
        try:
            return _show_driver(True, None, driver.system(), driver.backend), driver.gpus()
        finally:
            driver.close()
    except DriverAbsent as exc:
        return _show_driver(False, exc.details.get("reason", exc.message), System(None, None, None), None), []


def _show_driver(present: bool, reason: str | None, system: System, backend: str | None) -> dict[str, t.Any]:
    return {
        "present": present,
        "reason": reason,
        "version": system.driver_version,
        "nvml_version": system.nvml_version,
        "cuda_version": system.cuda_version,
        "backend": backend,
    }


def _show_gpu(gpu: Gpu) -> dict[str, t.Any]:
    shown = gpu._asdict()
    shown["architecture"] = gpu.architecture
    shown["compute_capability"] = ".".join(map(str, gpu.compute_capability)) if gpu.compute_capability else None
    shown["mig"] = gpu.mig._asdict() if gpu.mig else None
    shown["processes"] = [entry._asdict() for entry in gpu.processes]
    return shown


def _daemons(commands: Commands, gpus: t.Sequence[Gpu]) -> list[dict[str, t.Any]]:
    return [_daemon(found, commands, gpus) for found in process.daemons()]


def _daemon(found: process.Found, commands: Commands, gpus: t.Sequence[Gpu]) -> dict[str, t.Any]:
    pipe = found.environment.get("CUDA_MPS_PIPE_DIRECTORY") or (process.DEFAULT_PIPE if found.environment else None)
    visible = found.environment.get("CUDA_VISIBLE_DEVICES")
    shown: dict[str, t.Any] = {
        "pid": found.pid,
        "uid": found.uid,
        "pipe_directory": pipe,
        "gpus": _cards(visible, gpus),
        "servers": [],
        "limits": None,
        "error": None if pipe else "its environment may not be read by this user",
    }
    if pipe:
        try:
            daemon = Control(commands, pipe).read()
        except SharingError as exc:
            shown["error"] = exc.message
        else:
            if daemon is None or daemon.pid != found.pid:
                shown["error"] = f"it does not answer on {pipe}"
            else:
                shown.update(show_daemon(daemon))
    return shown


def show_daemon(daemon: Daemon) -> dict[str, t.Any]:
    """Return a daemon's limits and servers as results tell them: in percent and as the sizes that the daemon shows, by its own ordinals."""
    return {
        "limits": show_limits(daemon.limits.tenths, daemon.limits.memory),
        "servers": [
            {"pid": server.pid, "clients": list(server.clients), "limits": show_limits(server.tenths, server.memory)}
            for server in daemon.servers
        ],
    }


def show_limits(tenths: int | None, memory: t.Sequence[tuple[int, int]]) -> dict[str, t.Any]:
    """Return limits as results tell them."""
    return {
        "active_thread_percentage": None if tenths is None else tenths / 10,
        "memory": {str(ordinal): limits.show_size(mib) for ordinal, mib in memory},
    }


def _cards(visible: str | None, gpus: t.Sequence[Gpu]) -> list[str]:
    """Return the UUIDs that CUDA_VISIBLE_DEVICES means; without it a daemon serves all cards."""
    if not visible:
        return [gpu.uuid for gpu in gpus if gpu.uuid]
    tokens = [token.strip() for token in visible.split(",")]
    found = [(token, _selection.find(token, gpus)) for token in tokens]
    return [str(gpu.uuid) if gpu and gpu.uuid else token for token, gpu in found]
