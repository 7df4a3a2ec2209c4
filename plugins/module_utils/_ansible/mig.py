# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. The task of nvidia_mig: options, and what the result tells."""

from __future__ import annotations

import contextlib
import sys
import typing as t

from ansible.module_utils.basic import AnsibleModule

from .._command import Commands
from .._convergence import init_system
from .._convergence.lock import host_lock
from .._driver.choice import open_driver
from .._errors import SharingError
from .._instance import GpuInstance, Placement, Profile
from .._mig import export, layout, planner
from .._mig.observation import Reading
from .._mig.planner import Plan
from .._mig.reconcile import Host, Options, Plans
from . import task

SPECIFICATION: dict[str, t.Any] = {
    "layouts": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {
            "gpus": {"type": "list", "elements": "str", "required": True},
            "enabled": {"type": "bool", "default": True},
            "instances": {
                "type": "list",
                "elements": "dict",
                "options": {
                    "profile": {"type": "str", "required": True},
                    "count": {"type": "int", "default": 1},
                    "start": {"type": "int"},
                    "compute_instances": {"type": "list", "elements": "str"},
                },
            },
        },
    },
    "purge": {"type": "bool", "default": False},
    "allow_reset": {"type": "bool", "default": False},
    "protect": {"type": "list", "elements": "str", "default": []},
    **task.COMMON,
    **task.STATE,
}


def main() -> None:
    """Run the module."""
    task.run(SPECIFICATION, _body)


def _body(module: AnsibleModule, commands: Commands) -> dict[str, t.Any]:
    params = module.params
    layouts = layout.parse(params["layouts"])
    options = Options(params["purge"], params["allow_reset"], tuple(params["protect"]))
    lock = contextlib.nullcontext() if module.check_mode else host_lock(params["state_directory"], commands.timeout)
    with lock, contextlib.closing(open_driver(params["backend"], commands)) as driver:
        machine = driver.gpus()
        host = Host(driver, commands, options)
        before = host.read(layout.choose(layouts, machine))
        plans = host.plan(before)
        changes = any(reading.switches for reading in before) or any(
            plan is None or not plan.empty for plan in plans.values()
        )
        after = _change(host, before, plans) if changes and not module.check_mode else before
        backend = driver.backend
    planned = [_End(reading, plans[str(reading.gpu.uuid)], reading.layout.enabled) for reading in before]
    ends = planned if module.check_mode else list(map(_now, after))
    return {
        "changed": changes,
        "gpus": [_entry(one, other) for one, other in zip(before, after)],
        "steps": [step for end in planned for step in _steps(end.reading, end.plan)],
        "layouts": [export.layout(end.reading.gpu, end.on, end.plan) for end in ends],
        "diff": {"before": "".join(map(_picture, map(_now, before))), "after": "".join(map(_picture, ends))},
        "backend": backend,
        "python": sys.executable,
        "service": init_system.choose("auto"),
        "reset_required": False,
        "reboot_required": False,
        "warnings": [
            f"{gpu.label} was left out: {gpu.error}"
            for gpu in machine
            if gpu.error and any(entry.gpus == ("all",) for entry in layouts)
        ],
    }


def _change(host: Host, before: t.Sequence[Reading], plans: Plans) -> list[Reading]:
    """Apply the plans and return what is there then; a failure tells that too."""
    try:
        host.apply(before, plans)
        after = host.read_again(before)
        host.verify(after)
    except SharingError as exc:
        for reading in before:
            with contextlib.suppress(SharingError):  # a card that does not answer any more cannot be told
                (now,) = host.read_again([reading])
                exc.details.setdefault("gpus", []).append(_entry(reading, now))
                if exc.details.get("not_undone"):
                    exc.message += f"\nNow {_picture(_now(now))}".rstrip()
        raise
    return after


def _entry(before: Reading, after: Reading) -> dict[str, t.Any]:
    return {
        **task.entry(before.gpu, _state(before), _state(after)),
        "profiles": [show_profile(profile) for profile in after.card.profiles] if after.card else [],
    }


def _state(reading: Reading) -> dict[str, t.Any]:
    instances = reading.card.instances if reading.card else ()
    return {"mig": reading.mig._asdict(), "instances": [show_instance(instance) for instance in instances]}


def show_profile(profile: Profile) -> dict[str, t.Any]:
    """Return a profile as results tell it, and as the filter mig_capacity reads it."""
    return {**profile._asdict(), "placements": [place._asdict() for place in profile.placements]}


def show_instance(instance: GpuInstance) -> dict[str, t.Any]:
    """Return a GPU instance with its compute instances as results tell them."""
    parts = [
        {
            "ci_id": part.id,
            "profile": part.profile,
            "placement": part.placement._asdict(),
            "uuid": part.uuid,
            "processes": list(part.processes),
        }
        for part in instance.compute_instances
    ]
    return {
        "gi_id": instance.id,
        "profile": instance.profile,
        "placement": instance.placement._asdict(),
        "compute_instances": parts,
    }


def _steps(reading: Reading, plan: Plan | None) -> list[str]:
    card = f"GPU {reading.gpu.index}"
    mode = [f"{'enable' if reading.layout.enabled else 'disable'} MIG mode of {card}"] if reading.switches else []
    if plan is None:
        return [
            *mode,
            f"cut {card} (what it offers can be read only once its MIG mode is on, so the plan is made then)",
        ]
    cuts = [f"destroy {_place(one.profile, one.placement)} of {card} (GPU instance {one.id})" for one in plan.destroy]
    cuts += [f"create {_place(one.profile.name, one.placement)} of {card}" for one in plan.create]
    cuts += [
        f"change the compute instances of {_place(one.instance.profile, one.instance.placement)} of {card} (GPU instance {one.instance.id})"
        for one in plan.repair
    ]
    return mode + cuts if reading.layout.enabled else cuts + mode


def _place(profile: str, placement: Placement) -> str:
    return f"{profile} at {placement.start}:{placement.size}"


class _End(t.NamedTuple):
    """A card, what is kept and made on it, and whether its MIG mode is on then."""

    reading: Reading
    plan: Plan | None
    on: bool


def _now(reading: Reading) -> _End:
    return _End(reading, Plan(keep=reading.card.instances) if reading.card else None, reading.mig.current)


def _picture(end: _End) -> str:
    """Draw a card's slots under a line that tells its mode; without MIG mode there are none."""
    reading, plan, on = end
    line = f"{reading.gpu.label}: MIG mode {'enabled' if on else 'disabled'}\n"
    if not on or reading.card is None or plan is None or not reading.card.profiles:
        return line
    return line + planner.draw(reading.card, plan, reading.protected)[1] + "\n"
