# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which GPUs an option names, and what is said where it names none."""

from __future__ import annotations

import typing as t

import pytest
import yaml
from ansible_collections.gpuops.sharing.plugins.module_utils import _selection
from ansible_collections.gpuops.sharing.plugins.module_utils._errors import BadOption, GpuLost, NoGpu
from ansible_collections.gpuops.sharing.plugins.module_utils._gpu import Gpu
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils.fakes import A100, CARDS, SECOND_A100

LOST = Gpu(index=2, uuid="GPU-3", error="GPU is lost")


@pytest.mark.parametrize(
    ("tokens", "index"),
    [
        (["0"], 0),
        ([0], 0),
        ([" 1 "], 1),
        (["01"], 1),
        ([A100.uuid], 0),
        ([str(A100.uuid).upper()], 0),
        (["0000:0f:00.0"], 1),
        (["0000:0F:00.0"], 1),
        (["00000000:0F:00.0"], 1),
        (["0f:00.0"], 1),
        (["0F:00"], 1),
    ],
)
def test_every_spelling_of_a_gpu(tokens: list[t.Any], index: int) -> None:
    chosen = _selection.choose(_selection.clean(tokens, "gpus"), CARDS, "gpus")
    assert [gpu.index for gpu in chosen] == [index]


def test_gpus_come_in_order_of_their_index() -> None:
    assert _selection.choose(["1", "0"], CARDS, "gpus") == [A100, SECOND_A100]


def test_all_means_those_that_answer() -> None:
    assert _selection.choose(["all"], (*CARDS, LOST), "gpus") == [A100, SECOND_A100]


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ([], "gpus: '[]': names no GPU; give an index, a UUID, a PCI address, or 'all'"),
        ([""], "gpus: '': is empty; give an index, a UUID, a PCI address, or 'all'"),
        (["  "], "gpus: '': is empty"),
        (["0", ""], "gpus: '': is empty"),
        (["-1"], "gpus: '-1': an index counts from 0"),
        (["1.5"], "gpus: '1.5': is no GPU index"),
        (["64"], "gpus: '64': is no GPU index"),
        (["first"], "gpus: 'first': is no index, UUID (GPU-...), PCI address (0000:07:00.0), or 'all'"),
        (["ALL"], "gpus: 'ALL': is no index"),
        (["\u00b2"], "gpus: '\u00b2': is no index"),
        (["7:00.0"], "gpus: '7:00.0': is no index"),
        (["0,1"], "gpus: '0,1': is no index"),
        (["MIG-cf0e1cb5"], "gpus: 'MIG-cf0e1cb5': names a MIG instance; this option takes whole GPUs"),
        (["all", "0"], "gpus: 'all, 0': 'all' stands alone; drop it or drop the others"),
        (["all", "all"], "gpus: 'all, all': 'all' stands alone"),
    ],
)
def test_what_can_never_name_a_gpu(tokens: list[t.Any], message: str) -> None:
    with pytest.raises(BadOption) as failure:
        _selection.clean(tokens, "gpus")
    assert failure.value.message.startswith(message)
    assert failure.value.details["option"] == "gpus"


@pytest.mark.parametrize(
    ("address", "remedies"),
    [
        ("07:00.0", ['"07:00.0"']),
        ("0000:07:00.0", ['"07:00.0"']),
        ("00:05.0", ['"00:05.0"']),
        ("07:00.1", ['"07:00.1"']),
        ("10:00", ['"10:00.0"']),
        ("81:00.0", ['"81:00.0"', '"0001:21:00.0"']),
        ("0001:00:00.0", ['"60:00.0"', '"0001:00:00.0"']),
        ("0002:00:00.0", ['"0002:00:00.0"']),
    ],
)
def test_a_pci_address_that_yaml_made_a_number(address: str, remedies: list[str]) -> None:
    token = yaml.safe_load(address)
    assert isinstance(token, (int, float))
    with pytest.raises(BadOption) as failure:
        _selection.clean([token], "gpus")
    message = failure.value.message
    assert message.startswith(f"gpus: '{token}': is no GPU index; YAML reads an unquoted PCI address as a number")
    assert message.endswith(f"if {' or '.join(remedies)} is meant, write it in quotes")
    for remedy in remedies:
        _selection.clean([yaml.safe_load(remedy)], "gpus")


@pytest.mark.parametrize(
    ("tokens", "twice"),
    [
        (["0", "0"], "0, 0"),
        (["0", "07:00.0"], "0, 07:00.0"),
        ([str(A100.uuid), "00000000:07:00.0"], f"{A100.uuid}, 00000000:07:00.0"),
    ],
)
def test_the_same_gpu_in_two_spellings(tokens: list[str], twice: str) -> None:
    with pytest.raises(BadOption) as failure:
        _selection.choose(tokens, CARDS, "gpus")
    assert failure.value.message == f"gpus: '{twice}': both name {A100.label}; name each GPU once"


@pytest.mark.parametrize("name", ["2", "GPU-none", "0000:55:00.0"])
def test_an_unknown_gpu_is_answered_with_those_that_are_there(name: str) -> None:
    with pytest.raises(NoGpu) as failure:
        _selection.choose([name], CARDS, "gpus")
    assert (
        failure.value.message
        == f"gpus: '{name}': there is no such GPU on this host; there are: {A100.label}, {SECOND_A100.label}"
    )


def test_a_host_without_gpus() -> None:
    with pytest.raises(NoGpu, match="^gpus: all: this host has no GPU that answers; the driver shows none$"):
        _selection.choose(["all"], [], "gpus")
    with pytest.raises(NoGpu, match=r"no GPU that answers; there are: GPU 2 \(GPU-3\) \[GPU is lost\]$"):
        _selection.choose(["all"], [LOST], "gpus")


@pytest.mark.parametrize("name", ["2", "GPU-3"])
def test_a_lost_gpu_that_was_named(name: str) -> None:
    with pytest.raises(GpuLost) as failure:
        _selection.choose(["0", name], (*CARDS, LOST), "gpus")
    assert (
        failure.value.message
        == f"gpus: '{name}': GPU 2 (GPU-3) does not answer: GPU is lost; leave it out, or reset or reboot"
    )


def test_a_lost_gpu_that_was_not_named_is_in_nobodys_way() -> None:
    assert _selection.choose(["1"], (*CARDS, LOST), "gpus") == [SECOND_A100]


@pytest.mark.parametrize(
    "spellings",
    [["1", "01"], ["GPU-a", "gpu-A"], ["0000:0f:00.0", "0F:00", "00000000:0F:00.0"], ["all"]],
)
def test_all_spellings_of_a_gpu_share_a_key(spellings: list[str]) -> None:
    assert len({_selection.key(name) for name in spellings}) == 1
