# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""At boot: cards are in their mode before a daemon starts, and a card that is not there is an error."""

from __future__ import annotations

import pathlib

import pytest
from ansible_collections.gpuops.sharing.plugins.module_utils._errors import NoGpu, NotReadBack, StateUnreadable
from ansible_collections.gpuops.sharing.plugins.module_utils._gpu import Gpu
from ansible_collections.gpuops.sharing.plugins.module_utils._mps import boot, files, resolve, wish
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils.fakes import (
    A100,
    CARDS,
    SECOND_A100,
    FakeDriver,
)

BOTH = f"{A100.uuid},{SECOND_A100.uuid}"
EXCLUSIVE = {"CUDA_VISIBLE_DEVICES": BOTH, "GPUOPS_COMPUTE_MODE": "exclusive_process"}


def test_the_environment_is_what_the_module_wrote(tmp_path: pathlib.Path) -> None:
    wishes = wish.parse([{"name": "render", "gpus": ["all"]}])
    contents = files.render(resolve.resolve(wishes, CARDS, {})["render"])
    (tmp_path / "render.env").write_text(contents["render.env"], encoding="utf-8")
    assert boot.environment("render", str(tmp_path)) == {
        **EXCLUSIVE,
        "CUDA_MPS_PIPE_DIRECTORY": "/run/nvidia-mps/render",
        "CUDA_MPS_LOG_DIRECTORY": "/var/log/nvidia-mps/render",
    }


def test_a_daemon_that_was_never_set_up(tmp_path: pathlib.Path) -> None:
    with pytest.raises(
        StateUnreadable, match=f"^{tmp_path}/render.env is missing: daemon 'render' was never set up here$"
    ):
        boot.environment("render", str(tmp_path))


def test_what_differs_is_set() -> None:
    driver = FakeDriver([A100, SECOND_A100._replace(compute_mode="exclusive_process")])
    assert boot.bring_back(EXCLUSIVE, driver) == [f"{A100.label}: compute mode set to exclusive_process"]
    assert driver.calls == [(0, "exclusive_process")]
    assert boot.bring_back(EXCLUSIVE, driver) == []
    assert driver.calls == [(0, "exclusive_process")]


def test_only_the_daemons_cards_are_touched() -> None:
    driver = FakeDriver(CARDS)
    boot.bring_back({**EXCLUSIVE, "CUDA_VISIBLE_DEVICES": str(SECOND_A100.uuid)}, driver)
    assert driver.calls == [(1, "exclusive_process")]


@pytest.mark.parametrize("mode", [{}, {"GPUOPS_COMPUTE_MODE": "unchanged"}])
def test_a_mode_that_shall_stay_is_not_touched(mode: dict[str, str]) -> None:
    driver = FakeDriver(CARDS)
    assert boot.bring_back({"CUDA_VISIBLE_DEVICES": BOTH, **mode}, driver) == []
    assert driver.calls == []


@pytest.mark.parametrize("mode", ["exclusive_process", "unchanged"])
@pytest.mark.parametrize(
    "cards",
    [
        pytest.param([A100], id="not there"),
        pytest.param([A100, SECOND_A100._replace(compute_mode=None, error="GPU is lost")], id="there, but lost"),
    ],
)
def test_a_card_that_does_not_answer_is_an_error_before_any_changes(cards: list[Gpu], mode: str) -> None:
    driver = FakeDriver(cards)
    with pytest.raises(
        NoGpu, match=f"^{SECOND_A100.uuid}: there is no such GPU, or it does not answer; run the playbook again"
    ):
        boot.bring_back({**EXCLUSIVE, "GPUOPS_COMPUTE_MODE": mode}, driver)
    assert driver.calls == []


def test_a_setter_that_lies() -> None:
    with pytest.raises(NotReadBack) as failure:
        boot.bring_back(EXCLUSIVE, FakeDriver(CARDS, lying=True))
    assert failure.value.message == (
        f"The driver reported success, but the compute mode of {A100.label} reads default, not exclusive_process"
    )
