# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Both driver backends tell and do the same of MIG, whichever nvidia-smi it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from _resident import MOCK_DRIVER
from mocked_machine import MockedMachine
from test_backends import BACKENDS, Ask, ask, asker, job

__all__ = ["ask", "job"]

# The stand-in is an interpreter's start slower, and held against the real ones elsewhere.
pytestmark = pytest.mark.parametrize("ask", [name for name in BACKENDS if name != "stand-in"], indirect=True)

Start = Callable[[str], MockedMachine]
MACHINE_FILES = MOCK_DRIVER / "machines"
WITHOUT_MIG = {"t4", "no-gpu", "no-driver", "mismatch"}
PENDING = {"a100-vm", "a100-reset-needed", "hgx-a100"}
MACHINES = sorted({path.stem for path in MACHINE_FILES.glob("*.yaml")} - WITHOUT_MIG - PENDING)
# nvidia-smi 535 and 550 are older than this card, and do not know all its profiles.
TOO_NEW = "rtx-pro-6000"
ROUNDING = 6  # MiB: nvidia-smi tells memory in hundredths of a GiB
A100 = "GPU 0 (NVIDIA A100-SXM4-40GB"

# Puts an instance of each profile that still fits on the card, and one or two compute instances of one slice into it.
FILL = """
card = nvmlDeviceGetHandleByIndex(0)
nvmlDeviceSetMigMode(card, 1)
answer = []
for number in range(NVML_GPU_INSTANCE_PROFILE_COUNT):
    try:
        instance = nvmlDeviceCreateGpuInstance(card, nvmlDeviceGetGpuInstanceProfileInfo(card, number).id)
        answer.append(nvmlGpuInstanceGetInfo(instance).id)
        for _part in range(len(answer) % 2 + 1):
            nvmlGpuInstanceCreateComputeInstance(instance, 0)
    except NVMLError:
        continue
"""
FIRST_DEVICE = "answer = nvmlDeviceGetUUID(nvmlDeviceGetMigDeviceHandleByIndex(nvmlDeviceGetHandleByIndex(0), 0))"


@pytest.mark.parametrize("name", MACHINES)
def test_profiles_placements_instances_and_processes(ask: Ask, start_machine: Start, job: int, name: str) -> None:
    machine = start_machine(name)
    assert len(machine.nvml(FILL)) >= 3
    machine.mock_driver("process", "add", machine.nvml(FIRST_DEVICE), job)
    told, expected = (way(machine, "mig", "0")["answer"] for way in (ask, asker("nvml")))
    profiles, all_profiles = ({profile[0]: profile for profile in found.pop("profiles")} for found in (told, expected))
    assert told == expected
    assert [part[4] for instance in told["instances"] for part in instance[3] if part[4]] == [[job]]
    assert all(part[3] for instance in told["instances"] for part in instance[3]), "every one has a UUID"
    assert set(profiles) == set(all_profiles) or (name == TOO_NEW and set(profiles) < set(all_profiles))
    for number, (_id, profile, slices, memory, most, places) in profiles.items():
        assert [number, profile, slices, most, places] == [*all_profiles[number][:3], *all_profiles[number][4:]]
        assert abs(memory - all_profiles[number][3]) < ROUNDING


def test_an_empty_card(ask: Ask, machine: MockedMachine) -> None:
    assert ask(machine, "mig-mode", "0", "on") == {"answer": [None, [True, True, True]]}
    assert ask(machine, "mig", "0")["answer"]["instances"] == []
    assert ask(machine, "mig-mode", "0", "off") == {"answer": [None, [True, False, False]]}


def test_a_card_out_of_mig_mode_has_no_profiles_or_tells_them(ask: Ask, machine: MockedMachine) -> None:
    """NVML does, nvidia-smi does not."""
    found = ask(machine, "mig", "0")
    assert found.get("error") == "NotSupported" or len(found["answer"]["profiles"]) == 7


def test_a_card_without_mig(ask: Ask, start_machine: Start) -> None:
    machine = start_machine("mixed")
    assert ask(machine, "mig-mode", "1", "on")["error"] == "NotSupported"
    assert ask(machine, "mig", "1")["error"] == "NotSupported"
    assert ask(machine, "read")["answer"][1]["mig"] == [False, False, False]


@pytest.mark.parametrize(
    ("activation", "reason"),
    [
        ("RESET_REQUIRED", "gpu requires reset"),
        ("IN_USE", "in use by another client"),
        ("NOT_SUPPORTED", "not supported"),
        ("TIMEOUT", "timeout"),
        ("UNKNOWN", "unknown error"),
    ],
)
def test_why_a_mode_is_pending(ask: Ask, machine: MockedMachine, tmp_path: Path, activation: str, reason: str) -> None:
    content = yaml.safe_load((MACHINE_FILES / "a100-reset-needed.yaml").read_text())
    content["gpus"][0]["mig_activation"] = activation
    (tmp_path / "machine.yaml").write_text(json.dumps(content))
    machine.mock_driver("down")
    machine.mock_driver("up", tmp_path / "machine.yaml")
    assert ask(machine, "mig-mode", "0", "on") == {"answer": [reason, [True, False, True]]}
    assert ask(machine, "mig-mode", "0", "off") == {"answer": [None, [True, False, False]]}


def test_create_and_destroy(ask: Ask, machine: MockedMachine) -> None:
    ask(machine, "mig-mode", "0", "on")
    large, small = (ask(machine, "create", "0", *what)["answer"] for what in (("3g.20gb", "4"), ("1g.5gb", "2")))
    parts = [ask(machine, "create-part", "0", str(large), name) for name in ("2c.3g.20gb", "1c.3g.20gb")]
    assert parts == [{"answer": 0}, {"answer": 1}]
    instances = asker("nvml")(machine, "mig", "0")["answer"]["instances"]
    assert [(one[0], one[1], one[2][0], [part[1] for part in one[3]]) for one in instances] == [
        (small, "1g.5gb", 2, []),
        (large, "3g.20gb", 4, ["2c.3g.20gb", "1c.3g.20gb"]),
    ]
    assert ask(machine, "destroy", "0", str(large))["error"] == "InUse"
    for part in ("0", "1"):
        assert ask(machine, "destroy", "0", str(large), part) == {"answer": None}
    for instance in (large, small):
        assert ask(machine, "destroy", "0", str(instance)) == {"answer": None}
    assert ask(machine, "mig", "0")["answer"]["instances"] == []


@pytest.mark.parametrize("value", ["on", "off"])
def test_persistence_mode(ask: Ask, machine: MockedMachine, value: str) -> None:
    assert ask(machine, "persistence", "1", value) == {"answer": value == "on"}


def refused(found: dict[str, Any], kind: str, words: str) -> None:
    assert found.get("error") == kind, found
    assert "Cannot " in found["message"] and words in found["message"]
    assert A100 in found["message"]


def test_refusals(ask: Ask, machine: MockedMachine, job: int) -> None:
    asker("nvml")(machine, "mig-mode", "0", "on")
    instance = str(asker("nvml")(machine, "create", "0", "3g.20gb", "4")["answer"])
    asker("nvml")(machine, "create-part", "0", instance, "3g.20gb")
    machine.mock_driver("process", "add", machine.nvml(FIRST_DEVICE), job)
    no_room = ask(machine, "create", "0", "1g.5gb", "4")
    refused(no_room, "CommandFailed", "create GPU instance 1g.5gb at 4:1 on")
    assert no_room["certain"], "somebody else's instance there is not taken for ours"
    refused(ask(machine, "create-part", "0", instance, "1c.3g.20gb"), "CommandFailed", "create compute instance")
    refused(
        ask(machine, "destroy", "0", instance, "0"), "InUse", f"destroy compute instance 0 in GPU instance {instance}"
    )
    refused(ask(machine, "destroy", "0", "9"), "CommandFailed", "GPU instance 9 of")
    refused(ask(machine, "destroy", "0", instance, "5"), "CommandFailed", "destroy compute instance 5")
    refused(ask(machine, "mig-mode", "0", "off"), "InUse", "disable MIG mode of")
    machine.mock_driver("fault", "nvmlDeviceCreateGpuInstanceWithPlacement", "UNKNOWN")
    assert not ask(machine, "create", "0", "1g.5gb", "0")["certain"], "it may have been made nevertheless"


MODE = ("nvmlDeviceSetMigMode", ("mig-mode", "0", "on"), "enable MIG mode of")
PERSISTENCE = ("nvmlDeviceSetPersistenceMode", ("persistence", "0", "on"), "set the persistence mode of")
CREATE = (
    "nvmlDeviceCreateGpuInstanceWithPlacement",
    ("create", "0", "1g.5gb", "3"),
    "create GPU instance 1g.5gb at 3:1",
)
CREATE_PART = (
    "nvmlGpuInstanceCreateComputeInstance",
    ("create-part", "0", "2", "3g.20gb"),
    "create compute instance 3g.20gb",
)
DESTROY = ("nvmlGpuInstanceDestroy", ("destroy", "0", "2"), "destroy GPU instance 2 of")


@pytest.mark.parametrize(
    ("what", "code", "kind"),
    [
        (MODE, "NOT_SUPPORTED", "NotSupported"),
        (MODE, "IN_USE", "InUse"),
        (PERSISTENCE, "NOT_SUPPORTED", "NotSupported"),
        (PERSISTENCE, "UNKNOWN", "CommandFailed"),
        (CREATE, "NOT_SUPPORTED", "NotSupported"),
        (CREATE, "NO_PERMISSION", "PermissionMissing"),
        (CREATE, "IN_USE", "InUse"),
        (CREATE, "GPU_IS_LOST", "GpuLost"),
        (CREATE, "INSUFFICIENT_RESOURCES", "CommandFailed"),
        (CREATE, "UNKNOWN", "CommandFailed"),
        (CREATE_PART, "INSUFFICIENT_RESOURCES", "CommandFailed"),
        (DESTROY, "IN_USE", "InUse"),
        (DESTROY, "GPU_IS_LOST", "GpuLost"),
    ],
)
def test_a_refusal_is_the_same_kind_of_error(
    ask: Ask, machine: MockedMachine, what: tuple[str, tuple[str, ...], str], code: str, kind: str
) -> None:
    function, call, words = what
    if what not in (MODE, PERSISTENCE):
        asker("nvml")(machine, "mig-mode", "0", "on")
        asker("nvml")(machine, "create", "0", "3g.20gb", "4")
    machine.mock_driver("fault", function, code)
    refused(ask(machine, *call), kind, words)


@pytest.mark.parametrize(
    "call", [("mig-mode", "0", "on"), ("create", "0", "1g.5gb", "3"), ("destroy", "0", "2"), ("persistence", "0", "on")]
)
def test_an_ordinary_user_may_not(ask: Ask, machine: MockedMachine, call: tuple[str, ...]) -> None:
    if call[0] not in ("mig-mode", "persistence"):
        asker("nvml")(machine, "mig-mode", "0", "on")
        asker("nvml")(machine, "create", "0", "3g.20gb", "4")
    assert ask(machine, *call, MOCK_DRIVER_UID="4242")["error"] == "PermissionMissing"


def test_a_lost_gpu_hides_no_instances_of_others(ask: Ask, machine: MockedMachine) -> None:
    machine.nvml(FILL)
    machine.mock_driver("lose", 1)
    found, expected = (way(machine, "mig", "0")["answer"]["instances"] for way in (ask, asker("nvml")))
    assert found == expected
