# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Entry of the program that nvidia-mps@NAME.service runs before it starts a daemon: boot NAME."""

from __future__ import annotations

import contextlib
import os
import sys

from sharing.module_utils._driver.choice import open_driver
from sharing.module_utils._errors import SharingError
from sharing.module_utils._mps import boot
from sharing.plugin_utils import _standalone

TIMEOUT = 30.0


def main() -> int:
    """Exit status 0: the cards are as the daemon needs them."""
    if len(sys.argv) != 2:
        print("usage: boot NAME", file=sys.stderr)
        return 2
    name = sys.argv[1]
    # The daemon's own environment would hide cards from the driver's tools.
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    try:
        with contextlib.closing(open_driver("auto", _standalone.commands(TIMEOUT))) as driver:
            for line in boot.bring_back(boot.environment(name), driver):
                print(line)
    except SharingError as exc:
        print(f"Daemon '{name}' cannot start: {exc.message}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
