#!/usr/bin/python
# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
---
module: nvidia_mig
short_description: Cut NVIDIA GPUs into MIG instances
version_added: 0.1.0
description:
  - Makes the MIG mode and the MIG instances of a host's GPUs as declared, and reads the result back.
  - One call plans the whole host. The plan is exact and made before anything is touched. It keeps every instance that may stay,
    never destroys one that is in use, and creates with explicit placement.
    Where no plan exists, the task fails with a map of the slots and what blocks, and nothing was changed.
  - With O(backend=nvidia_smi), what a GPU offers can be read only in MIG mode. The plan of a GPU out of MIG mode is then made as soon as the mode is on,
    and the mode is taken back where the layout does not fit.
  - GPUs that match, and GPUs that are not named, see no call that changes anything.
  - Where a step fails midway, what was done is taken back as far as possible, and the failure tells what was and what was not.
  - Instances are lost at a reboot and at a reset, and on Hopper and newer so is the mode.
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
options:
  layouts:
    description:
      - How GPUs shall be cut. A GPU in two layouts is an error.
    type: list
    elements: dict
    required: true
    suboptions:
      gpus:
        description:
          - The GPUs of this layout, each by index (V(0)), UUID (V(GPU-...)) or PCI address (in quotes, V("0000:07:00.0")).
          - Or V(all), which means those that answer and have MIG; a warning names the others.
        type: list
        elements: str
        required: true
      enabled:
        description: Whether MIG mode shall be on. Switching it off needs a GPU without instances, or O(purge=true).
        type: bool
        default: true
      instances:
        description:
          - GPU instances that shall be there. Those that exist count. Left out, only the mode is asked for; an empty list with O(purge=true) empties the GPU.
        type: list
        elements: dict
        suboptions:
          profile:
            description:
              - Name of a profile as the GPU's own driver offers it (V(1g.5gb), V(3g.20gb), V(1g.5gb+me)). Suffixes are part of the name.
            type: str
            required: true
          count:
            description: How many.
            type: int
            default: 1
          start:
            description: Slot where the instance shall begin, in the units of C(nvidia-smi mig -lgipp). Left out, any place will do. Needs a count of 1.
            type: int
          compute_instances:
            description:
              - Names of the compute instances in it (V(1c.3g.20gb)), each with its start if that matters (V(1c.3g.20gb:2)), counted in compute slices
                of the GPU instance as by C(nvidia-smi mig -lcipp). They are compared by number, and by place where a start is given.
              - Left out, one that fills the GPU instance is made in a new one, and any will do in one that is there.
            type: list
            elements: str
  purge:
    description: Destroy what else is there, unless it is in use. Without it nothing is ever destroyed, and surplus instances stay.
    type: bool
    default: false
  allow_reset:
    description: Reset a GPU where its driver needs that to change the mode, if it is idle. Only GPUs that need it are reset.
    type: bool
    default: false
  protect:
    description:
      - Instances that must stay although the driver shows nobody in them (idle containers, allocations of Slurm),
        each by the UUID of a MIG device (V(MIG-...)), or as GPU and GPU instance id (V(0/13), V(GPU-.../13), V(0000:07:00.0/13)).
      - What names nothing on the GPUs of this task is an error; a GPU instance of another GPU is passed over.
    type: list
    elements: str
    default: []
  layout_file:
    description:
      - File in which the layouts are written down as RV(layouts) tells them, for the program that brings them back at boot (role P(gpuops.sharing.mig#role)).
      - Entries of other GPUs in it stay as they are, unless every GPU of the host answers and there is no such one any more. A warning names these.
      - A GPU whose MIG mode is off has no entry, and a file without entries is removed.
    type: path
notes:
  - Refused are GPUs that a whole-card MPS control daemon serves, and GPUs in another compute mode than the default one, unless MIG mode is to be switched off.
  - With persistence mode off the driver may be unloaded while nobody uses it. Instances last as long as it is loaded, and on Hopper and newer so does the mode.
seealso:
  - module: gpuops.sharing.nvidia_gpu_info
  - module: gpuops.sharing.nvidia_mps
"""

EXAMPLES = r"""
---
- name: Seven small instances on two GPUs, half a GPU free on a third
  gpuops.sharing.nvidia_mig:
    layouts:
      - gpus: [0, 1]
        instances:
          - profile: 1g.5gb
            count: 7
      - gpus: [2]
        instances:
          - profile: 3g.20gb
            start: 4
            compute_instances: [1c.3g.20gb, 1c.3g.20gb]
    purge: true

- name: The same on every GPU that has MIG, and back again at boot
  gpuops.sharing.nvidia_mig:
    layouts:
      - gpus: all
        instances:
          - profile: 3g.20gb
            count: 2
            compute_instances: ["2c.3g.20gb:0", "1c.3g.20gb:2"]
    layout_file: /etc/nvidia-mig-layouts.json

- name: Whole GPUs again
  gpuops.sharing.nvidia_mig:
    layouts:
      - gpus: all
        enabled: false
    purge: true
    allow_reset: true
"""

RETURN = r"""
gpus:
  description: The GPUs of the layouts, in order of index. After a failure halfway, those that still answer, as they are then.
  returned: success, and when a step failed
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
      description: C(mig) (C(capable), C(current), C(pending)) and C(instances) before the task.
      type: dict
    after:
      description:
        - The same after the task, read back, never predicted. Each instance has C(gi_id), C(profile), C(placement) (C(start), C(size))
          and C(compute_instances), and each of these C(ci_id), C(profile), C(placement), C(uuid) and C(processes). In check mode the same as RV(gpus[].before).
      type: dict
    profiles:
      description:
        - The profiles that the GPU's driver offers, as filter P(gpuops.sharing.mig_capacity#filter) reads them.
          Empty where they were not needed, or can be told only in MIG mode.
      type: list
      elements: dict
steps:
  description: What was done, or would be done in check mode, in order.
  returned: success
  type: list
  elements: str
layouts:
  description:
    - The GPUs as they are now (in check mode, as they would be) in the form of O(layouts), one entry a GPU, by UUID and with every start.
      These lead to the same instances with the same UUIDs, after a reboot as well.
    - In check mode, compute instances to be made in a new GPU instance have no start. Their places can be asked only of one that is there.
  returned: success
  type: list
  elements: dict
  sample:
    - gpus: [GPU-283ac4e4-651c-54fd-a922-7809abbd0253]
      enabled: true
      instances:
        - profile: 3g.20gb
          start: 4
          compute_instances: ["2c.3g.20gb:0", "1c.3g.20gb:2"]
saved_layouts:
  description: What is in O(layout_file) now (in check mode, what would be), those of other GPUs too. Empty without O(layout_file).
  returned: success
  type: list
  elements: dict
backend:
  description: The backend that was used.
  returned: success
  type: str
python:
  description: The Python interpreter that ran the module on the host.
  returned: success
  type: str
  sample: /usr/bin/python3
service:
  description: V(systemd) where it runs the host, else V(none).
  returned: success
  type: str
reset_required:
  description:
    - Whether a GPU has to be reset to change its mode. In a success it never has.
    - Where a failure says so, the mode was taken back. Allow it with O(allow_reset).
  returned: success, and when a mode could not be brought into force
  type: bool
reboot_required:
  description:
    - Whether the host has to be rebooted to change a mode. In a success it never has.
    - Where a failure says so, the mode was taken back. Set it by hand with C(nvidia-smi -mig), reboot, and run again.
  returned: success, and when a mode could not be brought into force
  type: bool
error:
  description: Kind of the error.
  returned: failure
  type: str
  sample: InUse
option:
  description: The option whose value cannot be used.
  returned: when a value cannot be used
  type: str
  sample: layouts[0].instances[1].profile
profiles:
  description: Names of the profiles that the GPU offers.
  returned: when a profile is not known to the GPU
  type: list
  elements: str
slots:
  description: The slots of the GPU as they are, drawn in a line; a star marks what must stay.
  returned: when a layout cannot be placed
  type: str
  sample: "|1g.5gb*|  .   |  .   |  .   |          3g.20gb          |"
would_remove:
  description: GPU instances that O(purge=true) would remove, each with C(id), C(profile) and C(placement).
  returned: when nothing but O(purge) stands in the way
  type: list
  elements: dict
blocked_by:
  description: GPU instances that must stay and stand in the way, each with C(id), C(profile) and C(placement).
  returned: when what must stay stands in the way
  type: list
  elements: dict
holders:
  description: Who holds the GPU, each with C(pid), C(name) and C(service).
  returned: when a GPU is in use
  type: list
  elements: dict
modules:
  description: Kernel modules that may hold the GPU.
  returned: when a GPU is in use
  type: list
  elements: str
done:
  description: Steps that were done before one failed, or before something else was read back.
  returned: when a step failed
  type: list
  elements: str
undone:
  description: Steps that were taken back.
  returned: when a step failed
  type: list
  elements: str
not_undone:
  description:
    - Steps that could not be taken back, or that may have been done although they failed.
    - Where everything was done and something else is read back, nothing is taken back, and all steps stand here.
  returned: when a step failed
  type: list
  elements: str
"""

from ansible_collections.gpuops.sharing.plugins.module_utils._ansible import mig


def main() -> None:
    mig.main()


if __name__ == "__main__":
    main()
