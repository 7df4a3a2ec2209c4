# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. Reset of GPUs: it exists only as a command, nvidia-smi --gpu-reset, for both backends."""

from __future__ import annotations

import typing as t

from .._command import Commands
from .._errors import NotSupported
from .._gpu import Gpu
from .nvidia_smi_call import Ask, failed


def reset(commands: Commands, gpus: t.Sequence[Gpu]) -> None:
    """Reset GPUs in one command, as NVLink peers need. No error means only that the driver did not refuse: read back."""
    program = commands.which("nvidia-smi")
    names = ", ".join(gpu.label for gpu in gpus)
    if program is None:
        raise NotSupported(
            f"Cannot reset {names}: the command nvidia-smi was not found, and the driver's library has no reset"
        )
    answer = Ask(commands, program)("--gpu-reset", "-i", ",".join(str(gpu.index) for gpu in gpus))
    if "not supported" in answer.text.lower():  # "Resetting GPU ... is not supported."
        raise NotSupported(f"Cannot reset {names}: nvidia-smi says: {answer.text}")
    if answer.rc != 0:
        raise failed(f"reset {names}", answer)
