# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The stand-in for nvidia-smi says what NVIDIA's own says, refuses by name what it does not know, and fails on request."""

from __future__ import annotations

import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

import transcript
from _programs import SILENCE, STAND_INS, eventually, ignores_sigterm, require
from mocked_machine import MockedMachine

SMI = STAND_INS / "nvidia-smi"
REAL = Path("/usr/bin/nvidia-smi")
RECORDED = transcript.read(Path(__file__).parent / "recordings" / "nvidia_smi_535.txt")
# Recorded, but not known to the stand-in.
REFUSED = {"$ nvidia-smi --nope": "--nope"}
A100 = "GPU-283ac4e4-651c-54fd-a922-7809abbd0253"

# Questions beside the recorded ones; all only read.
QUESTIONS = (
    "",
    "-i 1",
    f"-i 1,{A100}",
    "-i 01 -L",
    "-L -d COMPUTE",
    "-q -d PIDS",
    "-q -d compute,pids -i 1",
    "--query --display=COMPUTE",
    "-d COMPUTE",
    "-q -d COMPUTE -c 0",
    "-q -x -d COMPUTE",
    "-x",
    "-i",
    "-i=0 --query-gpu=index --format=csv",
    "-i 1,0,0 --query-gpu=index,count --format=csv",
    "-i 01 --query-gpu=index --format=csv",
    "-i -1 --query-gpu=index --format=csv",
    "-i 0, --query-gpu=index --format=csv",
    f"-i {A100[:12]} --query-gpu=index --format=csv",
    f"-i {A100.lower()} --query-gpu=index --format=csv",
    "--query-gpu index --format csv",
    "--query-gpu=memory.total,memory.used,memory.free --format=csv,nounits",
    "--query-gpu=gpu_uuid,gpu_bus_id,gpu_serial,mig.mode.pending --format=csv,noheader",
    "--query-gpu=index --format=csv,foo",
    "--query-gpu=index --format=noheader",
    "--query-gpu=INDEX --format=csv",
    "--query-gpu=index --query-compute-apps=pid --format=csv",
    "--query-gpu=index --format=csv -c 0",
    "--query-compute-apps=pid,name,used_gpu_memory,gpu_name,gpu_bus_id,gpu_serial --format=csv",
    "--query-compute-apps=foo --format=csv",
    "--query-compute-apps=pid",
    "-c",
    "-c 0 -pm 0",
    "-c foo",
    "-pm foo",
    "-mig foo",
    "-mig 2",
)
UNREADABLE = (
    ("nvmlDeviceGetComputeMode", "NOT_SUPPORTED"),
    ("nvmlDeviceGetComputeMode", "UNKNOWN"),
    ("nvmlDeviceGetMemoryInfo_v2", "UNKNOWN"),
    ("nvmlDeviceGetMemoryInfo_v2", "NOT_SUPPORTED"),
    ("nvmlDeviceGetPersistenceMode", "NOT_SUPPORTED"),
    ("nvmlDeviceGetPersistenceMode", "UNKNOWN"),
    ("nvmlDeviceGetMigMode", "NOT_SUPPORTED"),
    ("nvmlDeviceGetUUID", "UNKNOWN"),
    ("nvmlDeviceGetName", "UNKNOWN"),
    ("nvmlDeviceGetCount_v2", "UNKNOWN"),
)


@pytest.fixture
def busy(machine: MockedMachine) -> Iterator[MockedMachine]:
    """A machine with a process of each kind."""
    processes = [subprocess.Popen(["sleep", "1000"]) for _number in range(2)]
    machine.mock_driver("process", "add", 0, processes[0].pid, "--kind", "compute", "--memory", 500)
    machine.mock_driver("process", "add", 1, processes[1].pid, "--kind", "mps-client")
    yield machine
    for process in processes:
        process.kill()
        process.wait()


def answer(run: transcript.Run, options: str) -> list[str]:
    ran = run(*options.split())
    return [transcript.normal(line) for line in ran.stdout.splitlines()] + [ran.stderr, f"[rc={ran.returncode}]"]


def real(machine: MockedMachine) -> transcript.Run:
    require(REAL.is_file(), "nvidia-smi 535 is not there: Debian 12's package nvidia-smi (non-free)")
    return partial(machine.run, REAL)


@pytest.mark.parametrize("title", [section.title for section in RECORDED])
def test_as_recorded(title: str, start_machine: Callable[[str], MockedMachine]) -> None:
    (section,) = (section for section in RECORDED if section.title == title)
    steps = [step for step in section.steps if step.command not in REFUSED or "No driver" in title]
    known = transcript.Section(title, section.machine, steps)
    machine = start_machine(section.machine)
    played = transcript.play_with(known, machine.smi, machine)
    assert [(step.command, step.answer) for step in played] == [(step.command, step.answer) for step in steps]


def test_side_by_side_with_the_real_one(busy: MockedMachine) -> None:
    real_one = real(busy)
    differences = {
        options: (mine, theirs)
        for options in QUESTIONS
        if (mine := answer(busy.smi, options)) != (theirs := answer(real_one, options))
    }
    assert differences == {}


@pytest.mark.parametrize(("function", "code"), UNREADABLE)
def test_values_that_cannot_be_read_side_by_side(machine: MockedMachine, function: str, code: str) -> None:
    real_one = real(machine)
    fields = "index,uuid,name,compute_mode,persistence_mode,memory.total,mig.mode.current"
    machine.mock_driver("fault", function, code)
    for options in ("-L", f"-i 0 --query-gpu={fields} --format=csv", "-q -d COMPUTE", "-c 0", "-pm 0", ""):
        assert answer(machine.smi, options) == answer(real_one, options), options


def elements(text: str) -> list[tuple[str, str]]:
    """Every element with a text, by its path."""
    found: list[tuple[str, str]] = []

    def walk(element: ElementTree.Element, path: str) -> None:
        for child in element:
            walk(child, f"{path}/{child.tag}")
        if not len(element):
            found.append((path, (element.text or "").strip()))

    walk(ElementTree.fromstring(text), "")
    return found


def test_xml_is_a_part_of_the_real_one(busy: MockedMachine) -> None:
    mine, theirs = (elements(run("-q", "-x").stdout) for run in (busy.smi, real(busy)))
    paths = {path for path, _text in mine} - {"/timestamp"}
    assert {"/gpu/uuid", "/gpu/compute_mode", "/gpu/processes/process_info/type"} <= paths
    assert [entry for entry in mine if entry[0] in paths] == [entry for entry in theirs if entry[0] in paths]


@pytest.mark.parametrize("option", ["--nope", "dmon", "-h"])
def test_what_it_does_not_know_is_refused_by_name(machine: MockedMachine, option: str) -> None:
    ran = machine.smi(option)
    assert (ran.stdout, ran.returncode) == (f"mock nvidia-smi: option {option} is not known to this stand-in\n", 2)


def test_it_touches_nothing_but_the_mocked_driver(tmp_path: Path) -> None:
    library = tmp_path / "libnvidia-ml.so.1"
    subprocess.run(["gcc", "-shared", "-o", library, "-x", "c", "/dev/null"], check=True)
    for options in (["-L"], ["-c", "3"], []):
        ran = subprocess.run(
            [SMI, *options], env={"LD_LIBRARY_PATH": str(tmp_path), "PATH": "/usr/bin:/bin"}, capture_output=True
        )
        assert ran.returncode == 2
        assert b"is not the mocked driver; nothing was done" in ran.stdout


def test_a_setter_that_lies(machine: MockedMachine) -> None:
    machine.mock_driver("fault", "nvidia-smi", "LIE")
    assert answer(machine.smi, "-i 0 -c 3") == [
        "Set compute mode to EXCLUSIVE_PROCESS for GPU 00000000:07:00.0.",
        "All done.",
        "",
        "[rc=0]",
    ]
    assert answer(machine.smi, "-i 0 --query-gpu=compute_mode --format=csv,noheader")[0] == "Default"


def test_garbage(machine: MockedMachine) -> None:
    machine.mock_driver("fault", "nvidia-smi", "GARBAGE", "--only", 1)
    ran = machine.smi("-L")
    assert "garbage" in ran.stdout
    assert ran.returncode == 0
    assert machine.smi("-L").stdout.startswith("GPU 0: NVIDIA A100")


def test_hanging(machine: MockedMachine) -> None:
    machine.mock_driver("fault", "nvidia-smi", "HANG")
    ran = machine.run("timeout", "--kill-after=60", str(SILENCE), SMI, "-L")
    assert (ran.stdout, ran.returncode) == ("", 124)


def test_hanging_and_deaf_to_sigterm(machine: MockedMachine) -> None:
    machine.mock_driver("fault", "nvidia-smi", "HANG_IGNORING_TERM")
    process = subprocess.Popen([SMI, "-L"], env=machine.environment)
    try:
        eventually(lambda: ignores_sigterm(process.pid), "SIGTERM is not ignored")
        process.terminate()
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(SILENCE)
    finally:
        process.kill()
        process.wait()
