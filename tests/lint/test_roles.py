# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The check of the roles finds what it is there to find."""

from __future__ import annotations

import pathlib

import pytest

import roles


def complaints(folder: pathlib.Path, defaults: str, options: str) -> list[str]:
    role = folder / "card"
    for name, text in (
        ("defaults/main.yml", defaults),
        ("meta/argument_specs.yml", f"argument_specs: {{main: {{options: {options}}}}}"),
    ):
        (role / name).parent.mkdir(parents=True)
        (role / name).write_text(text, encoding="utf-8")
    return list(roles.complaints(role))


@pytest.mark.parametrize(
    ("defaults", "options", "complaint"),
    [
        ("card_gpu: 0", "{}", "card: card_gpu has a default but no argument spec"),
        ("", "{card_gpu: {default: 0}}", "card: card_gpu has a default in the argument spec only"),
        ("card_gpu: 1", "{card_gpu: {default: 0}}", "card: card_gpu is 1 by default, 0 in the spec"),
        ("card_gpu: 1", "{card_gpu: {type: int}}", "card: card_gpu has a default that the argument spec does not tell"),
        ("gpu: 1", "{gpu: {default: 1}}", "card: gpu does not begin with card_"),
    ],
)
def test_a_difference_is_named(tmp_path: pathlib.Path, defaults: str, options: str, complaint: str) -> None:
    assert complaints(tmp_path, defaults, options) == [complaint]


def test_agreement_and_required_options_are_fine(tmp_path: pathlib.Path) -> None:
    assert complaints(tmp_path, "card_mode: shared", "{card_gpu: {required: true}, card_mode: {default: shared}}") == []


def test_a_role_without_specs_is_named(tmp_path: pathlib.Path) -> None:
    assert list(roles.complaints(tmp_path)) == [f"{tmp_path.name}: has no meta/argument_specs.yml"]
