# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How nvidia-smi is read of profiles and instances. Its words are those of NVIDIA's 470.256.02, 535.309.01, 550.163.01 and 555.58.02."""

from __future__ import annotations

import pytest
from ansible_collections.gpuops.sharing.plugins.module_utils import _errors
from ansible_collections.gpuops.sharing.plugins.module_utils._command import Answer
from ansible_collections.gpuops.sharing.plugins.module_utils._driver import nvidia_smi_mig
from ansible_collections.gpuops.sharing.plugins.module_utils._driver.nvidia_smi import NvidiaSmiDriver
from ansible_collections.gpuops.sharing.plugins.module_utils._instance import ComputeProfile, Placement
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils._driver.mig_answers import (
    COMPUTE,
    DETAIL,
    DEVICES,
    INSTANCES,
    KNOWN,
    LOST,
    NOTHING,
    PLACEMENTS,
    PROFILES,
    SAME,
    THERE,
    driver,
)
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils.fakes import A100, commands


def test_profiles() -> None:
    assert driver(lgip=PROFILES, lgipp=PLACEMENTS).mig_profiles(A100) == KNOWN


def test_profiles_whose_placements_are_not_told() -> None:
    """470 lists the profiles that it knows."""
    found = nvidia_smi_mig.parse_profiles(PROFILES, "GPU  0 Profile ID 19 Placement : {0}:8\n")
    assert [profile.placements for profile in found] == [(Placement(0, 8),), (), ()]


@pytest.mark.parametrize(
    ("suffixed", "slices"), [("1g.24gb+me.all", 1), ("2g.48gb-me", 2), ("4g.96gb+gfx", 4), ("7g.141gb", 7)]
)
def test_names_with_suffixes(suffixed: str, slices: int) -> None:
    line = f"|   0  MIG {suffixed:<15} 47     1/1        23.63      No     46     1     1   |\n"
    (profile,) = nvidia_smi_mig.parse_profiles(line, "")
    assert (profile.name, profile.slices, profile.memory_mib) == (suffixed, slices, 24197)


@pytest.mark.parametrize(
    ("listed", "kind"),
    [
        pytest.param(Answer(6, "No MIG-enabled devices found.\n", ""), _errors.NotSupported, id="535"),
        pytest.param(Answer(6, "No MIG-supported devices found.\n", ""), _errors.NotSupported, id="no MIG"),
        pytest.param(
            Answer(3, f"{PROFILES[:396]}\nFailed to display GPU instance profiles: Not Supported\n", ""),
            _errors.NotSupported,
            id="550 and 555",
        ),
        pytest.param(
            Answer(4, "Failed to display GPU instance profiles: Insufficient Permissions\n", ""),
            _errors.PermissionMissing,
            id="user",
        ),
        pytest.param(Answer(0, "", ""), _errors.NotSupported, id="nothing"),
        pytest.param(
            Answer(15, "Failed to display GPU instance profiles: GPU is lost\n", ""), _errors.GpuLost, id="lost"
        ),
    ],
)
def test_profiles_that_cannot_be_had(listed: Answer, kind: type[_errors.SharingError]) -> None:
    with pytest.raises(kind, match="Cannot list the MIG profiles of GPU 0"):
        driver(lgip=listed, lgipp=PLACEMENTS).mig_profiles(A100)


def test_instances_with_their_uuids_and_processes() -> None:
    assert driver(lgi=INSTANCES, lci=COMPUTE, detail=DETAIL, devices=DEVICES).instances(A100) == THERE


@pytest.mark.parametrize(
    "nothing",
    [
        NOTHING,
        Answer(6, "No MIG-enabled devices found.\n", ""),
        Answer(0, "No MIG-enabled devices found.\n", ""),
        Answer(6, "No MIG-supported devices found.\n", ""),
    ],
)
def test_no_instances(nothing: Answer) -> None:
    assert driver(lgi=nothing).instances(A100) == ()


def test_gpu_instances_without_compute_instances() -> None:
    none = Answer(6, "No compute instances found: Not Found\n", "")
    found = driver(lgi=INSTANCES, lci=none, detail="", devices=DEVICES).instances(A100)
    assert [(instance.id, instance.compute_instances) for instance in found] == [(5, ()), (13, ())]


def test_instances_beside_a_lost_gpu() -> None:
    after = Answer(15, DEVICES.partition("GPU 1")[0] + LOST, "")
    assert driver(lgi=INSTANCES, lci=COMPUTE, detail=DETAIL, devices=after).instances(A100) == THERE
    before = Answer(15, LOST, "")
    # Without a UUID nobody could tell whether an MPS daemon serves it.
    with pytest.raises(_errors.CommandFailed, match="Cannot find the MIG devices of GPU 0"):
        driver(lgi=INSTANCES, lci=COMPUTE, detail=DETAIL, devices=before).instances(A100)


def test_drivers_that_call_the_compute_instance_without_its_suffix() -> None:
    listed = INSTANCES.replace("1g.5gb   ", "1g.5gb+me")
    found = driver(lgi=listed, lci=COMPUTE, detail=DETAIL, devices=DEVICES).instances(A100)
    assert {part.profile for one in found if one.id == 13 for part in one.compute_instances} == {"1g.5gb+me"}


def test_a_gpu_instance_that_goes_between_the_questions() -> None:
    """It would look like one without compute instances."""

    class Going(dict[str, Answer]):
        def __getitem__(self, asked: str) -> Answer:
            answer = super().__getitem__(asked)
            if asked == "mig -i 0 -lgi":
                self[asked] = NOTHING
            return answer

    none = Answer(6, "No compute instances found: Not Found\n", "")
    asked = {"mig -i 0 -lgi": Answer(0, INSTANCES, ""), "mig -i 0 -lci": none}
    answers = Going({**SAME, **asked, "-i 0 -q -x": Answer(0, "", ""), "-L": Answer(0, DEVICES, "")})
    with pytest.raises(_errors.CommandFailed, match="The MIG instances of GPU 0 .* changed while they were listed"):
        NvidiaSmiDriver(commands(answers), "/usr/bin/nvidia-smi").instances(A100)


@pytest.mark.parametrize("missing", ["lgi", "lci", "detail", "devices"])
def test_instances_that_cannot_be_listed(missing: str) -> None:
    answers: dict[str, Answer | str] = {"lgi": INSTANCES, "lci": COMPUTE, "detail": DETAIL, "devices": DEVICES}
    with pytest.raises(_errors.CommandFailed, match="instances of GPU 0"):
        driver(**{**answers, missing: Answer(255, "Unknown Error\n", "")}).instances(A100)


def test_compute_profiles() -> None:
    text = """\
|   0      5       MIG 1c.3g.20gb       0      0/3           14        2     0     0   |
|                                                                      3     0         |
+--------------------------------------------------------------------------------------+
|   0      5       MIG 3g.20gb          2*     0/1           42        2     0     0   |
|                                                                      3     0         |
"""
    places = """\
GPU  0 GI  5 Profile ID  0 Placements: {0,1,2}:1
GPU  0 GI  5 Profile ID  2 Placement : {0}:3
"""
    assert driver(lcip=text, lcipp=places).compute_profiles(A100, 5) == (
        ComputeProfile(0, "1c.3g.20gb", 1, 3, (Placement(0, 1), Placement(1, 1), Placement(2, 1))),
        ComputeProfile(2, "3g.20gb", 3, 1, (Placement(0, 3),)),
    )
    unknown = Answer(2, 'Option "-lcipp" is not recognized.\n', "")
    assert [one.placements for one in driver(lcip=text, lcipp=unknown).compute_profiles(A100, 5)] == [(), ()]
