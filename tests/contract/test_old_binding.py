# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Releases of nvidia-ml-py that do not know the places of compute instances (before 11.525)."""

from __future__ import annotations

import json

from mocked_machine import MockedMachine

LACKING = """
import json, pynvml
del pynvml.nvmlGpuInstanceGetComputeInstancePossiblePlacements
del pynvml.nvmlGpuInstanceCreateComputeInstanceWithPlacement
from ansible_collections.gpuops.sharing.plugins.module_utils._driver.nvml import NvmlDriver
driver = NvmlDriver()
gpu = driver.gpus()[0]
driver.set_mig_mode(gpu, True)
profile = next(one for one in driver.mig_profiles(gpu) if one.name == "3g.20gb")
instance = driver.create_gpu_instance(gpu, profile, profile.placements[0])
kinds = driver.compute_profiles(gpu, instance)
for kind in (kinds[0], kinds[0]):
    driver.create_compute_instance(gpu, instance, kind, None)
print(json.dumps([[one.placements for one in kinds], [part.placement for part in driver.instances(gpu)[0].compute_instances]]))
"""


def test_compute_instances_without_places(machine: MockedMachine) -> None:
    ran = machine.run_loaded("text", LACKING)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == [[[], [], []], [[0, 1], [1, 1]]]
