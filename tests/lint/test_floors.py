# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The check of the floors finds what it is there to find."""

from __future__ import annotations

import pathlib

import pytest

import floors


def complaints(folder: pathlib.Path, files: dict[str, str]) -> list[str]:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return floors.Floors(folder).complaints()


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("_gpu.py", "from ._selection import choose", "_gpu:1: floor 1 imports _selection of floor 3"),
        ("_gpu.py", "from . import _selection", "_gpu:1: floor 1 imports _selection of floor 3"),
        (
            "_driver/nvml_call.py",
            "from .._convergence import lock",
            "_driver.nvml_call:1: floor 2 imports _convergence of floor 4",
        ),
        (
            "_selection.py",
            "from ._driver import choice",
            "_selection:1: imports _driver, but floor 3 never touches a driver",
        ),
        ("_selection.py", "import os.path", "_selection:1: imports os, but floor 3 is pure functions on values"),
        ("_mps/control.py", "import ansible", "_mps.control:1: imports ansible, which only _ansible may"),
        (
            "_driver/nvidia_smi.py",
            "import pynvml",
            "_driver.nvidia_smi:1: imports pynvml, which only _driver.nvml_call may",
        ),
        ("_surprise.py", "", "_surprise: has no floor; give it one in tests/lint/floors.py"),
        ("_mps/__init__.py", "import os", "_mps/__init__.py: is not empty"),
        (
            "_gpu.py",
            "from ansible_collections.gpuops.sharing.plugins.module_utils._ansible import run",
            "_gpu:1: floor 1 imports _ansible of floor 5",
        ),
    ],
)
def test_a_broken_rule_is_named(tmp_path: pathlib.Path, name: str, text: str, complaint: str) -> None:
    assert complaints(tmp_path, {"_selection.py": "", name: text}) == [complaint]


def test_a_circle_is_named(tmp_path: pathlib.Path) -> None:
    files = {"_gpu.py": "from . import _errors", "_errors.py": "from ._gpu import Gpu"}
    assert complaints(tmp_path, files) == ["imports in a circle: _errors -> _gpu -> _errors"]


def test_imports_that_point_down_are_fine(tmp_path: pathlib.Path) -> None:
    files = {
        "_gpu.py": "import re",
        "_driver/__init__.py": "",
        "_driver/nvml_call.py": "import pynvml\nfrom .._gpu import Gpu\nfrom . import interface",
        "_driver/interface.py": "from .. import _gpu",
        "_ansible/command.py": "import ansible.module_utils.basic\nfrom .._driver import nvml",
    }
    assert complaints(tmp_path, files) == []
