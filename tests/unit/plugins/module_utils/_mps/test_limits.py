# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Percentages and sizes: what is taken reads back exactly, all else is refused with its remedy."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.gpuops.sharing.plugins.module_utils._errors import BadOption, DoesNotFit
from ansible_collections.gpuops.sharing.plugins.module_utils._mps import limits
from ansible_collections.gpuops.sharing.plugins.module_utils._mps.limits import Limits
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils.fakes import A100


def test_every_percentage_that_a_daemon_can_show_reads_back() -> None:
    for tenths in range(1, limits.FULL + 1):
        assert limits.parse_percentage(limits.show_percentage(tenths), "p") == tenths
