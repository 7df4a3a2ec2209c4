# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the tests of the scenario single_card ask a host."""

from __future__ import annotations

import shlex
import typing as t

from systems import System

UNIT = "nvidia-mps@single-card.service"
PIPE_DIRECTORY = "/run/nvidia-mps/single-card"
# The same as in molecule/inventory.yml: the card that is shared, and its compute mode before that.
SHARED = {"gpuops-deb12": 0, "gpuops-deb13": 1}
MODE_BEFORE = {"gpuops-deb12": "Default", "gpuops-deb13": "Prohibited"}


class Card(t.NamedTuple):
    """A card as nvidia-smi shows it."""

    number: int
    uuid: str
    compute_mode: str


class Machine(System):
    """A host of the scenario."""

    service = UNIT

    def cards(self) -> list[Card]:
        lines = self.host.check_output("nvidia-smi --query-gpu=index,uuid,compute_mode --format=csv,noheader")
        fields = [line.split(", ") for line in lines.splitlines()]
        return [Card(int(number), uuid, mode) for number, uuid, mode in fields]

    def shared_card(self) -> Card:
        return self.cards()[SHARED[self.name]]

    def control(self, *commands: str, prefix: str = "") -> str:
        """Ask the daemon; what it answers, one line a command."""
        words = " ".join(map(shlex.quote, commands))
        program = f"env CUDA_MPS_PIPE_DIRECTORY={PIPE_DIRECTORY} timeout 5 nvidia-cuda-mps-control"
        return self.host.run(f"printf '%s\\n' {words} | {prefix} {program}").stdout.strip()

    def limits(self) -> str:
        return self.control("get_default_active_thread_percentage", "get_default_device_pinned_mem_limit 0")
