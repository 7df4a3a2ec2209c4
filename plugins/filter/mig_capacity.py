# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How many MIG instances fit on a card."""

from __future__ import annotations

DOCUMENTATION = r"""
name: mig_capacity
short_description: How many GPU instances of which MIG profiles fit on a card
version_added: 0.1.0
author:
  - gpuops.sharing contributors (@gpuops)
description:
  - Says how many GPU instances of each profile fit on a card, each profile taken alone.
  - The answer is exact. It comes from the profiles and places that the card's own driver names, and on what is free from where the present instances
    lie, not from free memory. Instances are not moved.
positional: _input, profile
options:
  _input:
    description:
      - A card with its MIG profiles, an entry of C(gpus) in the result of M(gpuops.sharing.nvidia_mig).
      - The module tells C(profiles) only of a card whose layout gives C(instances) (an empty list will do), or that has instances.
        Some drivers tell them only while MIG mode is on. A card without C(profiles) is an error.
      - Looked at are C(profiles), a list of dictionaries with C(name), C(slices), C(most) and C(placements), and C(instances), a list of dictionaries
        with C(profile) and C(placement), or where there is none, those of C(after). A placement is a dictionary with C(start) and C(size), or a list of both.
      - C(index), C(name) and C(uuid) are used in messages only.
    type: dict
    required: true
  profile:
    description:
      - The profile to answer for, like V(2g.10gb). Case does not matter, and the word MIG before it may stand or not.
      - One that the card does not offer is an error, which names those that it does.
      - If not given, the answer is a dictionary of all the card's profiles.
    type: str
  free:
    description:
      - V(true) counts what fits beside the instances that are there.
      - V(false) counts what the card can take when it is empty.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Look at a card (instances are given, so that its profiles are told; nothing is changed)
  gpuops.sharing.nvidia_mig:
    layouts:
      - gpus: [0]
        instances: []
  check_mode: true
  register: looked

- name: Show how many instances of 2g.10gb the card can take when it is empty (3 on an A100 40GB)
  ansible.builtin.debug:
    msg: "{{ looked.gpus[0] | gpuops.sharing.mig_capacity('2g.10gb') }}"

- name: Show what can still be made beside the instances that are there
  ansible.builtin.debug:
    msg: "{{ looked.gpus[0] | gpuops.sharing.mig_capacity(free=true) }}"
"""

RETURN = r"""
_value:
  description:
    - The number of instances of O(profile).
    - Without O(profile), a dictionary with such a number for each of the card's profiles.
  type: raw
  sample: {"1g.5gb": 7, "1g.5gb+me": 1, "1g.10gb": 4, "2g.10gb": 3, "3g.20gb": 2, "4g.20gb": 1, "7g.40gb": 1}
"""

import typing as t

from ansible.errors import AnsibleFilterError
from ansible.module_utils.parsing.convert_bool import boolean
from ansible_collections.gpuops.sharing.plugins.module_utils._errors import SharingError
from ansible_collections.gpuops.sharing.plugins.module_utils._mig import capacity


def mig_capacity(card: t.Any, profile: str | None = None, free: t.Any = False) -> int | dict[str, int]:
    """Return how many instances fit."""
    try:
        beside = boolean(free)
    except TypeError as exc:
        raise AnsibleFilterError(f"mig_capacity: free: {exc}") from exc
    try:
        read = capacity.read_card(card)
        if profile is None:
            return capacity.capacity(read, beside)
        return capacity.fitting(read, read.find(profile, "profile"), beside)
    except SharingError as exc:
        raise AnsibleFilterError(f"mig_capacity: {exc.message}") from exc


class FilterModule:
    """Makes the filter known."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filter by its name."""
        return {"mig_capacity": mig_capacity}
