# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The files of a daemon, word for word: a unit, a control program and a shell read them."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.gpuops.sharing.plugins.module_utils._mps import files, resolve, wish
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils.fakes import CARDS

HEADER = "# Written by the Ansible module gpuops.sharing.nvidia_mps; changes will be overwritten.\n"


def render(**options: t.Any) -> dict[str, str]:
    wishes = wish.parse([{"name": "render", "gpus": ["0"], **options}])
    return files.render(resolve.resolve(wishes, CARDS, {})["render"])


def test_every_file() -> None:
    assert render(gpus=["1", "0"], clients="4", pipe_directory="/srv/mps") == {
        "render.env": HEADER
        + "CUDA_VISIBLE_DEVICES=GPU-283ac4e4-651c-54fd-a922-7809abbd0253,GPU-283ac3e4-651c-534a-a922-7909abbd0be0\n"
        + "CUDA_MPS_PIPE_DIRECTORY=/srv/mps\n"
        + "CUDA_MPS_LOG_DIRECTORY=/var/log/nvidia-mps/render\n"
        + "GPUOPS_COMPUTE_MODE=exclusive_process\n",
        "render.commands": "set_default_active_thread_percentage 25.0\n"
        "set_default_device_pinned_mem_limit 0 10G\n"
        "set_default_device_pinned_mem_limit 1 10G\n",
        "render.client.sh": HEADER + "export CUDA_MPS_PIPE_DIRECTORY=/srv/mps\n",
    }


@pytest.mark.parametrize(
    ("options", "name", "line"),
    [
        ({"compute_mode": "unchanged"}, "render.env", "GPUOPS_COMPUTE_MODE=unchanged"),
        ({}, "render.commands", "set_default_active_thread_percentage 100.0"),
        ({"log_directory": "/srv/log"}, "render.env", "CUDA_MPS_LOG_DIRECTORY=/srv/log"),
    ],
)
def test_a_line(options: dict[str, t.Any], name: str, line: str) -> None:
    assert line in render(**options)[name].splitlines()


def test_the_names_are_known_before_the_contents() -> None:
    assert files.names("render") == list(render())
