# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Machines whose cards are cut: what the mocked driver itself knows of their instances, and jobs in them.

nvidia_mig refuses a card that any MPS control daemon of the host serves, so these machines see no process but their own.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from typing import Any, NamedTuple

from harness import real, snapshot
from harness.machine import Machine
from harness.modules import Modules, Result

ALONE = ["unshare", *([] if os.getuid() == 0 else ["--user", "--map-root-user"]), "--pid", "--fork", "--kill-child"]
# A shell is the first process: it takes in what orphans leave.
ALONE += ["--mount-proc", "sh", "-c", '"$@"; exit', "sh"]
# How the driver is spoken to. The stand-in is an interpreter's start slower, and held against the real one elsewhere.
PROGRAMS = ("nvml", "nvidia-smi-535")


@functools.cache
def hindrance() -> str:
    """Why no process can be started in a PID namespace here; empty where one can."""
    tried = subprocess.run([*ALONE, "true"], capture_output=True, text=True, check=False)
    return "" if tried.returncode == 0 else f"no PID namespace can be made here ({tried.stderr.strip()})"


def alone() -> Modules:
    """A server that sees only what it starts."""
    return Modules(within=ALONE)


class Part(NamedTuple):
    """A compute instance."""

    id: int
    profile: str
    start: int
    uuid: str


class Instance(NamedTuple):
    """A GPU instance."""

    id: int
    profile: str
    start: int
    parts: tuple[Part, ...]

    @property
    def place(self) -> str:
        """Profile and start, and the compute instances where they are not the one that fills it."""
        names = [part.profile for part in self.parts]
        inside = "" if names == [self.profile] else f"({','.join(names)})"
        return f"{self.profile}{inside}@{self.start}"


class MigMachine(Machine):
    """A machine with cards that can be cut."""

    backend = "nvml"

    def speak(self, program: str) -> None:
        """Talk to the driver by one of PROGRAMS from now on, or by the stand-in."""
        if program == "nvidia-smi-535":
            real.use(self, "nvidia-smi")
        self.backend = "nvml" if program == "nvml" else "nvidia_smi"

    def mig(self, *layouts: dict[str, Any], **options: Any) -> Result:
        """Run nvidia_mig."""
        return self.run("nvidia_mig", layouts=list(layouts), **{"backend": self.backend, **options})

    def cut(self, *instances: Any, gpu: Any = 0, **options: Any) -> Result:
        """Run nvidia_mig for one card; an instance is a profile's name, or an entry of `instances`."""
        wishes = [{"profile": entry} if isinstance(entry, str) else entry for entry in instances]
        return self.mig({"gpus": [gpu], "instances": wishes}, **options)

    def job(self, gpu: int = 0, instance: Instance | None = None, part: int = 0) -> int:
        """Start a process on a card, or in a compute instance of it; its pid."""
        request = {"job": ["sleep", "infinity"], "environment": self.environment}
        pid = int(self._modules.receive(self._modules.send(request))["out"])
        where = ["--gi", str(instance.id), "--ci", str(instance.parts[part].id)] if instance else []
        self.mock_driver("process", "add", str(gpu), str(pid), *where)
        return pid

    def serve(self, devices: str | None) -> None:
        """Start an MPS control daemon for these devices, or for all."""
        environment = {**self.environment, "CUDA_MPS_PIPE_DIRECTORY": self.pipe()}
        environment["CUDA_MPS_LOG_DIRECTORY"] = str(self.folder / "log")
        if devices is not None:
            environment["CUDA_VISIBLE_DEVICES"] = devices
        status, output = self.execute(["nvidia-cuda-mps-control", "-d"], environment)
        assert status == 0, output

    def nvml(self, program: str, gpu: int = 0) -> None:
        """Run a Python program that finds pynvml's names, and the card's handle as `card`."""
        start = (
            f"from ctypes import byref\nfrom pynvml import *\nnvmlInit()\ncard = nvmlDeviceGetHandleByIndex({gpu})\n"
        )
        status, output = self.execute([sys.executable, "-c", start + program], self.environment)
        assert status == 0, output

    def instances(self, gpu: int = 0) -> list[Instance]:
        """What is on a card, in order of place."""
        with snapshot.driver(self.folder / "machine", "library.state") as (state, _library):
            card = state.gpus[gpu]
            profiles = state.models[card.model].profiles
            found = [
                _instance(number, instance, profiles[instance.profile])
                for number, instance in enumerate(card.gpu_instances)
                if instance.used
            ]
        return sorted(found, key=lambda one: one.start)

    def places(self, gpu: int = 0) -> list[str]:
        """What is on a card, as `Instance.place` writes it."""
        return [instance.place for instance in self.instances(gpu)]

    def mode(self, gpu: int = 0) -> tuple[bool, bool]:
        """The MIG mode of a card: now, and after a reset."""
        with snapshot.driver(self.folder / "machine", "library.state") as (state, _library):
            return bool(state.gpus[gpu].mig_current), bool(state.gpus[gpu].mig_pending)

    def changes(self) -> list[str]:
        """Calls that are there to change something, since `mock-driver trace on`, each with its card."""
        with snapshot.driver(self.folder / "machine", "command.record") as (state, record):
            setters = {name for name, count in record.counts(state)["functions"].items() if count["setter"]}
            found = [line.split()[2:] for line in record.trace_lines(state)]
        return [f"{' '.join(words[1:3])} {words[0]}" for words in found if words[0] in setters]

    def resets(self) -> int:
        """How often cards were reset."""
        with snapshot.driver(self.folder / "machine", "command.record") as (state, record):
            return int(record.counts(state)["resets"])

    def setter_calls(self) -> dict[str, int]:
        """Calls so far that are there to change something, by function."""
        with snapshot.driver(self.folder / "machine", "command.record") as (state, record):
            functions = record.counts(state)["functions"]
        return {name: count["calls"] for name, count in functions.items() if count["setter"]}


def _instance(number: int, instance: Any, profile: Any) -> Instance:
    parts = [
        Part(order, profile.compute_profiles[part.profile].name.decode(), part.start, part.uuid.decode())
        for order, part in enumerate(instance.compute_instances)
        if part.used
    ]
    return Instance(number, profile.name.decode(), instance.start, tuple(parts))
