#!/usr/bin/python
# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
---
module: nvidia_compute_mode
short_description: Set the compute mode of NVIDIA GPUs
version_added: 0.1.0
description:
  - Sets which processes may use a GPU, and reads the mode back before it reports success.
  - All GPUs are checked before the first is changed. When one cannot be changed, those changed before it are set back.
  - A GPU that has the mode already sees no call that changes anything.
  - The driver forgets compute modes at a reboot. To share a GPU by MPS, and keep it so, use M(gpuops.sharing.nvidia_mps).
author:
  - gpuops.sharing contributors (@gpuops)
extends_documentation_fragment:
  - gpuops.sharing._attributes
  - gpuops.sharing._attributes.actiongroup_nvidia
  - gpuops.sharing._driver
  - gpuops.sharing._driver.gpus
  - gpuops.sharing._driver.state
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  mode:
    description:
      - V(default) lets many processes use the GPU, V(exclusive_process) one (with MPS the MPS server is that one), V(prohibited) none.
      - Only names are taken. The numbers of C(nvidia-smi) mislead, V(1) is C(exclusive_thread), which was removed, and V(3) is V(exclusive_process).
      - A GPU in MIG mode has no compute mode that could be set, and is refused.
    type: str
    required: true
seealso:
  - module: gpuops.sharing.nvidia_gpu_info
  - module: gpuops.sharing.nvidia_mps
"""

EXAMPLES = r"""
---
- name: One process a GPU, on all GPUs
  gpuops.sharing.nvidia_compute_mode:
    mode: exclusive_process

- name: Let nobody use two GPUs
  gpuops.sharing.nvidia_compute_mode:
    gpus: [0, "0000:0f:00.0"]
    mode: prohibited
"""

RETURN = r"""
gpus:
  description: The GPUs of the task.
  returned: success
  type: list
  elements: dict
  contains:
    index:
      description: Index as NVML and C(nvidia-smi) count.
      type: int
    uuid:
      description: UUID of the GPU.
      type: str
    pci_bus_id:
      description: PCI address as the kernel spells it.
      type: str
    name:
      description: Product name.
      type: str
    before:
      description: The C(compute_mode) before the task.
      type: dict
    after:
      description: The C(compute_mode) that was read back; in check mode the one that would be set.
      type: dict
backend:
  description: The backend that was used.
  returned: success
  type: str
reset_required:
  description: Whether a GPU has to be reset; never for a compute mode.
  returned: success
  type: bool
reboot_required:
  description: Whether the host has to be rebooted; never for a compute mode.
  returned: success
  type: bool
error:
  description: Kind of the error.
  returned: failure
  type: str
  sample: PermissionMissing
done:
  description: Steps that were done before one failed; RV(undone) and RV(not_undone) say which were taken back.
  returned: when a step failed
  type: list
  elements: str
undone:
  description: Steps that were taken back.
  returned: when a step failed
  type: list
  elements: str
not_undone:
  description: Steps that could not be taken back.
  returned: when a step failed
  type: list
  elements: str
"""

from ansible_collections.gpuops.sharing.plugins.module_utils._ansible import compute_mode


def main() -> None:
    compute_mode.main()


if __name__ == "__main__":
    main()
