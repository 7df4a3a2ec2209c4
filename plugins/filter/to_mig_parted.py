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
  - Makes layouts as this collection takes them into the content of a file for C(nvidia-mig-parted) (its C(version) V(v1)) with one configuration.
  - What such a file cannot say is an error. That is C(start), cards named by UUID or PCI address, a layout without C(instances) (only the mode), and
    compute instances that mig-parted would put into GPU instances in another way.
positional: _input, config
options:
  _input:
    description: Layouts.
    type: list
    elements: dict
    required: true
  config:
    description: The name of the configuration.
    type: str
    required: true
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
from ansible_collections.gpuops.sharing.plugins.module_utils._errors import SharingError
from ansible_collections.gpuops.sharing.plugins.module_utils._mig import mig_parted


def to_mig_parted(layouts: t.Any, config: str) -> dict[str, t.Any]:
    """Return the file's content."""
    try:
        return mig_parted.to_v1(layouts, config)
    except SharingError as exc:
        raise AnsibleFilterError(f"to_mig_parted: {exc.message}") from exc


class FilterModule:
    """Makes the filter known."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filter by its name."""
        return {"to_mig_parted": to_mig_parted}
