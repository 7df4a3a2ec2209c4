# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Cut eight A100 into 56 instances as a script does that knows the cards: no look before, no plan; then read what was made."""

from __future__ import annotations

import ctypes

import pynvml

CARDS, EACH, SMALLEST = 8, 7, 19


def main() -> None:
    pynvml.nvmlInit()
    for index in range(CARDS):
        card = pynvml.nvmlDeviceGetHandleByIndex(index)
        pynvml.nvmlDeviceSetMigMode(card, 1)
        for start in range(EACH):
            place = pynvml.c_nvmlGpuInstancePlacement_t(start, 1)
            instance = pynvml.nvmlDeviceCreateGpuInstanceWithPlacement(card, SMALLEST, ctypes.byref(place))
            pynvml.nvmlGpuInstanceGetInfo(instance)
            pynvml.nvmlComputeInstanceGetInfo_v2(pynvml.nvmlGpuInstanceCreateComputeInstance(instance, 0))
        for number in range(EACH):
            pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetMigDeviceHandleByIndex(card, number))
    pynvml.nvmlShutdown()


if __name__ == "__main__":
    main()
