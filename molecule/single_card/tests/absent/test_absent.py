# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Giving back what was given back changes nothing."""

from __future__ import annotations

from systems import NOTHING_CHANGED, play


def test_absent_again_changes_nothing() -> None:
    played = play("molecule/single_card/absent.yml")
    assert played.recap == NOTHING_CHANGED, played.output
