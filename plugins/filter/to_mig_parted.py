# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A file of NVIDIA's mig-parted from MIG layouts."""

from __future__ import annotations

DOCUMENTATION = r"""
name: to_mig_parted
short_description: A configuration file of NVIDIA's mig-parted from MIG layouts
version_added: 0.1.0
author:
  - gpuops.sharing contributors (@gpuops)
description:
  - Makes layouts as M(gpuops.sharing.nvidia_mig) takes and returns them into the content of a file for C(nvidia-mig-parted) (its C(version) V(v1))
    with one configuration.
  - What such a file cannot say is an error and never lost in silence.
  - It knows cards only by index. O(gpus) tells the indices of cards that layouts name by UUID or PCI address.
  - It knows no places, neither C(start) of a GPU instance nor that of a compute instance (V(1c.3g.20gb:2)). O(drop_starts) leaves them out.
  - It always says the instances. A layout without C(instances) (only the mode) cannot be said. Give an empty list for none.
  - It counts compute instances and does not say which of them share a GPU instance. Those that mig-parted v0.15 would put together in another way
    cannot be said. It fills each GPU instance before the next, larger ones first.
  - A GPU instance without C(compute_instances) becomes one that a single compute instance fills.
positional: _input, config
options:
  _input:
    description:
      - Layouts, each with C(gpus), C(enabled) and C(instances), as in option O(gpuops.sharing.nvidia_mig#module:layouts). Other keys are an error,
        and so is a card that is named twice.
    type: list
    elements: dict
    required: true
  config:
    description: The name of the configuration.
    type: str
    required: true
  gpus:
    description:
      - The GPUs of the host, RV(gpuops.sharing.nvidia_mig#module:gpus) or RV(gpuops.sharing.nvidia_gpu_info#module:gpus).
        Looked at are C(index), C(uuid) and C(pci_bus_id).
      - Needed where layouts name GPUs by UUID or PCI address, as those do that M(gpuops.sharing.nvidia_mig) returns.
    type: list
    elements: dict
  drop_starts:
    description:
      - V(true) leaves places out, and mig-parted chooses them. Devices may have other UUIDs then.
      - With V(false), a place in a layout is an error.
    type: bool
    default: false
seealso:
  - module: gpuops.sharing.nvidia_mig
  - plugin: gpuops.sharing.from_mig_parted
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Write a file for mig-parted
  ansible.builtin.copy:
    content: "{{ layouts | gpuops.sharing.to_mig_parted('ours') | to_nice_yaml }}"
    dest: /etc/nvidia-mig-manager/config.yaml
    mode: "0644"
  vars:
    layouts:
      - gpus: [0, 1]
        instances: [{profile: 1g.5gb, count: 7}]

- name: Cut two cards
  gpuops.sharing.nvidia_mig:
    layouts:
      - gpus: [0, 1]
        instances: [{profile: 3g.20gb}, {profile: 1g.5gb, count: 3}]
  register: cut

- name: Show what is there now as a configuration of mig-parted
  ansible.builtin.debug:
    msg: "{{ cut.layouts | gpuops.sharing.to_mig_parted('found', gpus=cut.gpus, drop_starts=true) }}"
"""

RETURN = r"""
_value:
  description: The content of the file.
  type: dict
  sample:
    version: v1
    mig-configs:
      ours:
        - devices: [0, 1]
          mig-enabled: true
          mig-devices: {"1g.5gb": 7}
"""

import typing as t

from ansible.errors import AnsibleFilterError
from ansible.module_utils.parsing.convert_bool import boolean
from ansible_collections.gpuops.sharing.plugins.module_utils._errors import SharingError
from ansible_collections.gpuops.sharing.plugins.module_utils._mig import mig_parted_export


def to_mig_parted(layouts: t.Any, config: t.Any, gpus: t.Any = None, drop_starts: t.Any = False) -> dict[str, t.Any]:
    """Return the file's content."""
    try:
        drop = boolean(drop_starts)
    except TypeError as exc:
        raise AnsibleFilterError(f"to_mig_parted: drop_starts: {exc}") from exc
    try:
        return mig_parted_export.to_v1(layouts, config, gpus, drop)
    except SharingError as exc:
        raise AnsibleFilterError(f"to_mig_parted: {exc.message}") from exc


class FilterModule:
    """Makes the filter known."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filter by its name."""
        return {"to_mig_parted": to_mig_parted}
