#!/usr/bin/python
# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
---
module: nvidia_gpu_info
short_description: Read the NVIDIA GPUs of a host, and the MPS control daemons
version_added: 0.1.0
description:
  - Reads the driver, every GPU with its compute mode, MIG mode and processes, and every running MPS control daemon with its servers and limits.
  - Changes nothing. A host without a driver, without a GPU, or without the means to ask for them is an answer, not a failure.
author:
  - gpuops.sharing contributors (@gpuops)
extends_documentation_fragment:
  - gpuops.sharing._attributes
  - gpuops.sharing._attributes.actiongroup_nvidia
  - gpuops.sharing._driver
  - gpuops.sharing._driver.gpus
attributes:
  check_mode:
    support: full
  diff_mode:
    support: N/A
  idempotent:
    support: full
seealso:
  - module: gpuops.sharing.nvidia_compute_mode
  - module: gpuops.sharing.nvidia_mps
"""

EXAMPLES = r"""
---
- name: Read all GPUs
  gpuops.sharing.nvidia_gpu_info:
  register: host

- name: Stop where no GPU is in default mode
  ansible.builtin.assert:
    that: host.gpus | selectattr('compute_mode', 'equalto', 'default') | list | length > 0

- name: Read one GPU by its PCI address
  gpuops.sharing.nvidia_gpu_info:
    gpus: "0000:07:00.0"
"""

RETURN = r"""
driver:
  description: The NVIDIA driver of the host.
  returned: success
  type: dict
  contains:
    present:
      description: Whether the driver answers.
      type: bool
    reason:
      description: Why it does not.
      type: str
    version:
      description: Version of the driver.
      type: str
    nvml_version:
      description: Version of the library NVML; not known to backend V(nvidia_smi).
      type: str
    cuda_version:
      description: Newest version of CUDA that the driver supports.
      type: str
    backend:
      description: The backend that answered.
      type: str
  sample: {"present": true, "reason": null, "version": "535.309.01", "nvml_version": "12.535.309.01", "cuda_version": "12.2", "backend": "nvml"}
gpus:
  description: The GPUs, in order of index. What a driver or GPU cannot tell is null.
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
      sample: "0000:07:00.0"
    name:
      description: Product name.
      type: str
    architecture:
      description: Architecture, by compute capability.
      type: str
      sample: ampere
    compute_capability:
      description: CUDA compute capability.
      type: str
      sample: "8.0"
    memory_total_mib:
      description: Memory in MiB.
      type: int
    compute_mode:
      description: One of V(default), V(exclusive_process), V(prohibited), and with old drivers V(exclusive_thread).
      type: str
    persistence_mode:
      description: Whether persistence mode is on.
      type: bool
    mig:
      description: MIG mode.
      type: dict
      contains:
        capable:
          description: Whether the GPU can be cut into MIG instances.
          type: bool
        current:
          description: Whether MIG mode is on.
          type: bool
        pending:
          description: Whether MIG mode will be on after a reset or a reboot.
          type: bool
    processes:
      description: Processes that hold the GPU.
      type: list
      elements: dict
      contains:
        pid:
          description: Process id.
          type: int
        name:
          description: Name of the program.
          type: str
        memory_mib:
          description: GPU memory that it uses, in MiB.
          type: int
        type:
          description: V(C) compute, V(G) graphics, V(M+C) client of an MPS server.
          type: str
    error:
      description: Why the GPU does not answer.
      type: str
mps_daemons:
  description: Every MPS control daemon that runs on the host.
  returned: success
  type: list
  elements: dict
  contains:
    pid:
      description: Process id of the control daemon.
      type: int
    uid:
      description: User id that it runs as.
      type: int
    pipe_directory:
      description: Directory of its sockets.
      type: str
    gpus:
      description: UUIDs of the GPUs that it serves.
      type: list
      elements: str
    servers:
      description: Its servers, each with C(pid), C(clients) (process ids) and C(limits) (those in force for its clients).
      type: list
      elements: dict
    limits:
      description: Defaults for its next servers, C(active_thread_percentage) and C(memory) (size by the daemon's own device ordinal).
      type: dict
      sample: {"active_thread_percentage": 50.0, "memory": {"0": "8G"}}
    error:
      description: Why the daemon does not answer.
      type: str
"""

from ansible_collections.gpuops.sharing.plugins.module_utils._ansible import gpu_info


def main() -> None:
    gpu_info.main()


if __name__ == "__main__":
    main()
