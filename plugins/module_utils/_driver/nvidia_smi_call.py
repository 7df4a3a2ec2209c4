# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. One question to nvidia-smi, and what its refusals mean. Its exit status proves nothing."""

from __future__ import annotations

import re

from .._command import Answer, Commands
from .._errors import CommandFailed, DriverAbsent, GpuLost, InUse, NotSupported, PermissionMissing, SharingError
from .._gpu import Gpu
from .interface import refusal

LOST = re.compile(r"GPU is lost|GPU requires reset|Unable to determine the device handle", re.IGNORECASE)
# What a command by UUID or address ends with before it does anything, when some GPU is lost (535, 550).
_SOME_LOST = re.compile(r"^(Problem with GPU \d+|Unable to determine the device handle)")
# NVML's words for a refusal that leaves all as it was.
_REFUSED = (
    "Invalid Argument",
    "Not Supported",
    "Insufficient Permissions",
    "Not Found",
    "In use by another client",
    "Insufficient Resources",
)
_NO_DRIVER = re.compile(r"communicate with the NVIDIA driver|couldn't find libnvidia-ml|Failed to initialize NVML")


class Ask:
    """Runs nvidia-smi. Raises DriverAbsent where it finds no driver."""

    def __init__(self, commands: Commands, program: str) -> None:
        self._commands = commands
        self._program = program

    def __call__(self, *arguments: str) -> Answer:
        answer = self._commands.run([self._program, *arguments])
        if answer.rc != 0 and _NO_DRIVER.search(answer.text):
            raise DriverAbsent(f"No usable NVIDIA driver: nvidia-smi says: {answer.text}", reason=answer.text)
        return answer

    def field(self, gpu: Gpu, field: str) -> str:
        """Return a field of ``--query-gpu``.

        Asked by index: by UUID or address nvidia-smi asks all GPUs, and fails when any is lost (recorded of 535 and 550).
        """
        answer = self("-i", str(gpu.index), f"--query-gpu=uuid,{field}", "--format=csv,noheader")
        if answer.rc != 0:
            raise failed(f"read the {field} of {gpu.label}", answer)
        uuid, _comma, value = (part.strip() for part in answer.out.partition(","))
        if uuid != gpu.uuid:
            raise GpuLost(f"{gpu.label} is gone: GPU {gpu.index} is {uuid} now; run again")
        return value

    def of(self, gpu: Gpu, *arguments: str, group: tuple[str, ...] = ()) -> Answer:
        """Run a command on one GPU. By UUID it cannot meet another one, but fails when any GPU is lost; then by index."""
        answer = self(*group, "-i", str(gpu.uuid), *arguments)
        stopped = answer.rc != 0 and _SOME_LOST.search(answer.text)
        return self(*group, *self.index(gpu), *arguments) if stopped else answer

    def index(self, gpu: Gpu) -> tuple[str, str]:
        """Return what selects a GPU, after a look whether its index still means it."""
        self.field(gpu, "index")
        return "-i", str(gpu.index)


def failed(action: str, answer: Answer) -> SharingError:
    """Return the error for an answer that says no."""
    kinds: tuple[tuple[str, type[SharingError]], ...] = (
        ("Insufficient Permissions", PermissionMissing),
        ("In use by another client", InUse),
        ("Not Supported", NotSupported),
    )
    kind = next((kind for text, kind in kinds if text in answer.text), CommandFailed)
    if LOST.search(answer.text):
        kind = GpuLost
    error = refusal(
        kind,
        f"Cannot {action}: nvidia-smi says: {answer.text or 'nothing'} (exit status {answer.rc})",
        rc=answer.rc,
        stdout=answer.out,
        stderr=answer.err,
    )
    error.certain = any(words in answer.text for words in _REFUSED)
    return error
