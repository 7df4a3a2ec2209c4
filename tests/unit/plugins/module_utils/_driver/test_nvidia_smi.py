# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How nvidia-smi is read. Its words are those of NVIDIA's 535.309.01 and 550.163.01, recorded on the mocked driver."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.gpuops.sharing.plugins.module_utils import _errors
from ansible_collections.gpuops.sharing.plugins.module_utils._command import Answer
from ansible_collections.gpuops.sharing.plugins.module_utils._driver import nvidia_smi
from ansible_collections.gpuops.sharing.plugins.module_utils._driver.nvidia_smi import NvidiaSmiDriver
from ansible_collections.gpuops.sharing.plugins.module_utils._gpu import Gpu, Mig, Process
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils.fakes import A100, SECOND_A100, commands

FORMAT = "--format=csv,noheader,nounits"
QUERY = f"--query-gpu={','.join(nvidia_smi.FIELDS)} {FORMAT}"
FIRST = "0, GPU-283ac4e4-651c-54fd-a922-7809abbd0253, 00000000:07:00.0, NVIDIA A100-SXM4-40GB, 8.0, 40960, Default, Disabled, Disabled, Disabled"
SECOND = "1, GPU-283ac3e4-651c-534a-a922-7909abbd0be0, 00000000:0F:00.0, NVIDIA A100-SXM4-40GB, 8.0, 40960, Default, Disabled, Disabled, Disabled"
SECOND_IS_LOST = (
    "Unable to determine the device handle for GPU1: GPU is lost.  Reboot the system to recover this GPU\n\n"
)

HEAD = """
==============NVSMI LOG==============

Timestamp                                 : Sun Nov 29 13:53:19 2026
Driver Version                            : 535.309.01
CUDA Version                              : 12.2

Attached GPUs                             : 2
"""
IDLE = """GPU 00000000:0F:00.0
    Processes                             : None

"""
BUSY = """GPU 00000000:07:00.0
    Processes
        GPU instance ID                   : N/A
        Compute instance ID               : N/A
        Process ID                        : 2298
            Type                          : C
            Name                          : /usr/bin/python3
            Used GPU Memory               : 500 MiB

"""


def driver(answers: dict[str, Answer]) -> NvidiaSmiDriver:
    return NvidiaSmiDriver(commands(answers), "/usr/bin/nvidia-smi")


def answering(arguments: str, out: str, rc: int = 0) -> dict[str, Answer]:
    return {arguments: Answer(rc, out, "")}


def test_a_line_of_the_query() -> None:
    assert nvidia_smi.parse_gpu(SECOND) == SECOND_A100


NO_MIG = ("[N/A]", "N/A", "[Not Supported]", "")


@pytest.mark.parametrize(
    "unknown", ["[N/A]", "N/A", "[Not Supported]", "ERR!", "[Unknown Error]", "[Insufficient Permissions]", ""]
)
def test_a_field_that_the_driver_cannot_tell_is_unknown_and_nothing_else(unknown: str) -> None:
    nothing = Gpu(index=0, mig=Mig(False, False, False))
    values = FIRST.split(", ")
    for number, field in enumerate(nvidia_smi.FIELDS):
        line = ", ".join(unknown if position == number else value for position, value in enumerate(values))
        if field == "index":
            with pytest.raises(_errors.CommandFailed, match="Cannot understand what nvidia-smi says of a GPU"):
                nvidia_smi.parse_gpu(line)
            continue
        changes: dict[str, dict[str, t.Any]] = {
            "uuid": {"uuid": None, "error": f"nvidia-smi gives no UUID for it: {unknown}"},
            "pci.bus_id": {"pci_bus_id": None},
            "name": {"name": None},
            "compute_cap": {"compute_capability": None},
            "memory.total": {"memory_total_mib": None},
            "compute_mode": {"compute_mode": None},
            "persistence_mode": {"persistence_mode": None},
            "mig.mode.current": {"mig": nothing.mig if unknown in NO_MIG else None},
            "mig.mode.pending": {},
        }
        assert nvidia_smi.parse_gpu(line) == A100._replace(**changes[field]), field


@pytest.mark.parametrize("number", range(1, len(nvidia_smi.FIELDS)))
def test_a_gpu_that_requires_a_reset_does_not_answer(number: int) -> None:
    values = FIRST.split(", ")
    values[number] = "[GPU requires reset]"
    gpu = nvidia_smi.parse_gpu(", ".join(values))
    assert (gpu.index, gpu.error) == (0, "GPU requires reset")


@pytest.mark.parametrize("line", ["", "0", f"{FIRST}, Disabled", "No devices were found", "index, uuid"])
def test_a_line_that_cannot_be_understood(line: str) -> None:
    with pytest.raises(_errors.CommandFailed, match="Cannot understand what nvidia-smi says of a GPU"):
        nvidia_smi.parse_gpu(line)


@pytest.mark.parametrize(
    ("current", "pending", "mig"),
    [
        ("Disabled", "Disabled", Mig(True, False, False)),
        ("Enabled", "Enabled", Mig(True, True, True)),
        ("Disabled", "Enabled", Mig(True, False, True)),
        ("Enabled", "[Unknown Error]", Mig(True, True, True)),
        ("[N/A]", "[N/A]", Mig(False, False, False)),
    ],
)
def test_mig_mode(current: str, pending: str, mig: Mig) -> None:
    assert (
        nvidia_smi.parse_gpu(FIRST.replace("Disabled, Disabled, Disabled", f"Disabled, {current}, {pending}")).mig
        == mig
    )


@pytest.mark.parametrize(
    ("printed", "mode"),
    [
        ("Default", "default"),
        ("DEFAULT", "default"),
        ("Exclusive_Process", "exclusive_process"),
        ("EXCLUSIVE_PROCESS", "exclusive_process"),
        ("Exclusive Process", "exclusive_process"),
        ("E. Process", "exclusive_process"),
        ("Exclusive_Thread", "exclusive_thread"),
        ("E. Thread", "exclusive_thread"),
        ("Prohibited", "prohibited"),
        ("Prohibited\n", "prohibited"),
        ("[N/A]", None),
        ("ERR!", None),
        ("3", None),
        ("", None),
    ],
)
def test_every_spelling_of_a_compute_mode(printed: str, mode: str | None) -> None:
    assert nvidia_smi.parse_compute_mode(printed) == mode


@pytest.mark.parametrize(
    ("text", "processes"),
    [
        pytest.param(HEAD + BUSY, {"0000:07:00.0": (Process(2298, "/usr/bin/python3", 500, "C"),)}, id="one"),
        pytest.param(HEAD + IDLE, {}, id="none"),
        pytest.param(
            HEAD + IDLE + BUSY, {"0000:07:00.0": (Process(2298, "/usr/bin/python3", 500, "C"),)}, id="on the second"
        ),
        pytest.param(
            HEAD + BUSY.replace("/usr/bin/python3", "a: b"),
            {"0000:07:00.0": (Process(2298, "a: b", 500, "C"),)},
            id="a name with a colon",
        ),
        pytest.param(
            HEAD
            + BUSY.replace(": C\n", ": M+C\n")
            .replace("500 MiB", "N/A")
            .replace("/usr/bin/python3", "[Insufficient Permissions]"),
            {"0000:07:00.0": (Process(2298, None, None, "M+C"),)},
            id="unknown name and memory",
        ),
        pytest.param(
            HEAD
            + BUSY.rstrip("\n")
            + "\n"
            + "\n".join(BUSY.replace("2298", "17").replace("500 MiB", "[N/A]").splitlines()[2:]),
            {"0000:07:00.0": (Process(17, "/usr/bin/python3", None, "C"), Process(2298, "/usr/bin/python3", 500, "C"))},
            id="several, by pid",
        ),
        pytest.param(
            HEAD + BUSY.rstrip("\n") + "\n" + "\n".join(BUSY.replace("500 MiB", "N/A").splitlines()[2:]),
            {
                "0000:07:00.0": (
                    Process(2298, "/usr/bin/python3", 500, "C"),
                    Process(2298, "/usr/bin/python3", None, "C"),
                )
            },
            id="one process twice",
        ),
    ],
)
def test_processes(text: str, processes: dict[str, tuple[Process, ...]]) -> None:
    assert nvidia_smi.parse_processes(text) == processes


def test_gpus_with_their_processes() -> None:
    answers = {**answering(QUERY, f"{FIRST}\n{SECOND}\n"), **answering("-i 0,1 -q -d PIDS", HEAD + BUSY + IDLE)}
    busy = A100._replace(processes=(Process(2298, "/usr/bin/python3", 500, "C"),))
    assert driver(answers).gpus() == [busy, SECOND_A100]


def test_no_gpu() -> None:
    assert driver(answering(QUERY, "No devices were found\n", rc=6)).gpus() == []


def test_one_lost_gpu_hides_no_other() -> None:
    answers = {
        **answering(QUERY, SECOND_IS_LOST, rc=15),
        **answering(f"-i 0 {QUERY}", f"{FIRST}\n"),
        **answering(f"-i 1 {QUERY}", SECOND_IS_LOST, rc=15),
        **answering(f"-i 2 {QUERY}", "No devices were found\n", rc=6),
        **answering("-i 0 -q -d PIDS", HEAD),
    }
    lost = Gpu(
        index=1,
        error="Unable to determine the device handle for GPU1: GPU is lost. Reboot the system to recover this GPU",
    )
    assert driver(answers).gpus() == [A100, lost]


def test_a_gpu_that_requires_a_reset_is_asked_for_no_processes() -> None:
    answers = {
        **answering(QUERY, f"{FIRST}\n{SECOND.replace('Default', '[GPU requires reset]')}\n"),
        **answering("-i 0 -q -d PIDS", HEAD),
    }
    assert [gpu.error for gpu in driver(answers).gpus()] == [None, "GPU requires reset"]


@pytest.mark.parametrize(
    ("rc", "words"),
    [
        (12, "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system."),
        (9, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."),
        (255, "Failed to initialize NVML: Unknown Error"),
        (18, "Failed to initialize NVML: Driver/library version mismatch"),
    ],
)
def test_no_driver(rc: int, words: str) -> None:
    with pytest.raises(_errors.DriverAbsent) as failure:
        driver(answering(QUERY, words, rc)).gpus()
    assert failure.value.details == {"reason": words}


def test_an_old_driver_that_does_not_know_a_field() -> None:
    with pytest.raises(
        _errors.CommandFailed,
        match=r'nvidia-smi says: Field "compute_cap" is not a valid field to query. \(exit status 2\)',
    ):
        driver(answering(QUERY, 'Field "compute_cap" is not a valid field to query.\n', 2)).gpus()


def test_versions() -> None:
    system = driver(answering("-q -d COMPUTE", HEAD)).system()
    assert (system.driver_version, system.cuda_version) == ("535.309.01", "12.2")


MODE = "-i 0 --query-gpu=uuid,compute_mode --format=csv,noheader"
SAME = answering("-i 0 --query-gpu=uuid,index --format=csv,noheader", f"{A100.uuid}, 0\n")


def test_a_mode_is_read_back() -> None:
    assert driver(answering(MODE, f"{A100.uuid}, Exclusive_Process\n")).compute_mode(A100) == "exclusive_process"


def test_a_mode_that_has_no_name_is_read_back_as_it_is() -> None:
    assert driver(answering(MODE, f"{A100.uuid}, [Unknown Error]\n")).compute_mode(A100) == "[Unknown Error]"


def test_an_index_that_means_another_gpu_by_now() -> None:
    with pytest.raises(_errors.GpuLost, match=f"is gone: GPU 0 is {SECOND_A100.uuid} now; run again$"):
        driver(answering(MODE, f"{SECOND_A100.uuid}, Default\n")).compute_mode(A100)


@pytest.mark.parametrize(
    "words",
    [
        "Set compute mode to PROHIBITED for GPU 00000000:07:00.0.",
        "Compute mode is already set to PROHIBITED for GPU 00000000:07:00.0.",
    ],
)
def test_a_mode_is_set(words: str) -> None:
    driver({**SAME, **answering(f"-i {A100.uuid} -c PROHIBITED", f"{words}\nAll done.\n")}).set_compute_mode(
        A100, "prohibited"
    )


REFUSED = "Unable to set the compute mode for GPU 00000000:07:00.0: {}\nTerminating early due to previous errors.\n"
ON_MIG = "Setting compute mode to PROHIBITED is not supported on a MIG-enabled device."
MOVING_ON = "Unable to set the compute mode for GPU 00000000:07:00.0: Not Supported\nTreating as warning and moving on.\nAll done.\n"


@pytest.mark.parametrize(
    ("rc", "words", "kind", "end"),
    [
        (4, REFUSED.format("Insufficient Permissions"), _errors.PermissionMissing, "; run as root (become: true)"),
        (19, REFUSED.format("In use by another client"), _errors.InUse, "; end the processes that use it"),
        (15, REFUSED.format("GPU is lost"), _errors.GpuLost, "; reset the GPU or reboot the host"),
        (2, REFUSED.format("Invalid Argument"), _errors.CommandFailed, "(exit status 2)"),
        (255, REFUSED.format("Unknown Error"), _errors.CommandFailed, "(exit status 255)"),
        (255, "", _errors.CommandFailed, "nvidia-smi says: nothing (exit status 255)"),
        (0, MOVING_ON, _errors.NotSupported, "All done."),
        (0, f"{ON_MIG}\n{MOVING_ON}", _errors.NotSupported, "All done."),
    ],
)
def test_a_mode_is_refused(rc: int, words: str, kind: type[_errors.SharingError], end: str) -> None:
    with pytest.raises(_errors.SharingError) as failure:
        driver({**SAME, **answering(f"-i {A100.uuid} -c PROHIBITED", words, rc)}).set_compute_mode(A100, "prohibited")
    assert type(failure.value) is kind
    assert failure.value.message.startswith(f"Cannot set the compute mode of {A100.label} to prohibited: ")
    assert "".join(words.splitlines()[:1]) in failure.value.message
    assert failure.value.message.endswith(end)
