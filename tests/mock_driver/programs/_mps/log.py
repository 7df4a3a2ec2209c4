# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The daemon's log lines."""

from __future__ import annotations

import os
import time


class Log:
    """Writes lines in the form of control.log to one file descriptor, or nowhere."""

    def __init__(self, descriptor: int | None) -> None:
        self.descriptor = descriptor

    def __call__(self, message: str) -> None:
        if self.descriptor is None:
            return
        now = time.time()
        stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now))
        line = f"[{stamp}.{int(now % 1 * 1000):03d} Control {os.getpid():5d}] {message}\n"
        os.write(self.descriptor, os.fsencode(line))
