# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What unit tests put in the place of a driver, of programs and of cards."""

from __future__ import annotations

import typing as t

from ansible_collections.gpuops.sharing.plugins.module_utils._command import Answer, Commands
from ansible_collections.gpuops.sharing.plugins.module_utils._driver.interface import Driver
from ansible_collections.gpuops.sharing.plugins.module_utils._gpu import Gpu, Mig, System

A100 = Gpu(
    index=0,
    uuid="GPU-283ac4e4-651c-54fd-a922-7809abbd0253",
    pci_bus_id="0000:07:00.0",
    name="NVIDIA A100-SXM4-40GB",
    compute_capability=(8, 0),
    memory_total_mib=40960,
    compute_mode="default",
    persistence_mode=False,
    mig=Mig(capable=True, current=False, pending=False),
)
# The second card's UUID sorts before the first one's: an order by UUID is not the order by index.
SECOND_A100 = A100._replace(index=1, uuid="GPU-283ac3e4-651c-534a-a922-7909abbd0be0", pci_bus_id="0000:0f:00.0")
CARDS = (A100, SECOND_A100)


class FakeDriver(Driver):
    """Cards in memory. A lying one reports success and changes nothing."""

    backend = "fake"

    def __init__(self, gpus: t.Sequence[Gpu], lying: bool = False) -> None:
        self._gpus = list(gpus)
        self._lying = lying
        self.calls: list[tuple[int, str]] = []

    def system(self) -> System:
        return System(None, None, None)

    def gpus(self) -> list[Gpu]:
        return list(self._gpus)

    def compute_mode(self, gpu: Gpu) -> str:
        return next(str(card.compute_mode) for card in self._gpus if card.uuid == gpu.uuid)

    def set_compute_mode(self, gpu: Gpu, mode: str) -> None:
        self.calls.append((gpu.index, mode))
        if not self._lying:
            self._gpus = [card._replace(compute_mode=mode) if card.uuid == gpu.uuid else card for card in self._gpus]

    def close(self) -> None:
        """Nothing is held."""


def commands(answers: t.Mapping[str, Answer], *installed: str) -> Commands:
    """Programs that answer from a table by their arguments, without the program's own path."""

    def run(
        argv: t.Sequence[str],
        stdin: str | None = None,
        environment: t.Mapping[str, str] | None = None,
        limit: float | None = None,
    ) -> Answer:
        return answers[" ".join(argv[1:])]

    return Commands(run, lambda name: f"/usr/bin/{name}" if name in installed else None, timeout=5)
