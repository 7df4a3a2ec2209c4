# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations


class ModuleDocFragment:
    """Attributes that all modules of this collection document."""

    DOCUMENTATION = r"""
options: {}
attributes:
  check_mode:
    description: Can run in C(check_mode) and return changed status prediction without modifying target.
  diff_mode:
    description: Will return details on what has changed (or possibly needs changing in C(check_mode)), when in diff mode.
  idempotent:
    description: When run twice in a row outside check mode, with the same arguments, the second invocation indicates no change.
  platform:
    description: Target OS/families that can be operated against.
    support: full
    platforms: linux
"""

    ACTIONGROUP_NVIDIA = r"""
options: {}
attributes:
  action_group:
    description: Use C(group/gpuops.sharing.nvidia) in C(module_defaults) to set defaults for this module.
    support: full
    membership:
      - gpuops.sharing.nvidia
"""
