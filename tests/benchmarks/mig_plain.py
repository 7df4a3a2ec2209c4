# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Cut eight A100 into 56 instances as a script does that knows the cards: no look before, no plan; then print what was read of each."""

from __future__ import annotations

import ctypes
import json

import pynvml

CARDS, EACH, SMALLEST = 8, 7, 19


def main() -> None:
    pynvml.nvmlInit()
    print(json.dumps({index: cut(pynvml.nvmlDeviceGetHandleByIndex(index)) for index in range(CARDS)}))
    pynvml.nvmlShutdown()


def cut(card: object) -> list[list[object]]:
    """Return the new instances: ids of the GPU and the compute instance, place, UUID."""
    pynvml.nvmlDeviceSetMigMode(card, 1)
    if pynvml.nvmlDeviceGetMigMode(card) != [1, 1]:
        raise SystemExit("MIG mode is not on")
    places = {}
    for start in range(EACH):
        place = pynvml.c_nvmlGpuInstancePlacement_t(start, 1)
        instance = pynvml.nvmlDeviceCreateGpuInstanceWithPlacement(card, SMALLEST, ctypes.byref(place))
        part = pynvml.nvmlGpuInstanceCreateComputeInstance(instance, 0)
        made, inside = pynvml.nvmlGpuInstanceGetInfo(instance), pynvml.nvmlComputeInstanceGetInfo_v2(part)
        places[made.id, inside.id] = [made.placement.start, made.placement.size]
    uuids = {}
    for number in range(EACH):
        device = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(card, number)
        ids = pynvml.nvmlDeviceGetGpuInstanceId(device), pynvml.nvmlDeviceGetComputeInstanceId(device)
        uuids[ids] = pynvml.nvmlDeviceGetUUID(device)
    return sorted([*ids, places[ids], uuids[ids]] for ids in places)


if __name__ == "__main__":
    main()
