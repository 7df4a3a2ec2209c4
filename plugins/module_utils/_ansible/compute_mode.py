# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. The task of nvidia_compute_mode: read, plan, apply, read back."""

from __future__ import annotations

import contextlib
import os
import typing as t

from ansible.module_utils.basic import AnsibleModule

from .. import _compute_mode, _selection
from .._command import Commands
from .._convergence import store
from .._convergence.lock import host_lock
from .._convergence.steps import Step, carry_out
from .._driver.choice import open_driver
from .._driver.interface import Driver
from .._errors import NotReadBack, StateUnreadable
from .._gpu import Gpu
from . import task

SPECIFICATION: dict[str, t.Any] = {"mode": {"type": "str", "required": True}, **task.GPUS, **task.COMMON, **task.STATE}


def main() -> None:
    """Run the module."""
    task.run(SPECIFICATION, _body)


def _body(module: AnsibleModule, commands: Commands) -> dict[str, t.Any]:
    params = module.params
    mode = _compute_mode.parse_mode(params["mode"])
    names = _selection.clean(params["gpus"], "gpus")
    lock = contextlib.nullcontext() if module.check_mode else host_lock(params["state_directory"], commands.timeout)
    with lock, contextlib.closing(open_driver(params["backend"], commands)) as driver:
        machine = driver.gpus()
        gpus = _selection.choose(names, machine, "gpus")
        differing = _compute_mode.plan(gpus, mode)
        if not module.check_mode:
            carry_out([_step(driver, gpu, mode) for gpu in differing])
        after = {
            gpu.uuid: mode if module.check_mode or gpu not in differing else driver.compute_mode(gpu) for gpu in gpus
        }
        backend = driver.backend
    _compare(gpus, after, mode)
    return {
        "changed": bool(differing),
        "gpus": [
            task.entry(gpu, {"compute_mode": gpu.compute_mode}, {"compute_mode": after[gpu.uuid]}) for gpu in gpus
        ],
        "diff": {"before": _show(gpus, {}), "after": _show(gpus, after)},
        "backend": backend,
        "reset_required": False,
        "reboot_required": False,
        "warnings": _warnings(machine, names, differing, params["state_directory"]),
    }


def _step(driver: Driver, gpu: Gpu, mode: str) -> Step:
    def change(to: str) -> None:
        driver.set_compute_mode(gpu, to)
        now = driver.compute_mode(gpu)
        if now != to:
            raise NotReadBack(
                f"The driver reported success, but the compute mode of {gpu.label} reads {now}, not {to}",
                wanted=to,
                found=now,
            )

    before = str(gpu.compute_mode)
    return Step(f"set the compute mode of {gpu.label} to {mode}", lambda: change(mode), lambda: change(before))


def _compare(gpus: t.Sequence[Gpu], after: t.Mapping[str | None, str | None], mode: str) -> None:
    for gpu in gpus:
        if after[gpu.uuid] != mode:
            raise NotReadBack(
                f"The compute mode of {gpu.label} was set to {mode} and reads {after[gpu.uuid]} afterwards: somebody else changed it",
                wanted=mode,
                found=after[gpu.uuid],
            )


def _show(gpus: t.Sequence[Gpu], after: t.Mapping[str | None, str | None]) -> str:
    return "".join(f"{gpu.label}: compute mode {after.get(gpu.uuid, gpu.compute_mode)}\n" for gpu in gpus)


def _warnings(machine: t.Sequence[Gpu], names: t.Sequence[str], differing: t.Sequence[Gpu], state: str) -> list[str]:
    lost = [f"{gpu.label} was left out: {gpu.error}" for gpu in machine if gpu.error and names == ["all"]]
    return lost + _shared(differing, state)


def _shared(differing: t.Sequence[Gpu], state: str) -> list[str]:
    """Changing the mode of a card that a daemon shares works against nvidia_mps, which will set it back."""
    try:
        document = store.read_json(os.path.join(state, "compute_modes.json")) or {}
        cards = {uuid: card["owners"] for uuid, card in document.get("cards", {}).items()}
    except (
        StateUnreadable,
        KeyError,
        TypeError,
        AttributeError,
    ):  # nvidia_mps, whose file it is, reports what is wrong with it
        return []
    return [
        f"{gpu.label} is shared by the MPS daemon {', '.join(cards[gpu.uuid])}, which keeps it in exclusive_process; use nvidia_mps to end the sharing"
        for gpu in differing
        if cards.get(gpu.uuid)
    ]
