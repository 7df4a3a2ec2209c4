# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How long the planner takes for a card: the slowest of all layouts of each machine, on empty cards and on full ones.

Run it with the collection on PYTHONPATH. Times are of this computer and only informative; the aim is under 10 ms.
"""

from __future__ import annotations

import itertools
import random
import sys
import time
import typing as t

from ansible_collections.gpuops.sharing.plugins.module_utils._errors import SharingError
from ansible_collections.gpuops.sharing.plugins.module_utils._instance import GpuInstance
from ansible_collections.gpuops.sharing.plugins.module_utils._mig import planner
from ansible_collections.gpuops.sharing.plugins.module_utils._mig.layout import InstanceWish, Layout
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils._mig import machines

AIM_MS = 10.0
STATES = 6  # beside the empty card
ROUNDS = 5


class Slowest(t.NamedTuple):
    milliseconds: float
    wish: tuple[str, ...]
    there: int
    purge: bool


def layouts(machine: str) -> t.Iterator[tuple[str, ...]]:
    """Every choice of profiles that a card has the compute slices for."""
    slices = {profile.name: profile.slices for profile in machines.profiles(machine)}
    for number in range(1, max(slices.values()) + 1):
        for names in itertools.combinations_with_replacement(slices, number):
            if sum(slices[name] for name in names) <= max(slices.values()):
                yield names


def state(machine: str, chance: random.Random) -> list[GpuInstance]:
    places = [(entry.name, place.start) for entry in machines.profiles(machine) for place in entry.placements]
    chance.shuffle(places)
    chosen: list[machines.Place] = []
    for place in places:
        if machines.possible(machine, [*chosen, place]):
            chosen.append(place)
    return [machines.instance(machine, place, number) for number, place in enumerate(chosen)]


def measure(machine: str) -> tuple[int, Slowest]:
    chance = random.Random(machine)
    states = [[], *(state(machine, chance) for _number in range(STATES))]
    slowest = Slowest(0.0, (), 0, False)
    runs = 0
    for names in layouts(machine):
        wish = tuple(InstanceWish("layouts[0].instances[0]", name) for name in names)
        layout = Layout("layouts[0]", ("0",), True, wish)
        for there in states:
            card = machines.card(machine, *there)
            for purge in (False, True) if there else (False,):
                runs += 1
                taken = Slowest(_time(lambda: planner.make(card, layout, purge)), names, len(there), purge)  # noqa: B023
                slowest = max(slowest, taken)
    return runs, slowest


def _time(work: t.Callable[[], t.Any]) -> float:
    """Processor time, the least of some rounds: other work on the computer does not count."""
    times = []
    for _round in range(ROUNDS):
        begin = time.process_time()
        try:
            work()
        except SharingError:
            pass  # that there is no plan has to be found as fast
        times.append(time.process_time() - begin)
        if times[-1] * 1000 < AIM_MS / 20:
            break
    return min(times) * 1000


def shapes() -> dict[str, list[str]]:
    """The machines, those that differ only in names and ids together."""
    found: dict[str, list[str]] = {}
    for machine in machines.MACHINES:
        table = [
            (one.slices, one.most, one.placements, *one.name.split("gb")[1:]) for one in machines.profiles(machine)
        ]
        found.setdefault(repr(table), []).append(machine)
    return found


def main() -> int:
    worst = 0.0
    for alike in shapes().values():
        runs, slowest = measure(alike[0])
        worst = max(worst, slowest.milliseconds)
        beside = f"{slowest.there} there{', purge' if slowest.purge else ''}"
        print(f"{', '.join(alike)}: {runs} plans")
        print(f"  slowest {slowest.milliseconds:.2f} ms: {', '.join(slowest.wish)} ({beside})")
    print(f"slowest of all: {worst:.2f} ms (aim: under {AIM_MS:.0f} ms a card)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
