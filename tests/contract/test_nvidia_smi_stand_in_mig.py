# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The stand-in for nvidia-smi says of MIG what NVIDIA's own says, and resets cards, which the real one cannot do here."""

from __future__ import annotations

import os
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import transcript
from _programs import require
from mocked_machine import MockedMachine

REAL = Path("/usr/bin/nvidia-smi")
RECORDED = transcript.read(Path(__file__).parent / "recordings" / "nvidia_smi_mig_535.txt")
SHOWN = ["mig -lgip", "mig -lgipp", "mig -lgi", "mig -lci", "mig -lcip", "mig -lcipp", "-L", ""]

Start = Callable[[str], MockedMachine]


def answer(run: transcript.Run, options: list[str], **variables: str) -> list[str]:
    ran = run(*options, **variables)
    return [transcript.normal(line) for line in ran.stdout.splitlines()] + [ran.stderr, f"[rc={ran.returncode}]"]


def real(machine: MockedMachine) -> transcript.Run:
    require(REAL.is_file(), "nvidia-smi 535 is not there: Debian 12's package nvidia-smi (non-free)")
    return partial(machine.run, REAL)


def differences(machine: MockedMachine, questions: list[list[str]], **variables: str) -> dict[str, object]:
    """Questions to which the stand-in and the real one give different answers, with both; they may change nothing."""
    found: dict[str, object] = {}
    for options in questions:
        answers = [answer(run, options, **variables) for run in (machine.smi, real(machine))]
        if answers[0] != answers[1]:
            found[" ".join(options)] = answers
    return found


@pytest.mark.parametrize("title", [section.title for section in RECORDED])
def test_as_recorded(title: str, start_machine: Start) -> None:
    (section,) = (section for section in RECORDED if section.title == title)
    machine = start_machine(section.machine)
    played = transcript.play_with(section, machine.smi, machine)
    assert [(step.command, step.answer) for step in played] == [(step.command, step.answer) for step in section.steps]


@pytest.mark.parametrize(
    ("name", "profiles"),
    [
        ("a30", "14,5"),
        ("a100-80gb-x2", "9,15,20"),
        ("h100-sxm", "9,15,19"),
        ("h100-pcie", "19,19,19,19,19,19,19"),
        ("h100-nvl", "5,9"),
        ("h200", "0"),
        ("b200", "0"),
    ],
)
def test_tables_of_other_cards(start_machine: Start, name: str, profiles: str) -> None:
    machine = start_machine(name)
    machine.smi("-i", "0", "-mig", "1")
    machine.smi("mig", "-i", "0", "-cgi", profiles, "-C")
    assert differences(machine, [options.split() for options in SHOWN]) == {}


def test_places_and_names_as_they_are_read(machine: MockedMachine) -> None:
    """What is made is destroyed again, so that both programs meet the same card."""
    machine.smi("-i", "0", "-mig", "1")
    wishes = [
        "14:0:1",
        "14:-1",
        ":0",
        "14:2a",
        "019",
        "19a",
        " 19",
        "1G.5GB",
        "MIG 1g.5gb+me",
        "4294967315",
        "14:8",
        ",19",
    ]
    made: dict[str, list[list[str]]] = {}
    for wish in [*wishes, "-1", "1g.5gb+me:2", "19:+3", "14:x", ""]:
        made[wish] = []
        for run in (machine.smi, real(machine)):
            made[wish].append(answer(run, ["mig", "-cgi", wish, "-C"]))
            machine.smi("mig", "-dci")
            machine.smi("mig", "-dgi")
    assert {wish: both for wish, both in made.items() if both[0] != both[1]} == {}


def test_commands_that_are_refused_or_left_out(machine: MockedMachine) -> None:
    machine.smi("-i", "0", "-mig", "1")
    machine.smi("mig", "-cgi", "9,14")
    machine.smi("mig", "-cci", "0,0", "-gi", "2")
    questions = [
        ["mig", *words.split()]
        for words in (
            "-foo",
            "-i",
            "-cgi",
            "-lgi foo",
            "-lgip=1",
            "-lgi=",
            "-lgi -i 0 mig",
            "-lgi -lci",
            "-lci -lcip",
            "-dgi -lgi",
            "-lcipp -lcip",
            "-lci -gi 2,99",
            "-lci -gi 99",
            "-lci -gi 02",
            "-lcip -gi 3",
            "-lci -ci 7",
            "-dci -ci 7",
            "-dgi -gi foo",
            "-dgi -gi 2",
            "--list-gpu-instances --id 0",
            "-i 1 -lgi",
            "-i 9 -lgi",
            "-cci 5",
            "-cci 0:9",
        )
    ]
    others = (["-mig"], ["-mig", "1", "-pm", "1"], ["-r", "-mig", "1"], ["-L", "-mig", "1"])
    assert differences(machine, [*questions, *others]) == {}


@pytest.mark.parametrize(
    "function",
    [
        "nvmlDeviceGetGpuInstanceProfileInfoV",
        "nvmlDeviceGetGpuInstances",
        "nvmlGpuInstanceGetInfo",
        "nvmlGpuInstanceGetComputeInstances",
        "nvmlComputeInstanceGetInfo",
        "nvmlDeviceGetMigDeviceHandleByIndex",
        "nvmlDeviceGetAttributes",
        "nvmlDeviceGetMigMode",
    ],
)
def test_what_cannot_be_read(machine: MockedMachine, function: str) -> None:
    machine.smi("-mig", "1")
    machine.smi("mig", "-cgi", "9,14", "-C")
    machine.mock_driver("fault", function, "INVALID_ARGUMENT")
    assert differences(machine, [options.split() for options in SHOWN]) == {}


@pytest.fixture
def busy(machine: MockedMachine) -> MockedMachine:
    """Processes in two MIG devices of one GPU instance and in another, and one on the card alone."""
    machine.smi("-i", "0", "-mig", "1")
    machine.smi("mig", "-cgi", "9,14")
    machine.smi("mig", "-cci", "0,0", "-gi", "2")
    machine.smi("mig", "-cci", "-gi", "3")
    machine.mock_driver("process", "add", 0, os.getpid(), "--gi", 2, "--ci", 1, "--memory", 100)
    machine.mock_driver("process", "add", 0, os.getppid(), "--gi", 3, "--ci", 0, "--kind", "mps-client")
    machine.mock_driver("process", "add", 0, 1, "--memory", 5)
    return machine


def test_processes_in_mig_devices(busy: MockedMachine) -> None:
    fields = "--query-compute-apps=pid,gpu_uuid,used_memory"
    questions = [[], ["-q", "-d", "PIDS"], [fields, "--format=csv"], ["--query-gpu=memory.used", "--format=csv"]]
    assert differences(busy, [*questions, ["mig", "-dci"], ["mig", "-dgi"]]) == {}


def test_user_without_privileges(busy: MockedMachine) -> None:
    """May see MIG devices, but neither who is on the card nor its instances."""
    questions = [[], ["-L"], ["-q", "-d", "PIDS"], ["--query-compute-apps=pid", "--format=csv"], ["-mig", "0"]]
    questions += [
        ["--query-gpu=memory.used", "--format=csv"],
        *(options.split() for options in SHOWN if "mig" in options),
    ]
    assert differences(busy, questions, MOCK_DRIVER_UID="1234") == {}
    assert "Insufficient Permissions" in busy.smi("mig", "-lgi", MOCK_DRIVER_UID="1234").stdout


def test_xml_has_the_mig_devices(busy: MockedMachine) -> None:
    found = []
    for run in (busy.smi, real(busy)):
        (card, _other) = ElementTree.fromstring(run("-q", "-x").stdout).iter("gpu")
        devices = card.find("mig_devices")
        assert devices is not None
        found.append([(element.tag, (element.text or "").strip()) for element in devices.iter()])
    assert len([tag for tag, _text in found[0] if tag == "mig_device"]) == 3
    assert found[0] == found[1]


def test_lie_says_that_instances_were_made_and_destroyed(machine: MockedMachine) -> None:
    machine.smi("-i", "0", "-mig", "1")
    machine.smi("mig", "-cgi", "14")
    machine.mock_driver("fault", "nvidia-smi", "LIE")
    created = machine.smi("mig", "-cgi", "9", "-C")
    assert created.stdout.startswith("Successfully created GPU instance ID  1")
    assert machine.smi("mig", "-dgi").stdout == "Successfully destroyed GPU instance ID  5 from GPU  0\n"
    machine.mock_driver("fault", "clear")
    assert "MIG 2g.10gb" in machine.smi("mig", "-lgi").stdout
    assert "MIG 3g.20gb" not in machine.smi("mig", "-lgi").stdout


MODES = ["--query-gpu=mig.mode.current,mig.mode.pending,persistence_mode", "--format=csv,noheader"]


def test_reset_makes_a_pending_mode_effective_and_takes_instances(start_machine: Start) -> None:
    machine = start_machine("a100-reset-needed")
    machine.smi("-pm", "1")
    machine.smi("-mig", "1")
    assert machine.smi(*MODES).stdout == "Disabled, Enabled, Enabled\n" * 2
    done = machine.smi("--gpu-reset", "-i", "0")
    assert (done.stdout, done.returncode) == ("GPU 00000000:07:00.0 was successfully reset.\nAll done.\n", 0)
    assert machine.smi(*MODES).stdout == "Enabled, Enabled, Disabled\nDisabled, Enabled, Enabled\n"
    machine.smi("mig", "-cgi", "19", "-C")
    assert machine.smi("-r", "-i", "0").returncode == 0
    assert machine.smi("mig", "-lgi").stdout == "No GPU instances found: Not Found\n"
    assert machine.calls()["resets"] == 2


def test_reset_is_refused_to_a_card_in_use(start_machine: Start) -> None:
    machine = start_machine("a100-reset-needed")
    machine.smi("-mig", "1")
    machine.mock_driver("process", "add", 1, os.getpid())
    ran = machine.smi("-r")
    assert ran.returncode == 255
    assert ran.stdout.startswith(
        "GPU 00000000:07:00.0 was successfully reset.\n"
        "The following GPUs could not be reset:\n  GPU 00000000:0F:00.0: In use by another client\n\n1 device is currently"
    )
    assert machine.smi(*MODES).stdout == "Enabled, Enabled, Disabled\nDisabled, Enabled, Disabled\n"


def test_reset_needs_privileges_and_hardware_that_can(start_machine: Start) -> None:
    ran = start_machine("a100-vm").smi("-r", "-i", "0")
    assert (ran.stdout, ran.returncode) == ("Resetting GPU 00000000:05:00.0 is not supported.\n", 3)
    ran = start_machine("a100-40gb").smi("-r", MOCK_DRIVER_UID="1234")
    assert (ran.stdout, ran.returncode) == ("Unable to reset GPU 00000000:07:00.0: Insufficient Permissions\n", 4)


def test_reset_of_cards_that_need_each_other(start_machine: Start) -> None:
    machine = start_machine("hgx-a100")
    machine.smi("-i", "0", "-mig", "1")
    ran = machine.smi("-r", "-i", "0,2")
    assert "must be reset together" in ran.stdout
    assert (ran.stdout.splitlines()[-1], ran.returncode) == ("1,3", 255)
    machine.mock_driver("process", "add", 3, os.getpid())
    assert machine.smi("-r").returncode == 255
    assert machine.calls()["resets"] == 0
    machine.mock_driver("process", "remove", 3, os.getpid())
    assert machine.smi("-r").returncode == 0
    assert machine.smi("-i", "0", *MODES).stdout == "Enabled, Enabled, Disabled\n"


def test_reset_that_lies(start_machine: Start) -> None:
    machine = start_machine("a100-reset-needed")
    machine.smi("-i", "0", "-mig", "1")
    machine.mock_driver("fault", "nvidia-smi", "LIE")
    assert "was successfully reset" in machine.smi("-r", "-i", "0").stdout
    assert machine.smi("-i", "0", *MODES).stdout == "Disabled, Enabled, Disabled\n"
