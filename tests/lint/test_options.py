# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The check of the options finds what it is there to find."""

from __future__ import annotations

import pathlib

import options

MODULE = '''DOCUMENTATION = r"""
options:
  gpus: {type: list}
  limits: {type: list, suboptions: {size: {type: str}}}
"""
'''
SPECS = "argument_specs: {main: {options: {card_gpu: {}}}}"


def complaints(root: pathlib.Path, test: str) -> list[str]:
    for name, text in (
        ("plugins/modules/share.py", MODULE),
        ("roles/card/meta/argument_specs.yml", SPECS),
        ("tests/unit/test_share.py", test),
    ):
        (root / name).parent.mkdir(parents=True)
        (root / name).write_text(text, encoding="utf-8")
    return list(options.complaints(root))


def test_what_no_test_names_is_told(tmp_path: pathlib.Path) -> None:
    assert complaints(tmp_path, "share(limits=[], card_gpus=0)") == [
        "share: no test names the option gpus",
        "share: no test names the option size",
        "card: no test names the variable card_gpu",
    ]


def test_all_named_is_fine(tmp_path: pathlib.Path) -> None:
    assert complaints(tmp_path, "share(gpus, limits=[{size}]); card_gpu=0") == []
