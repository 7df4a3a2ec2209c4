# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Entry of the program that nvidia-mig-layout.service runs at boot: mig FILE STATE. FILE has layouts as nvidia_mig returns them, STATE is its directory."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import typing as t

from sharing._command import Answer, Commands
from sharing._convergence import lock
from sharing._driver.choice import open_driver
from sharing._errors import CommandTimeout, SharingError
from sharing._gpu import Gpu
from sharing._mig import layout, saved
from sharing._mig.reconcile import Host, Options

TIMEOUT = 60.0


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


def bring_back(host: Host, gpus: t.Sequence[Gpu], wish: layout.Layout) -> None:
    """Make what is missing; nothing is destroyed and no card is reset."""
    before = host.read(layout.choose([wish], gpus))
    host.apply(before, host.plan(before))


def main() -> int:
    """Exit status 0: all cards are as written down."""
    if len(sys.argv) != 3:
        print("usage: mig FILE STATE", file=sys.stderr)
        return 2
    file, state = sys.argv[1:]
    commands, failures = Commands(execute, shutil.which, TIMEOUT), 0
    try:
        wishes = layout.parse(saved.read(file))
        with lock.host_lock(state, TIMEOUT), contextlib.closing(open_driver("auto", commands)) as driver:
            gpus = driver.gpus()  # once: a driver that hangs is waited for each time
            host = Host(driver, commands, Options())
            for wish in wishes:
                try:
                    bring_back(host, gpus, wish)
                    print(f"{', '.join(wish.gpus)}: as written down", flush=True)
                except SharingError as exc:  # the other cards come back all the same
                    print(exc.message, file=sys.stderr)
                    failures += 1
    except SharingError as exc:
        print(exc.message, file=sys.stderr)
        return 1
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
