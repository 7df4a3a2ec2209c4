# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""MIG layouts from a file of NVIDIA's mig-parted."""

from __future__ import annotations

DOCUMENTATION = r"""
name: from_mig_parted
short_description: MIG layouts from a configuration file of NVIDIA's mig-parted
version_added: 0.1.0
author:
  - gpuops.sharing contributors (@gpuops)
description:
  - Makes one configuration of a file for C(nvidia-mig-parted) (its C(version) V(v1)) into layouts as this collection takes them.
  - mig-parted removes all instances that its configuration does not name. The same is done with the layouts where purging is asked for.
  - Smaller compute instances (C(1c.3g.20gb)) are put into GPU instances as mig-parted v0.15 puts them, each into the same GPU instance as the one before it
    as long as there is room, larger ones first.
positional: _input, config
options:
  _input:
    description: The content of the file, as from P(ansible.builtin.from_yaml#filter).
    type: dict
    required: true
  config:
    description: The name of the configuration. It can be left out where the file has only one.
    type: str
  device_filters:
    description:
      - Which GPUs of the host each C(device-filter) of the configuration means, a dictionary of lists of indices, UUIDs or PCI addresses.
      - Layouts name cards and not models. A C(device-filter) that is not told here is an error.
      - An empty list leaves the entries with that filter out.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Show the layouts of a configuration
  ansible.builtin.debug:
    msg: "{{ lookup('ansible.builtin.file', 'config.yaml') | from_yaml | gpuops.sharing.from_mig_parted('all-1g.5gb') }}"

- name: Show those of a configuration that chooses by model, on a host with two A100 40GB
  ansible.builtin.debug:
    msg: "{{ config | gpuops.sharing.from_mig_parted('all-balanced', device_filters={'0x20B010DE': [0, 1], '0x20B210DE': []}) }}"
  vars:
    config: "{{ lookup('ansible.builtin.file', 'config.yaml') | from_yaml }}"
"""

RETURN = r"""
_value:
  description: Layouts, one for each entry of the configuration that means GPUs of this host.
  type: list
  elements: dict
  sample: [{"gpus": ["all"], "enabled": true, "instances": [{"profile": "1g.5gb", "count": 7}]}]
"""

import typing as t

from ansible.errors import AnsibleFilterError
from ansible_collections.gpuops.sharing.plugins.module_utils._errors import SharingError
from ansible_collections.gpuops.sharing.plugins.module_utils._mig import mig_parted


def from_mig_parted(
    data: t.Any, config: str | None = None, device_filters: t.Mapping[str, t.Any] | None = None
) -> list[dict[str, t.Any]]:
    """Return the layouts."""
    try:
        return mig_parted.from_v1(data, config, device_filters or {})
    except SharingError as exc:
        raise AnsibleFilterError(f"from_mig_parted: {exc.message}") from exc


class FilterModule:
    """Makes the filter known."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filter by its name."""
        return {"from_mig_parted": from_mig_parted}
