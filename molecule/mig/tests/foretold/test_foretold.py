# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Check mode on a host where nothing is installed yet tells what would come. That it changes nothing is tested next."""

from __future__ import annotations

import pytest
from systems import Played, play


@pytest.fixture(scope="module")
def foretold() -> Played:
    return play("molecule/mig/converge.yml", "--check", "--diff")


def test_what_would_be_installed_and_cut_counts_as_changed(foretold: Played) -> None:
    assert foretold.recap == {"gpuops-deb12": (4, 0), "gpuops-deb13": (4, 0)}, foretold.output


def test_cards_are_drawn_as_they_would_be(foretold: Played) -> None:
    assert "+GPU 0  | 3g.71gb(1c,1c)|1g.35gb| . | . |" in foretold.output
    assert "+GPU 3  |1g.18gb|1g.18gb|1g.18gb|1g.18gb|1g.18gb|1g.18gb|1g.18gb|   .   |" in foretold.output


def test_modes_are_told_where_the_driver_offers_no_profiles_yet(foretold: Played) -> None:
    card = "GPU 0 (NVIDIA A100-SXM4-40GB, GPU-283ac4e4-651c-54fd-a922-7809abbd0253, 0000:07:00.0)"
    assert f"-{card}: MIG mode disabled" in foretold.output
    assert f"+{card}: MIG mode enabled" in foretold.output


@pytest.mark.parametrize(
    "line",
    [
        "+Before=slurmd.service kubelet.service docker.service containerd.service nvidia-dcgm.service dcgm.service",
        '"path": "/etc/systemd/system/multi-user.target.wants/nvidia-mig-layout.service"',
    ],
)
def test_what_would_bring_them_back_is_told(foretold: Played, line: str) -> None:
    assert line in foretold.output
