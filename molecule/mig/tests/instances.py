# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the tests of the scenario mig ask a host, and what they know of its layouts."""

from __future__ import annotations

import re
import typing as t

from systems import System

SAVED = "/etc/nvidia-mig-layouts.json"
LEFT_ALONE = 4  # a card that no layout names


class Places(t.NamedTuple):
    """What stands where on a host's cards, by index: profile@start, with the compute instances that do not fill it."""

    first: dict[int, list[str]]
    later: dict[int, list[str]]
    kept: int  # MIG devices that stay when the second layout takes the place of the first
    changed: int  # the card on which they differ
    other: int  # another one that is cut


_MIXED = ["2g.10gb@0", "2g.10gb@2", "1g.5gb+me@4", "1g.10gb@6"]
_PARTED = ["3g.71gb@0(1c.3g.71gb,1c.3g.71gb)", "1g.35gb@4"]
# What molecule/inventory.yml asks for, on the cards of each machine.
LAYOUTS = {
    "gpuops-deb12": Places(
        {0: ["1g.5gb@0", "1g.5gb@1", "3g.20gb@4(1c.3g.20gb,2c.3g.20gb)"], 1: _MIXED, 2: _MIXED},
        {0: ["1g.5gb@0", "2g.10gb@2", "3g.20gb@4(1c.3g.20gb,2c.3g.20gb)"], 1: _MIXED, 2: _MIXED},
        kept=11,
        changed=0,
        other=1,
    ),
    "gpuops-deb13": Places(
        {0: _PARTED, 3: [f"1g.18gb@{start}" for start in range(7)], 5: []},
        {0: _PARTED, 3: [*(f"1g.18gb@{start}" for start in range(4)), "3g.71gb@4"], 5: []},
        kept=7,
        changed=3,
        other=0,
    ),
}


class Instance(t.NamedTuple):
    """A compute instance, with the GPU instance that it is in."""

    gi: int
    gi_profile: str
    start: int
    profile: str
    uuid: str


class Machine(System):
    """A host of the scenario."""

    service = "nvidia-mig-layout.service"

    @property
    def layouts(self) -> Places:
        return LAYOUTS[self.name]

    def devices(self) -> str:
        """Cards and MIG devices with their UUIDs, as NVIDIA's program lists them."""
        return self.host.check_output("nvidia-smi -L")

    def mig_uuids(self) -> set[str]:
        return uuids(self.devices())

    def card(self, index: int) -> str:
        """A card's UUID."""
        return self.host.check_output(f"nvidia-smi -i {index} --query-gpu=uuid --format=csv,noheader")

    def instances(self) -> dict[int, list[Instance]]:
        """What the driver itself has on each card in MIG mode, by index."""
        found: dict[int, list[Instance]] = {}
        for line in self.host.check_output("mock-driver show").splitlines():
            card = re.match(r"GPU (\d+), GPU instances", line)
            if card:
                found[int(card[1])] = []
            row = re.match(r"(\d+) +(\S+) +(\d+):\d+ +\d+ +(\S+) +(MIG-\S+)", line)
            if row:
                found[max(found)].append(Instance(int(row[1]), row[2], int(row[3]), row[4], row[5]))
        return found

    def places(self) -> dict[int, list[str]]:
        return {card: _places(instances) for card, instances in self.instances().items()}

    def destroy(self, card: int, *selection: str) -> None:
        """Destroy instances of a card as an operator does; all of them, or those of one GPU instance."""
        for verb in ("-dci", "-dgi"):
            self.host.check_output(" ".join(["nvidia-smi", "mig", "-i", str(card), *selection, verb]))

    def destroy_one(self, card: int) -> Instance:
        one = self.instances()[card][-1]
        self.destroy(card, "-gi", str(one.gi))
        assert one not in self.instances()[card]
        return one

    def restart(self) -> bool:
        """Restart the unit; whether it came up."""
        return self.host.run(f"systemctl restart {self.service}").rc == 0

    def said(self) -> str:
        """What the unit's newest start wrote to the journal."""
        self.host.check_output("journalctl --sync")
        return self.host.check_output(f"journalctl --output=cat _SYSTEMD_INVOCATION_ID={self.unit('InvocationID')}")

    def setter_calls(self) -> int:
        """How often anybody asked the driver to change something."""
        match = re.search(r"(\d+) of setters", self.host.check_output("mock-driver calls"))
        assert match
        return int(match[1])


def uuids(listed: str) -> set[str]:
    """The UUIDs of MIG devices in what nvidia-smi listed."""
    return set(re.findall(r"MIG-[0-9a-f-]+", listed))


def _places(instances: list[Instance]) -> list[str]:
    parts: dict[tuple[int, str], list[str]] = {}
    for one in sorted(instances, key=lambda one: (one.start, one.profile)):
        parts.setdefault((one.start, one.gi_profile), []).append(one.profile)
    return [
        f"{profile}@{start}" + ("" if names == [profile] else f"({','.join(names)})")
        for (start, profile), names in parts.items()
    ]
