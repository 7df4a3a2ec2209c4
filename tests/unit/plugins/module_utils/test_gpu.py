# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How GPUs are described."""

from __future__ import annotations

import pytest
from ansible_collections.gpuops.sharing.plugins.module_utils._gpu import Gpu, kernel_pci
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils.fakes import A100


@pytest.mark.parametrize(
    ("address", "kernel"),
    [
        ("00000000:07:00.0", "0000:07:00.0"),
        ("00000000:0F:00.0", "0000:0f:00.0"),
        ("0000:0f:00.0", "0000:0f:00.0"),
        ("0F:00.0", "0000:0f:00.0"),
        ("07:00", "0000:07:00.0"),
        ("0001:C1:1f.7", "0001:c1:1f.7"),
        ("00010000:07:00.0", "10000:07:00.0"),
        (" 07:00.0\n", "0000:07:00.0"),
        ("Somewhere", "somewhere"),
    ],
)
def test_pci_address_in_the_kernels_spelling(address: str, kernel: str) -> None:
    assert kernel_pci(address) == kernel


@pytest.mark.parametrize(
    ("capability", "architecture"),
    [
        ((2, 1), None),
        ((3, 5), "kepler"),
        ((6, 1), "pascal"),
        ((7, 0), "volta"),
        ((7, 2), "volta"),
        ((7, 5), "turing"),
        ((8, 0), "ampere"),
        ((8, 6), "ampere"),
        ((8, 9), "ada"),
        ((9, 0), "hopper"),
        ((12, 0), "blackwell"),
        (None, None),
    ],
)
def test_architecture(capability: tuple[int, int] | None, architecture: str | None) -> None:
    assert A100._replace(compute_capability=capability).architecture == architecture


@pytest.mark.parametrize(
    ("gpu", "label"),
    [
        (A100, "GPU 0 (NVIDIA A100-SXM4-40GB, GPU-283ac4e4-651c-54fd-a922-7809abbd0253, 0000:07:00.0)"),
        (Gpu(index=1, error="GPU is lost"), "GPU 1"),
        (Gpu(index=-1, uuid="GPU-1", error="does not answer"), "GPU GPU-1"),
    ],
)
def test_label_tells_all_that_identifies_a_gpu(gpu: Gpu, label: str) -> None:
    assert gpu.label == label
