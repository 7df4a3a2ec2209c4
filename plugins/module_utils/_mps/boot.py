# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. At boot: bring a daemon's cards into their compute mode before the daemon starts. Runs without Ansible."""

from __future__ import annotations

import typing as t

from .._convergence import store
from .._driver.interface import Driver
from .._errors import NoGpu, NotReadBack, StateUnreadable
from .service import SYSTEMD_CONFIGURATION


def environment(name: str, directory: str = SYSTEMD_CONFIGURATION) -> dict[str, str]:
    """Return the environment file of a daemon."""
    path = f"{directory}/{name}.env"
    text = store.read_text(path)
    if text is None:
        raise StateUnreadable(f"{path} is missing: daemon '{name}' was never set up here")
    pairs = (line.partition("=") for line in text.splitlines() if line and not line.startswith("#"))
    return {key: value for key, _equals, value in pairs}


def bring_back(settings: t.Mapping[str, str], driver: Driver) -> list[str]:
    """Set what differs and read it back; return what was done. Raises NoGpu for a card that is not there: nvidia-smi would skip it silently."""
    gpus = {gpu.uuid: gpu for gpu in driver.gpus() if not gpu.error}
    uuids = settings.get("CUDA_VISIBLE_DEVICES", "").split(",")
    missing = [uuid for uuid in uuids if uuid not in gpus]
    if missing:
        raise NoGpu(
            f"{', '.join(missing)}: there is no such GPU, or it does not answer; run the playbook again with the cards that are there"
        )
    mode = settings.get("GPUOPS_COMPUTE_MODE", "unchanged")
    if mode == "unchanged":
        return []
    said = []
    for uuid in uuids:
        gpu = gpus[uuid]
        if gpu.compute_mode == mode:
            continue
        driver.set_compute_mode(gpu, mode)
        now = driver.compute_mode(gpu)
        if now != mode:
            raise NotReadBack(
                f"The driver reported success, but the compute mode of {gpu.label} reads {now}, not {mode}"
            )
        said.append(f"{gpu.label}: compute mode set to {mode}")
    return said
