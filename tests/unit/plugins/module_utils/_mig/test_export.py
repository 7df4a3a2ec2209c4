# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Cards as layouts, which lead to just what they are."""

from __future__ import annotations

import pytest
from ansible_collections.gpuops.sharing.plugins.module_utils._mig import export, layout, planner
from ansible_collections.gpuops.sharing.plugins.module_utils._mig.planner import Plan
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils._mig import machines
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils._mig.planning import A100, Wish, a100, plan

GPU = machines.gpu()


def test_a_card_out_of_mig_mode() -> None:
    assert export.layout(GPU, False, Plan()) == {"gpus": ["GPU-1"], "enabled": False}


def test_a_card_whose_plan_is_not_known_yet() -> None:
    assert export.layout(GPU, True, None) == {"gpus": ["GPU-1"], "enabled": True}


def test_what_is_there() -> None:
    there = Plan(keep=(a100("3g.20gb@4", 2, ["2c.3g.20gb", "1c.3g.20gb"]), a100("1g.5gb@0", 7)))
    assert export.layout(GPU, True, there) == {
        "gpus": ["GPU-1"],
        "enabled": True,
        "instances": [
            {"profile": "1g.5gb", "start": 0},
            {"profile": "3g.20gb", "start": 4, "compute_instances": ["2c.3g.20gb:0", "1c.3g.20gb:2"]},
        ],
    }


@pytest.mark.parametrize(
    "wish",
    [
        [],
        ["1g.5gb", "2g.10gb", "3g.20gb"],
        [{"profile": "3g.20gb", "start": 4, "compute_instances": ["1c.3g.20gb", "1c.3g.20gb"]}],
    ],
)
def test_a_plan_and_its_layout_lead_to_the_same(wish: list[Wish]) -> None:
    there = a100("3g.20gb@4", 2), a100("1g.5gb@0", 7)
    result = plan(wish, *there, purge=True)
    exported = export.layout(GPU, True, result)
    again = planner.make(machines.card(A100, *there), layout.parse([exported])[0], purge=True)
    assert (again.keep, again.destroy, again.create, again.repair) == (
        result.keep,
        result.destroy,
        result.create,
        result.repair,
    )
