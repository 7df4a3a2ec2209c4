# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Entry of the program that nvidia-mig-layout.service runs at boot: mig FILE STATE. FILE has layouts as nvidia_mig returns them, STATE is its directory."""

from __future__ import annotations

import contextlib
import sys
import typing as t

from sharing.module_utils._convergence import lock
from sharing.module_utils._driver.choice import open_driver
from sharing.module_utils._errors import SharingError
from sharing.module_utils._gpu import Gpu
from sharing.module_utils._mig import layout, saved
from sharing.module_utils._mig.reconcile import Host, Options
from sharing.plugin_utils import _standalone

TIMEOUT = 60.0


def bring_back(host: Host, gpus: t.Sequence[Gpu], wish: layout.Layout) -> None:
    """Make what is missing; nothing is destroyed and no card is reset."""
    before = host.read(layout.choose([wish], gpus))
    host.apply(before, host.steps(before, host.plan(before)))


def main() -> int:
    """Exit status 0: all cards are as written down."""
    if len(sys.argv) != 3:
        print("usage: mig FILE STATE", file=sys.stderr)
        return 2
    file, state = sys.argv[1:]
    commands, failures = _standalone.commands(TIMEOUT), 0
    try:
        wishes = [wish._replace(gpus=(name,)) for wish in layout.parse(saved.read(file)) for name in wish.gpus]
        with lock.host_lock(state, TIMEOUT), contextlib.closing(open_driver("auto", commands)) as driver:
            gpus = driver.gpus()  # once: a driver that hangs is waited for each time
            host = Host(driver, commands, Options())
            for wish in wishes:
                try:
                    bring_back(host, gpus, wish)
                    print(f"{wish.gpus[0]}: as written down", flush=True)
                except SharingError as exc:  # the other cards come back all the same
                    print(exc.message, file=sys.stderr)
                    failures += 1
    except SharingError as exc:
        print(exc.message, file=sys.stderr)
        return 1
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
