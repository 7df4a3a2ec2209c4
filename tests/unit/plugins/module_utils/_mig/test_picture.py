# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The slots of a card before and after a plan, as a person would draw them."""

from __future__ import annotations

from ansible_collections.gpuops.sharing.plugins.module_utils._instance import GpuInstance
from ansible_collections.gpuops.sharing.plugins.module_utils._mig import picture, planner
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils._mig import machines
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils._mig.planning import (
    A100,
    BUSY,
    RTX,
    Wish,
    a100,
    wanted,
)


def lines(
    wish: list[Wish], *there: GpuInstance, protected: dict[int, str] | None = None, machine: str = A100
) -> list[str]:
    card = machines.card(machine, *there)
    plan = planner.make(card, wanted(wish), purge=True, protected=protected)
    blocks = [picture.now(card, protected or {}), planner.blocks(plan, protected or {})]
    return [f"{card.title}  {line}" for line in picture.slots(card.units, blocks)]


def test_before_and_after() -> None:
    assert lines(["1g.5gb", "1g.5gb", "2g.10gb", "3g.20gb"], a100("1g.5gb@2", 9), a100("1g.5gb@6", 13)) == [
        "GPU 0  |  .   |  .   |1g.5gb|  .   |  .   |  .   |1g.5gb|  .   |",
        "GPU 0  |   2g.10gb   |1g.5gb|1g.5gb|          3g.20gb          |",
    ]


def test_what_must_stay_bears_a_star() -> None:
    stays = "GPU 0  |    3g.20gb*   | . | . | . | . |"
    assert lines(["3g.20gb"], a100("3g.20gb@0", 13), protected=BUSY) == [stays, stays]


def test_compute_instances_show_where_they_are_not_the_usual_one() -> None:
    wish = {"profile": "3g.20gb", "start": 0, "compute_instances": ["1c.3g.20gb", "2c.3g.20gb"]}
    assert lines([wish, "2g.10gb"], a100("3g.20gb@0", 1), a100("2g.10gb@4", 5, [])) == [
        "GPU 0  |          3g.20gb          |2g.10gb(none)|  .   |  .   |",
        "GPU 0  |       3g.20gb(1c,2c)      |   2g.10gb   |  .   |  .   |",
    ]


def test_twelfths() -> None:
    assert lines(["2g.48gb", "1g.24gb+me"], machine=RTX) == [
        "GPU 0  | . | . | . | . | . | . | . | . | . | . | . | . |",
        "GPU 0  |        2g.48gb        | 1g.24gb+me| . | . | . |",
    ]
