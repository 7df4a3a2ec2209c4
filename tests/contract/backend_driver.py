# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Ask a driver backend, in a process of its own that sees a mocked machine: backend_driver.py BACKEND NVIDIA_SMI CALL [ARGUMENT ...].

CALL is read, set INDEX MODE, or one of the calls in MIG below. Prints what the backend returned as JSON, or the kind of the error that it raised.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence

from ansible_collections.gpuops.sharing.plugins.module_utils._command import Answer, Commands
from ansible_collections.gpuops.sharing.plugins.module_utils._driver.choice import open_driver
from ansible_collections.gpuops.sharing.plugins.module_utils._driver.interface import MigDriver
from ansible_collections.gpuops.sharing.plugins.module_utils._errors import SharingError
from ansible_collections.gpuops.sharing.plugins.module_utils._gpu import Gpu


def execute(
    argv: Sequence[str],
    stdin: str | None = None,
    environment: Mapping[str, str] | None = None,
    limit: float | None = None,
) -> Answer:
    """Run a command, as the modules do."""
    done = subprocess.run(
        argv,
        input=stdin,
        env={**os.environ, "LC_ALL": "C", **(environment or {})},
        capture_output=True,
        text=True,
        timeout=60,
    )
    return Answer(done.returncode, done.stdout, done.stderr)


def answer(driver: MigDriver, call: str, arguments: Sequence[str]) -> object:
    """Do what was asked."""
    if call == "read":
        # What a lost GPU says of itself is the backend's own words.
        return [{**gpu._asdict(), "error": bool(gpu.error)} for gpu in driver.gpus()]
    gpu = driver.gpus()[int(arguments[0])]
    if call in MIG:
        return MIG[call](driver, gpu, *arguments[1:])
    driver.set_compute_mode(gpu, arguments[1])
    return driver.compute_mode(gpu)


def mig(driver: MigDriver, gpu: Gpu) -> object:
    """All that is known of a card's MIG mode, profiles and instances."""
    instances = driver.instances(gpu)
    return {
        "mode": driver.mig_mode(gpu),
        "profiles": driver.mig_profiles(gpu),
        "instances": instances,
        "compute_profiles": {one.profile: driver.compute_profiles(gpu, one.id) for one in instances},
    }


def mig_mode(driver: MigDriver, gpu: Gpu, value: str) -> object:
    """Set the MIG mode; why it is pending, and what reads back."""
    return [driver.set_mig_mode(gpu, value == "on"), driver.mig_mode(gpu)]


def create(driver: MigDriver, gpu: Gpu, name: str, start: str) -> object:
    """Create a GPU instance."""
    (profile,) = (profile for profile in driver.mig_profiles(gpu) if profile.name == name)
    (place,) = (place for place in profile.placements if place.start == int(start))
    return driver.create_gpu_instance(gpu, profile, place)


def create_part(driver: MigDriver, gpu: Gpu, instance: str, name: str) -> object:
    """Create a compute instance."""
    (profile,) = (profile for profile in driver.compute_profiles(gpu, int(instance)) if profile.name == name)
    return driver.create_compute_instance(gpu, int(instance), profile, None)


def destroy(driver: MigDriver, gpu: Gpu, instance: str, part: str = "") -> object:
    """Destroy a GPU instance, or a compute instance in it."""
    if part:
        return driver.destroy_compute_instance(gpu, int(instance), int(part))
    return driver.destroy_gpu_instance(gpu, int(instance))


def persistence(driver: MigDriver, gpu: Gpu, value: str) -> object:
    """Set the persistence mode; what reads back."""
    driver.set_persistence_mode(gpu, value == "on")
    return driver.gpus()[gpu.index].persistence_mode


MIG: dict[str, Callable[..., object]] = {
    "mig": mig,
    "mig-mode": mig_mode,
    "create": create,
    "create-part": create_part,
    "destroy": destroy,
    "persistence": persistence,
}


def main() -> None:
    """Print the answer."""
    backend, program, call, *arguments = sys.argv[1:]
    try:
        with contextlib.closing(open_driver(backend, Commands(execute, lambda name: program, 60))) as driver:
            result = {"answer": answer(driver, call, arguments)}
    except SharingError as exc:
        result = {"error": type(exc).__name__, "message": exc.message, "certain": exc.certain}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
