#!/usr/bin/python
# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
---
module: nvidia_mps
short_description: Share NVIDIA GPUs by MPS control daemons
version_added: 0.1.0
description:
  - Makes the MPS control daemons of a host as declared, with their GPUs and limits, and reads the result back.
  - One call carries the whole host's wish, which is checked as a whole. Nothing is changed before it is known that all of it can be done.
  - Whether a daemon runs is decided by its answer, never by files that it left.
  - Limits are changed in place. Another set of GPUs, another directory or another service needs a restart, which is refused while there are clients,
    unless O(force=true).
  - The compute mode from before is remembered on disk and set back when the last daemon of a card goes, unless somebody else changed it meanwhile.
  - Where a step fails midway, what was done is taken back as far as possible, and the failure tells what was and what was not.
author:
  - gpuops.sharing contributors (@gpuops)
extends_documentation_fragment:
  - gpuops.sharing._attributes
  - gpuops.sharing._attributes.actiongroup_nvidia
  - gpuops.sharing._driver
  - gpuops.sharing._driver.state
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
requirements:
  - The command C(nvidia-cuda-mps-control), which comes with the driver (in Debian the package C(nvidia-cuda-mps)).
options:
  daemons:
    description: The daemons that this host shall run. Daemons that are not listed are left alone, unless O(purge=true).
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Name of the daemon and of its unit instance, 1 to 64 letters, digits, V(.), V(_) and V(-), beginning with a letter or a digit.
        type: str
        required: true
      gpus:
        description:
          - The GPUs that the daemon serves, each by index (V(0)), UUID (V(GPU-...)) or PCI address (in quotes, V("0000:07:00.0")); or V(all).
          - Required for a daemon that shall be started. A GPU has at most one daemon. A GPU in MIG mode is refused.
          - With V(all), a GPU that stops answering is no reason to restart what serves the others.
        type: list
        elements: str
      state:
        description:
          - V(started) runs it, now and after a reboot where systemd manages it.
          - V(stopped) ends it and gives its cards their old compute mode back, but keeps its files.
          - V(absent) also removes its files. Logs stay.
        type: str
        default: started
        choices: [started, stopped, absent]
      compute_mode:
        description:
          - V(exclusive_process) sets its cards so that only its server can open them, which keeps processes from going round MPS.
          - V(unchanged) leaves the compute mode alone.
        type: str
        default: exclusive_process
        choices: [exclusive_process, unchanged]
      active_thread_percentage:
        description:
          - Share of a card's threads that a client may use, above 0 and up to 100, with at most one decimal. It is a limit, not a reservation.
          - Left out, there is no limit (100). Needs Volta or newer.
        type: str
      memory_limits:
        description: Limits of the device memory that a client may allocate. Left out, there are none. Needs Volta or newer.
        type: list
        elements: dict
        suboptions:
          gpu:
            description: One of the daemon's GPUs, or V(all). A limit for one GPU goes before one for V(all).
            type: str
            default: all
          size:
            description: Whole MiB below 1 GiB or whole GiB from there, e.g. V(512M) or V(8G); the daemon shows no finer sizes.
            type: str
            required: true
      clients:
        description:
          - Number of clients, from 1, that share each card evenly, in place of O(daemons[].active_thread_percentage) and O(daemons[].memory_limits).
          - Each gets 100/N percent of the threads, and memory/N, both rounded down to what the daemon shows.
        type: str
      pipe_directory:
        description:
          - Directory of the daemon's sockets, an absolute path of at most 87 bytes. The default is C(/run/nvidia-mps/NAME).
          - NVIDIA's default C(/tmp/nvidia-mps) is allowed only with O(daemons[].gpus=all), since every CUDA process of the host uses it.
        type: str
      log_directory:
        description: Directory of the daemon's logs, an absolute path. The default is C(/var/log/nvidia-mps/NAME).
        type: str
  service:
    description:
      - Who starts and stops the daemons.
      - V(systemd) goes through the unit C(nvidia-mps@NAME.service), whose template the role P(gpuops.sharing.single_card#role) installs.
        Daemons come back after a reboot.
      - V(none) starts and stops them directly. They do not come back after a reboot.
      - V(auto) is V(systemd) where systemd runs the host, else V(none).
    type: str
    default: auto
    choices: [auto, systemd, none]
  purge:
    description: Also end and remove daemons that an earlier run set up and that are not listed. Daemons of others are never touched.
    type: bool
    default: false
  force:
    description: End clients that stand in the way of a stop or a restart. Without it the task fails and names them.
    type: bool
    default: false
  stop_timeout:
    description:
      - Seconds, from 1 to 3600, that a daemon's servers have to end before the daemon ends them.
      - Under systemd it is the unit that stops the daemon, and gives its servers 10 seconds.
    type: int
    default: 30
notes:
  - A client must have C(CUDA_MPS_PIPE_DIRECTORY) in its environment; RV(daemons[].client_environment) has the value,
    and so has the file C(NAME.client.sh) beside the daemon's other files (in C(/etc/nvidia-mps) under systemd, else in O(state_directory)).
  - Servers that run keep the limits they started with; RV(daemons[].in_force) tells them.
  - One user at a time. A control daemon serves the clients of one user and queues those of others, unless it is a multi-user server.
seealso:
  - module: gpuops.sharing.nvidia_gpu_info
  - module: gpuops.sharing.nvidia_compute_mode
"""

EXAMPLES = r"""
---
- name: Share GPU 0 among four clients
  gpuops.sharing.nvidia_mps:
    daemons:
      - name: render
        gpus: [0]
        clients: 4

- name: Two daemons with limits of their own
  gpuops.sharing.nvidia_mps:
    daemons:
      - name: train
        gpus: [0]
        active_thread_percentage: 50
        memory_limits:
          - size: 16G
      - name: infer
        gpus: ["0000:0f:00.0"]
        active_thread_percentage: 10
    purge: true

- name: Give the card back
  gpuops.sharing.nvidia_mps:
    daemons:
      - name: render
        state: absent
"""

RETURN = r"""
daemons:
  description: The listed daemons, as they are after the task; in check mode as they would be.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Name of the daemon.
      type: str
    state:
      description: The wished state.
      type: str
    pid:
      description: Process id of the control daemon, null where none runs.
      type: int
    gpus:
      description: UUIDs of its GPUs, in the order of its own device ordinals.
      type: list
      elements: str
    pipe_directory:
      description: Directory of its sockets.
      type: str
    log_directory:
      description: Directory of its logs.
      type: str
    client_environment:
      description: What a client needs in its environment.
      type: dict
      sample: {"CUDA_MPS_PIPE_DIRECTORY": "/run/nvidia-mps/render"}
    default:
      description: Limits for its next servers.
      type: dict
      sample: {"active_thread_percentage": 25.0, "memory": {"0": "10G"}}
    in_force:
      description: Its servers, each with C(pid), C(clients) and the C(limits) that are in force for them.
      type: list
      elements: dict
gpus:
  description: The GPUs of the daemons, each with C(index), C(uuid), C(pci_bus_id), C(name), and its C(compute_mode) C(before) and C(after).
  returned: success
  type: list
  elements: dict
steps:
  description: What was done, or would be done in check mode, in order.
  returned: success
  type: list
  elements: str
  sample: ["start daemon 'render' for GPU 0 (NVIDIA A100-SXM4-40GB, GPU-..., 0000:07:00.0) (25.0 % of the threads, memory 10G on GPU 0)"]
remaining:
  description: Names of all daemons that this module has set up on the host and not removed.
  returned: success
  type: list
  elements: str
service:
  description: Who starts and stops the daemons, V(systemd) or V(none).
  returned: success
  type: str
python:
  description: The Python interpreter that ran the module on the host.
  returned: success
  type: str
  sample: /usr/bin/python3
restart_pending:
  description: Names of daemons whose unit was changed after they started.
  returned: success
  type: list
  elements: str
backend:
  description: The backend that was used, null where no driver was needed.
  returned: success
  type: str
reset_required:
  description: Whether a GPU has to be reset; never for MPS.
  returned: success
  type: bool
reboot_required:
  description: Whether the host has to be rebooted; never for MPS.
  returned: success
  type: bool
error:
  description: Kind of the error.
  returned: failure
  type: str
  sample: InUse
clients:
  description: Process ids of the clients that are in the way.
  returned: when clients are in the way
  type: list
  elements: int
done:
  description: Steps that were done before one failed.
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

from ansible_collections.gpuops.sharing.plugins.module_utils._ansible import mps


def main() -> None:
    mps.main()


if __name__ == "__main__":
    main()
