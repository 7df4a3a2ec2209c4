# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. Whether systemd looks after what a task leaves running."""

from __future__ import annotations

import os

from .._errors import BadOption

SERVICES = ("auto", "systemd", "none")


def choose(service: str) -> str:
    """Return ``systemd`` or ``none``; ``auto`` is systemd where it runs (sd_booted(3))."""
    booted = os.path.isdir("/run/systemd/system")
    if service == "systemd" and not booted:
        raise BadOption("service", service, "systemd does not run this host; use auto or none")
    return ("systemd" if booted else "none") if service == "auto" else service
