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
  - Makes one configuration of a file for C(nvidia-mig-parted) (its C(version) V(v1)) into layouts as M(gpuops.sharing.nvidia_mig) takes them.
  - mig-parted removes all instances that its configuration does not name. The same is done with the layouts where purging is asked for.
  - Smaller compute instances (C(1c.3g.20gb)) are put into GPU instances as mig-parted v0.15 puts them, each into the same GPU instance as the one before it
    as long as there is room, larger ones first. One that fills its GPU instance (C(3g.20gb)) is named in C(compute_instances), too, since layouts without
    it take any.
  - What mig-parted would refuse is an error, and so is a card in two entries, where mig-parted would apply both, one after the other.
    Other configurations of the file are not looked at.
positional: _input, config
options:
  _input:
    description:
      - The content of the file, as from P(ansible.builtin.from_yaml#filter), a dictionary with C(version) and C(mig-configs).
      - Entries of a configuration have C(devices) (V(all), or a list of indices), C(mig-enabled), C(mig-devices) (needed where C(mig-enabled) is V(true)),
        and may have C(device-filter). Other fields are an error.
    type: dict
    required: true
  config:
    description: The name of the configuration. It can be left out, or be empty, where the file has only one.
    type: str
  device_filters:
    description:
      - Which GPUs of the host each C(device-filter) of the configuration means, a dictionary. Layouts name cards, and not models as mig-parted does.
      - Keys are device-filters as in the file, in quotes, since YAML reads V(0x20B010DE) without them as a number. Case does not matter.
        More keys than the configuration has are allowed, so that one dictionary does for several files.
      - Values are a list of indices, UUIDs or PCI addresses, one of these, a text with several of them and commas between, as a survey delivers it,
        V(all) for all GPUs of the host, or an empty list for none. A card that is named twice counts once.
      - A C(device-filter) of the configuration that is not told here is an error.
      - As with mig-parted, an entry whose filters mean no GPU of the host, or none of its C(devices), is left out.
        A file for nodes of several models has such entries on each node.
      - Where an entry with a filter has a list of C(devices), name the cards by index here. Which index a UUID or a PCI address has cannot be told,
        so these are an error then.
    type: dict
    default: {}
seealso:
  - module: gpuops.sharing.nvidia_mig
  - plugin: gpuops.sharing.to_mig_parted
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Cut the cards as a configuration of mig-parted says
  gpuops.sharing.nvidia_mig:
    layouts: "{{ lookup('ansible.builtin.file', 'config.yaml') | from_yaml | gpuops.sharing.from_mig_parted('all-1g.5gb') }}"
    purge: true

- name: Show the layouts of a configuration that chooses by model, on a host with two A100 40GB
  ansible.builtin.debug:
    msg: "{{ config | gpuops.sharing.from_mig_parted('all-balanced', device_filters=models) }}"
  vars:
    config: "{{ lookup('ansible.builtin.file', 'config.yaml') | from_yaml }}"
    models:
      "0x20B010DE": [0, 1]
      "0x20B210DE": []

- name: Do the same where the cards come from a survey, as a text like 0,1
  ansible.builtin.debug:
    msg: "{{ config | gpuops.sharing.from_mig_parted('all-balanced', device_filters={'0x20B010DE': survey_cards, '0x20B210DE': []}) }}"
  vars:
    config: "{{ lookup('ansible.builtin.file', 'config.yaml') | from_yaml }}"
"""

RETURN = r"""
_value:
  description: Layouts, one for each entry of the configuration that means GPUs of this host. Empty where none does.
  type: list
  elements: dict
  sample: [{"gpus": ["all"], "enabled": true, "instances": [{"profile": "1g.5gb", "count": 7}]}]
"""

import typing as t

from ansible.errors import AnsibleFilterError
from ansible_collections.gpuops.sharing.plugins.module_utils._errors import SharingError
from ansible_collections.gpuops.sharing.plugins.module_utils._mig import mig_parted


def from_mig_parted(data: t.Any, config: t.Any = None, device_filters: t.Any = None) -> list[dict[str, t.Any]]:
    """Return the layouts."""
    try:
        return mig_parted.from_v1(data, config, device_filters)
    except SharingError as exc:
        raise AnsibleFilterError(f"from_mig_parted: {exc.message}") from exc


class FilterModule:
    """Makes the filter known."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filter by its name."""
        return {"from_mig_parted": from_mig_parted}
