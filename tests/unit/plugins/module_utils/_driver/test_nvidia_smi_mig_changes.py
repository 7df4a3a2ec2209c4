# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What nvidia-smi says to changes of MIG, in the words of NVIDIA's 535.309.01 and 550.163.01. Its exit status proves nothing."""

from __future__ import annotations

import pytest
from ansible_collections.gpuops.sharing.plugins.module_utils import _errors
from ansible_collections.gpuops.sharing.plugins.module_utils._command import Answer
from ansible_collections.gpuops.sharing.plugins.module_utils._gpu import Mig
from ansible_collections.gpuops.sharing.plugins.module_utils._instance import ComputeProfile, Placement
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils._driver.mig_answers import (
    KNOWN,
    NOTHING,
    driver,
)
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils.fakes import A100

REASONS = {
    "In use by another client": "in use by another client",
    "GPU requires reset": "gpu requires reset",
    "Not Supported": "not supported",
    "Timeout": "timeout",
}
FOLLOWS = (
    "Reboot the system or try nvidia-smi --gpu-reset to make MIG mode effective on GPU 00000000:07:00.0\nAll done.\n"
)


@pytest.mark.parametrize("words", list(REASONS))
def test_why_a_mode_is_pending(words: str) -> None:
    text = f"Warning: MIG mode is in pending enable state for GPU 00000000:07:00.0:{words}\n{FOLLOWS}"
    assert driver(mode=text).set_mig_mode(A100, True) == REASONS[words]


def test_a_mode_that_is_in_force() -> None:
    warning = "Warning: persistence mode is disabled on device 00000000:07:00.0. See the Known Issues section of the nvidia-smi(1) man page"
    text = f"Disabled MIG Mode for GPU 00000000:07:00.0\n\n{warning}\nAll done.\n"
    assert driver(off=text).set_mig_mode(A100, False) is None


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (
            Answer(19, "Unable to enable MIG Mode for GPU 00000000:07:00.0: In use by another client\n", ""),
            _errors.InUse,
        ),
        (
            Answer(4, "Unable to enable MIG Mode for GPU 00000000:07:00.0: Insufficient Permissions\n", ""),
            _errors.PermissionMissing,
        ),
        (
            Answer(
                0,
                "Unable to enable MIG Mode for GPU 00000000:07:00.0: Not Supported\nTreating as warning and moving on.\nAll done.\n",
                "",
            ),
            _errors.NotSupported,
        ),
        (Answer(15, "Unable to enable MIG Mode for GPU 00000000:07:00.0: GPU is lost\n", ""), _errors.GpuLost),
    ],
)
def test_a_mode_that_is_refused(answer: Answer, kind: type[_errors.SharingError]) -> None:
    with pytest.raises(kind, match="Cannot enable MIG mode of GPU 0"):
        driver(mode=answer).set_mig_mode(A100, True)


@pytest.mark.parametrize(
    ("values", "mode"),
    [
        ("Disabled, Enabled", Mig(True, False, True)),
        ("Enabled, Enabled", Mig(True, True, True)),
        ("Enabled, [Unknown Error]", Mig(True, True, True)),
        ("[N/A], [N/A]", Mig(False, False, False)),
    ],
)
def test_the_mode(values: str, mode: Mig) -> None:
    assert driver(read=f"{A100.uuid}, {values}\n").mig_mode(A100) == mode


@pytest.mark.parametrize("unknown", ["[Unknown Error]", "ERR!", "[Insufficient Permissions]"])
def test_a_mode_that_cannot_be_read(unknown: str) -> None:
    with pytest.raises(_errors.CommandFailed, match="Cannot read the MIG mode of GPU 0"):
        driver(read=f"{A100.uuid}, {unknown}, {unknown}\n").mig_mode(A100)


def test_what_is_created_is_known_by_the_number_that_is_printed() -> None:
    made = "Successfully created GPU instance ID  2 on GPU  0 using profile MIG 3g.20gb (ID  9)\n"
    part = (
        "Successfully created compute instance ID  0 on GPU  0 GPU instance ID  5 using profile MIG 3g.20gb (ID  2)\n"
    )
    assert driver(cgi=made).create_gpu_instance(A100, KNOWN[2], Placement(4, 4)) == 2
    assert driver(cci=part).create_compute_instance(A100, 5, ComputeProfile(2, "3g.20gb", 3, 1), None) == 0
    asked = driver(**{"cci at": part})
    assert asked.create_compute_instance(A100, 5, ComputeProfile(0, "1c.3g.20gb", 1, 3), Placement(2, 1)) == 0


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        pytest.param(
            Answer(23, "Unable to create a GPU instance on GPU  0 using profile 9: Insufficient Resources\n", ""),
            _errors.CommandFailed,
            id="no room",
        ),
        pytest.param(Answer(0, "No MIG-enabled devices found.\n", ""), _errors.CommandFailed, id="550, no MIG mode"),
        pytest.param(
            Answer(4, "Failed to create GPU instances: Insufficient Permissions\n", ""),
            _errors.PermissionMissing,
            id="user",
        ),
        pytest.param(Answer(15, "Failed to create GPU instances: GPU is lost\n", ""), _errors.GpuLost, id="lost"),
    ],
)
def test_what_cannot_be_created(answer: Answer, kind: type[_errors.SharingError]) -> None:
    with pytest.raises(kind, match="Cannot create GPU instance 3g.20gb at 4:4 on GPU 0"):
        driver(cgi=answer).create_gpu_instance(A100, KNOWN[2], Placement(4, 4))


def test_what_is_destroyed() -> None:
    driver(dgi="Successfully destroyed GPU instance ID  5 from GPU  0\n").destroy_gpu_instance(A100, 5)
    text = "Successfully destroyed compute instance ID  1 from GPU  0 GPU instance ID  5\n"
    driver(dci=text).destroy_compute_instance(A100, 5, 1)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (Answer(19, "Unable to destroy GPU instance ID  5 from GPU  0: In use by another client\n", ""), _errors.InUse),
        (Answer(0, "", ""), _errors.CommandFailed),
        (NOTHING, _errors.CommandFailed),
    ],
)
def test_what_cannot_be_destroyed(answer: Answer, kind: type[_errors.SharingError]) -> None:
    with pytest.raises(kind, match="Cannot destroy GPU instance 5 of GPU 0"):
        driver(dgi=answer).destroy_gpu_instance(A100, 5)


def test_beside_a_lost_gpu_the_index_is_asked_after_a_look_at_whose_it_is() -> None:
    """By UUID nvidia-smi looks at all GPUs, and meets the lost one."""
    done = "Successfully destroyed GPU instance ID  5 from GPU  0\n"
    met = "Problem with GPU 1: GPU is lost.  Reboot the system to recover this GPU\n\n"
    driver(dgi=Answer(255, met, ""), lost=done).destroy_gpu_instance(A100, 5)
    moved = driver(dgi=Answer(255, met, ""), lost=done, index="GPU-other, 0\n")
    with pytest.raises(_errors.GpuLost, match="GPU 0 is GPU-other now"):
        moved.destroy_gpu_instance(A100, 5)
