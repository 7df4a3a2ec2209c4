# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Ask a driver backend, in a process of its own that sees a mocked machine: backend_driver.py BACKEND NVIDIA_SMI CALL [ARGUMENT ...].

CALL is read, or set INDEX MODE. Prints what the backend returned as JSON, or the kind of the error that it raised.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

from ansible_collections.gpuops.sharing.plugins.module_utils._command import Answer, Commands
from ansible_collections.gpuops.sharing.plugins.module_utils._driver.choice import open_driver
from ansible_collections.gpuops.sharing.plugins.module_utils._driver.interface import Driver
from ansible_collections.gpuops.sharing.plugins.module_utils._errors import SharingError


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


def answer(driver: Driver, call: str, arguments: Sequence[str]) -> object:
    """Do what was asked."""
    if call == "read":
        # What a lost GPU says of itself is the backend's own words.
        return [{**gpu._asdict(), "error": bool(gpu.error)} for gpu in driver.gpus()]
    gpu = driver.gpus()[int(arguments[0])]
    driver.set_compute_mode(gpu, arguments[1])
    return driver.compute_mode(gpu)


def main() -> None:
    """Print the answer."""
    backend, program, call, *arguments = sys.argv[1:]
    try:
        with contextlib.closing(open_driver(backend, Commands(execute, lambda name: program, 60))) as driver:
            result = {"answer": answer(driver, call, arguments)}
    except SharingError as exc:
        result = {"error": type(exc).__name__, "message": exc.message}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
