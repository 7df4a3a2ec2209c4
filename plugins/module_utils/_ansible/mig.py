# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. The task of nvidia_mig: options, and what the result tells."""

from __future__ import annotations

import contextlib
import os
import sys
import typing as t

from ansible.module_utils.basic import AnsibleModule

from .._command import Commands
from .._convergence import init_system
from .._convergence.lock import host_lock
from .._convergence.steps import Step, tell
from .._driver.choice import open_driver
from .._errors import BadOption, SharingError
from .._instance import GpuInstance, Profile
from .._mig import export, layout, picture, planner, saved
from .._mig.observation import Reading
from .._mig.planner import Plan
from .._mig.reconcile import Host, Options
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
    "layout_file": {"type": "path"},
    **task.COMMON,
    **task.STATE,
}


def main() -> None:
    """Run the module."""
    task.run(SPECIFICATION, _body)


def _body(module: AnsibleModule, commands: Commands) -> dict[str, t.Any]:
    params = module.params
    layouts = layout.parse(params["layouts"])
    file = params["layout_file"]
    if file and not os.path.isabs(file):
        raise BadOption("layout_file", file, "is no absolute path")
    lock = contextlib.nullcontext() if module.check_mode else host_lock(params["state_directory"], commands.timeout)
    with lock, contextlib.closing(open_driver(params["backend"], commands)) as driver:
        machine = driver.gpus()
        protect = tuple(layout.protect(params["protect"], machine))
        host = Host(driver, commands, Options(params["purge"], params["allow_reset"], protect))
        written = saved.read(file) if file else []
        before = host.read(layout.choose(layouts, machine))
        plans = host.plan(before)
        planned_steps = host.steps(before, plans)
        after, steps = before, [step.text for step in planned_steps if step.text]
        if planned_steps and not module.check_mode:
            if file:
                saved.prepare(file)
            after, steps = _change(host, before, planned_steps)
        planned = [_End(reading, plans[str(reading.gpu.uuid)], reading.layout.enabled) for reading in before]
        ends = planned if module.check_mode else list(map(_now, after))
        told = [export.layout(end.reading.gpu, end.on, end.plan) for end in ends]
        kept = saved.merge(written, told, [reading.gpu for reading in before], machine) if file else []
        if kept != written:
            steps = _write(file, kept, steps, module.check_mode)
        backend = driver.backend
    return {
        "changed": bool(steps),
        "gpus": [_entry(one, other) for one, other in zip(before, after)],
        "steps": steps,
        "layouts": told,
        "saved_layouts": kept,
        "diff": _diff(before, ends),
        "backend": backend,
        "python": sys.executable,
        "service": init_system.choose("auto"),
        "reset_required": False,
        "reboot_required": False,
        "warnings": layout.left_out(layouts, machine)
        + [
            f"{file} has no entry of {name} any more: there is no such GPU on this host"
            for name in saved.gone(written, machine)
        ],
    }


def _change(host: Host, before: t.Sequence[Reading], planned: t.Sequence[Step]) -> tuple[list[Reading], list[str]]:
    """Carry out what is planned and return what is there then, and what was done; a failure tells what is there too."""
    try:
        return host.apply(before, planned)
    except SharingError as exc:
        for reading in before:
            with contextlib.suppress(SharingError):  # a card that does not answer any more cannot be told
                (now,) = host.read_again([reading])
                exc.details.setdefault("gpus", []).append(_entry(reading, now))
                if exc.details.get("not_undone"):
                    exc.message += f"\nNow {_picture(_now(now))}".rstrip()
        raise


def _write(path: str, layouts: t.Sequence[saved.Entry], done: list[str], check: bool) -> list[str]:
    """Write the layouts down, and return what was done with that."""
    try:
        if not check:
            saved.write(path, layouts)
    except SharingError as exc:
        exc.details.update(done=done, undone=[], not_undone=done)
        exc.message = tell(exc.message, exc.details)
        raise
    return [*done, f"write {path}" if layouts else f"remove {path}"]


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


class _End(t.NamedTuple):
    """A card, what is kept and made on it, and whether its MIG mode is on then."""

    reading: Reading
    plan: Plan | None
    on: bool

    @property
    def blocks(self) -> list[picture.Block]:
        """What is drawn."""
        card, protected = self.reading.card, self.reading.protected
        return planner.blocks(self.plan, protected) if card and self.plan and self.on else []

    def lines(self, slots: str) -> str:
        """Return the card's line, and its slots where it is in MIG mode and they are known."""
        line = f"{self.reading.gpu.label}: MIG mode {'enabled' if self.on else 'disabled'}\n"
        return f"{line}{self.reading.card.title}  {slots}\n" if self.on and slots and self.reading.card else line


def _now(reading: Reading) -> _End:
    return _End(reading, Plan(keep=reading.card.instances) if reading.card else None, reading.mig.current)


def _diff(before: t.Sequence[Reading], ends: t.Sequence[_End]) -> dict[str, str]:
    """Draw the slots of each card before and after, to the same scale."""
    drawn = {"before": "", "after": ""}
    for reading, end in zip(before, ends):
        now = _now(reading)
        units = max(one.reading.card.units if one.reading.card else 0 for one in (now, end))
        slots = picture.slots(units, [now.blocks, end.blocks]) if units else ["", ""]
        drawn["before"] += now.lines(slots[0])
        drawn["after"] += end.lines(slots[1] if end.plan else "")
    return drawn


def _picture(end: _End) -> str:
    """Draw the slots of a card alone."""
    card = end.reading.card
    return end.lines(picture.slots(card.units, [end.blocks])[0] if card and card.units else "")
