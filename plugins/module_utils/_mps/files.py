# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. The files of a daemon, as text: what the unit reads, and what its clients need. Pure functions."""

from __future__ import annotations

from . import limits
from .resolve import Resolved

HEADER = "# Written by the Ansible module gpuops.sharing.nvidia_mps; changes will be overwritten.\n"
SUFFIXES = (".env", ".commands", ".client.sh")


def environment(resolved: Resolved) -> dict[str, str]:
    """Return the environment that the control daemon starts with. GPUs go by UUID: indices move."""
    return {
        "CUDA_VISIBLE_DEVICES": ",".join(resolved.uuids),
        "CUDA_MPS_PIPE_DIRECTORY": resolved.wish.pipe_directory,
        "CUDA_MPS_LOG_DIRECTORY": resolved.wish.log_directory,
    }


def render(resolved: Resolved) -> dict[str, str]:
    """Return the contents by file name.

    ``.commands`` has no comment: the control program takes every line for a command. Memory limits stand there and not in
    ``.env``, since the daemon does not show limits that come by its environment (535, 550).
    """
    wish = resolved.wish
    values = {**environment(resolved), "GPUOPS_COMPUTE_MODE": wish.compute_mode}
    return {
        f"{wish.name}.env": HEADER + "".join(f"{key}={value}\n" for key, value in values.items()),
        f"{wish.name}.commands": "".join(f"{line}\n" for line in limits.commands(resolved.limits)),
        f"{wish.name}.client.sh": HEADER + f"export CUDA_MPS_PIPE_DIRECTORY={wish.pipe_directory}\n",
    }


def names(daemon: str) -> list[str]:
    """Return the names of all files that a daemon may have."""
    return [daemon + suffix for suffix in SUFFIXES]
