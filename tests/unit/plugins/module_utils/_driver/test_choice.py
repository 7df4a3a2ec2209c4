# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which backend serves a task."""

from __future__ import annotations

import types

import pytest
from ansible_collections.gpuops.sharing.plugins.module_utils._driver import choice, nvml, nvml_call
from ansible_collections.gpuops.sharing.plugins.module_utils._errors import BadOption, DriverAbsent
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils.fakes import FakeDriver, commands


class Nvml(FakeDriver):
    """NVML on a host that has it."""

    backend = "nvml"

    def __init__(self) -> None:
        super().__init__([])


@pytest.mark.parametrize(
    ("backend", "pynvml", "installed", "chosen"),
    [
        ("auto", True, ["nvidia-smi"], "nvml"),
        ("auto", True, [], "nvml"),
        ("auto", False, ["nvidia-smi"], "nvidia_smi"),
        ("nvml", True, ["nvidia-smi"], "nvml"),
        ("nvidia_smi", True, ["nvidia-smi"], "nvidia_smi"),
        ("nvidia_smi", False, ["nvidia-smi"], "nvidia_smi"),
    ],
)
def test_choice(monkeypatch: pytest.MonkeyPatch, backend: str, pynvml: bool, installed: list[str], chosen: str) -> None:
    monkeypatch.setattr(choice, "PYNVML_LACK", "" if pynvml else "is not installed")
    monkeypatch.setattr(nvml, "NvmlDriver", Nvml)
    assert choice.open_driver(backend, commands({}, *installed)).backend == chosen


@pytest.mark.parametrize(
    ("backend", "kind", "message"),
    [
        (
            "auto",
            DriverAbsent,
            "No usable NVIDIA driver: there is neither the command nvidia-smi nor the Python package nvidia-ml-py",
        ),
        ("nvidia_smi", DriverAbsent, "No usable NVIDIA driver: the command nvidia-smi was not found on this host"),
        ("nvml", BadOption, "backend: 'nvml': the Python package nvidia-ml-py is not installed for "),
    ],
)
def test_nothing_to_choose_from(
    monkeypatch: pytest.MonkeyPatch, backend: str, kind: type[Exception], message: str
) -> None:
    monkeypatch.setattr(choice, "PYNVML_LACK", "is not installed")
    with pytest.raises(kind) as failure:
        choice.open_driver(backend, commands({}))
    assert str(failure.value).startswith(message)


def test_nvml_is_not_replaced_by_nvidia_smi_when_it_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "PYNVML_LACK", "is not installed")
    with pytest.raises(BadOption, match="install 11.515 or newer there, or use backend nvidia_smi"):
        choice.open_driver("nvml", commands({}, "nvidia-smi"))


def test_a_binding_that_is_too_old_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "PYNVML_LACK", nvml_call.lack(types.SimpleNamespace(nvmlInit=print)))
    assert choice.open_driver("auto", commands({}, "nvidia-smi")).backend == "nvidia_smi"
    with pytest.raises(
        BadOption, match="nvidia-ml-py is older than 11.515 for .*; install 11.515 or newer there, or use backend"
    ):
        choice.open_driver("nvml", commands({}, "nvidia-smi"))


@pytest.mark.parametrize(
    ("binding", "problem"), [(None, "is not installed"), (types.SimpleNamespace(convertStrBytes=print), "")]
)
def test_what_is_wrong_with_a_binding(binding: object, problem: str) -> None:
    assert nvml_call.lack(binding) == problem
