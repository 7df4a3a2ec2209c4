# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. Plan compute modes: pure functions on values."""

from __future__ import annotations

import typing as t

from ._errors import BadOption, DoesNotFit
from ._gpu import COMPUTE_MODE_BY_NUMBER, SETTABLE_COMPUTE_MODES, Gpu


def parse_mode(value: t.Any, option: str = "mode") -> str:
    """Return the name of a mode that can be set. Numbers mislead (nvidia-smi's 1 is the removed exclusive_thread), so only names are taken."""
    name = str(value).strip()
    if name in SETTABLE_COMPUTE_MODES:
        return name
    allowed = ", ".join(SETTABLE_COMPUTE_MODES)
    meant = COMPUTE_MODE_BY_NUMBER.get(int(name)) if name.isdecimal() else name.lower().replace(" ", "_")
    if meant == "exclusive_thread":
        raise BadOption(
            option,
            name,
            f"is exclusive_thread, which NVIDIA removed from its drivers; exclusive_process is what takes its place (one of: {allowed})",
        )
    if meant in SETTABLE_COMPUTE_MODES:
        raise BadOption(option, name, f"give the mode by its name: {meant}")
    raise BadOption(option, name, f"is no compute mode; give one of: {allowed}")


def plan(gpus: t.Sequence[Gpu], mode: str) -> list[Gpu]:
    """Return the GPUs that have to change. Raises DoesNotFit for one whose mode cannot be set."""
    differing = [gpu for gpu in gpus if gpu.compute_mode != mode]
    for gpu in differing:
        if gpu.mig and gpu.mig.current:
            raise DoesNotFit(
                f"gpus: {gpu.label} is in MIG mode, and drivers do not set the compute mode of a MIG-enabled GPU; leave it out, or disable its MIG mode first",
                gpu=gpu.uuid,
            )
    return differing
