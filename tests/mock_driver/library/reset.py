# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A card that starts anew: by a reset, or with its host."""

from __future__ import annotations

import os
from ctypes import addressof, memset, sizeof

from library import layout


def may_change(state: layout.State) -> bool:
    """As in the library: root, and who brought the machine up."""
    pretended = os.environ.get("MOCK_DRIVER_UID")
    uid = int(pretended) if pretended else os.geteuid()
    return uid in (0, state.owner_uid)


def restart_gpu(gpu: layout.Gpu) -> None:
    """Instances and persistence mode go, a pending MIG mode comes into force. Compute mode and accounting stay (assumed)."""
    gpu.mig_current = gpu.mig_pending
    gpu.persistence = 0
    memset(addressof(gpu.gpu_instances), 0, sizeof(gpu.gpu_instances))


def reset_gpu(state: layout.State, gpu: layout.Gpu) -> None:
    restart_gpu(gpu)
    gpu.resets += 1
    state.changes += 1
