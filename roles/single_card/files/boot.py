# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Entry of the program that nvidia-mps@NAME.service runs before it starts a daemon: boot NAME."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import typing as t

from sharing._command import Answer, Commands
from sharing._driver.choice import open_driver
from sharing._errors import CommandTimeout, SharingError
from sharing._mps import boot

TIMEOUT = 30.0


def execute(
    argv: t.Sequence[str],
    stdin: str | None = None,
    environment: t.Mapping[str, str] | None = None,
    limit: float | None = None,
) -> Answer:
    """Run a command as the modules do, with the standard library alone."""
    bound = limit or TIMEOUT
    command = ["timeout", "-k", "2", f"{bound:g}", *argv]
    variables = {**os.environ, "LC_ALL": "C", **(environment or {})}
    done = subprocess.run(command, input=stdin, env=variables, capture_output=True, text=True, check=False)
    if done.returncode in (124, 137, -9):  # timeout(1); when it has to kill, it kills itself as well
        raise CommandTimeout(f"'{' '.join(argv)}' did not end within {bound:g} s")
    return Answer(done.returncode, done.stdout, done.stderr)


def main() -> int:
    """Exit status 0: the cards are as the daemon needs them."""
    if len(sys.argv) != 2:
        print("usage: boot NAME", file=sys.stderr)
        return 2
    name = sys.argv[1]
    # The daemon's own environment would hide cards from the driver's tools.
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    try:
        with contextlib.closing(open_driver("auto", Commands(execute, shutil.which, TIMEOUT))) as driver:
            for line in boot.bring_back(boot.environment(name), driver):
                print(line)
    except SharingError as exc:
        print(f"Daemon '{name}' cannot start: {exc.message}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
