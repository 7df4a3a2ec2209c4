# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which names of compute modes are taken, and which cards have to change."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.gpuops.sharing.plugins.module_utils import _compute_mode
from ansible_collections.gpuops.sharing.plugins.module_utils._errors import BadOption, DoesNotFit
from ansible_collections.gpuops.sharing.plugins.module_utils._gpu import Mig
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils.fakes import A100, SECOND_A100

MIG = Mig(capable=True, current=True, pending=True)


@pytest.mark.parametrize("name", ["default", "exclusive_process", "prohibited", " default "])
def test_names_are_taken(name: str) -> None:
    assert _compute_mode.parse_mode(name) == name.strip()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("0", "mode: '0': give the mode by its name: default"),
        (0, "mode: '0': give the mode by its name: default"),
        (
            "1",
            "mode: '1': is exclusive_thread, which NVIDIA removed from its drivers; exclusive_process is what takes its place",
        ),
        ("2", "mode: '2': give the mode by its name: prohibited"),
        ("3", "mode: '3': give the mode by its name: exclusive_process"),
        ("4", "mode: '4': is no compute mode; give one of: default, exclusive_process, prohibited"),
        ("\u00b2", "mode: '\u00b2': is no compute mode"),
        ("-1", "mode: '-1': is no compute mode"),
        ("exclusive_thread", "mode: 'exclusive_thread': is exclusive_thread, which NVIDIA removed from its drivers"),
        ("Exclusive_Thread", "mode: 'Exclusive_Thread': is exclusive_thread, which NVIDIA removed"),
        ("EXCLUSIVE_PROCESS", "mode: 'EXCLUSIVE_PROCESS': give the mode by its name: exclusive_process"),
        ("Exclusive Process", "mode: 'Exclusive Process': give the mode by its name: exclusive_process"),
        ("Default", "mode: 'Default': give the mode by its name: default"),
        ("exclusive", "mode: 'exclusive': is no compute mode"),
        ("", "mode: '': is no compute mode"),
        (None, "mode: 'None': is no compute mode"),
    ],
)
def test_other_spellings_are_answered_with_the_name_that_is_meant(value: t.Any, message: str) -> None:
    with pytest.raises(BadOption) as failure:
        _compute_mode.parse_mode(value)
    assert failure.value.message.startswith(message)


def test_only_cards_that_differ_change() -> None:
    exclusive = SECOND_A100._replace(compute_mode="exclusive_process")
    assert _compute_mode.plan([A100, exclusive], "exclusive_process") == [A100]
    assert _compute_mode.plan([A100, exclusive], "default") == [exclusive]


def test_a_mode_that_cannot_be_read_is_set() -> None:
    unknown = A100._replace(compute_mode=None)
    assert _compute_mode.plan([unknown], "default") == [unknown]


def test_a_card_in_mig_mode_is_refused_before_any_changes() -> None:
    with pytest.raises(DoesNotFit) as failure:
        _compute_mode.plan([A100, SECOND_A100._replace(mig=MIG)], "exclusive_process")
    assert failure.value.message.startswith(f"gpus: {SECOND_A100.label} is in MIG mode")
    assert failure.value.message.endswith("leave it out, or disable its MIG mode first")


def test_a_card_in_mig_mode_that_matches_is_left_alone() -> None:
    assert _compute_mode.plan([A100._replace(mig=MIG)], "default") == []
