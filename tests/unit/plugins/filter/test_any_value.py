# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whatever stands wherever in what a filter is given, it answers or fails with an error of its own."""

from __future__ import annotations

import contextlib
import copy
import typing as t

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.gpuops.sharing.plugins.filter.from_mig_parted import from_mig_parted
from ansible_collections.gpuops.sharing.plugins.filter.mig_capacity import mig_capacity
from ansible_collections.gpuops.sharing.plugins.filter.to_mig_parted import to_mig_parted

ANY: list[t.Any] = [
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        10**12,
        1.5,
        float("inf"),
        float("nan"),
        "",
        " ",
        "x",
        "all",
        "0,1",
        "1g.5gb",
        "\u00b2",
    ),
    *([], {}, [0], [None], [[]], [-1, 2], ["all", 0], {"a": 1}, {1: 2, "a": 3}, {"start": -1, "size": 0}),
]
FILE = {
    "version": "v1",
    "mig-configs": {
        "a": [
            {
                "device-filter": ["0xA"],
                "devices": [0, 1],
                "mig-enabled": True,
                "mig-devices": {"1g.5gb": 2, "1c.3g.20gb": 2},
            },
            {"devices": [3], "mig-enabled": False},
        ]
    },
}
LAYOUT = {
    "gpus": ["GPU-a", 1],
    "enabled": True,
    "instances": [{"profile": "3g.20gb", "start": 4, "count": 1, "compute_instances": ["2c.3g.20gb:0", "1c.3g.20gb"]}],
}
GPUS = [{"index": 0, "uuid": "GPU-a", "pci_bus_id": "0000:07:00.0"}]
SMALL = {"id": 19, "name": "1g.5gb", "slices": 1, "memory_mib": 4864, "most": 7, "placements": [[0, 1], [1, 1]]}
HALF = {
    **SMALL,
    "name": "3g.20gb",
    "slices": 3,
    "most": 2,
    "placements": [{"start": 0, "size": 4}, {"start": 4, "size": 4}],
}
CARD = {
    "index": 0,
    "name": "A100",
    "uuid": "GPU-a",
    "profiles": [SMALL, HALF],
    "after": {"instances": [{"gi_id": 1, "profile": "3g.20gb", "placement": {"start": 4, "size": 4}}]},
}


def variants(value: t.Any) -> t.Iterator[t.Any]:
    """Any value in each place, one at a time, and each place left out."""
    yield from ANY
    places = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    for place, inside in places:
        for other in variants(inside):
            changed = copy.copy(value)
            changed[place] = other
            yield changed
        changed = copy.copy(value)
        del changed[place]
        yield changed


@pytest.mark.parametrize(
    ("look", "args"),
    [
        (from_mig_parted, [FILE, "a", {"0xA": [0, "1"]}]),
        (to_mig_parted, [[LAYOUT], "a", GPUS, True]),
        (mig_capacity, [CARD, "1g.5gb", True]),
        (mig_capacity, [CARD, "2g.5gb", True]),
    ],
)
def test_any_value_in_any_place(look: t.Callable[..., t.Any], args: list[t.Any]) -> None:
    for place, value in enumerate(args):
        for other in variants(value):
            with contextlib.suppress(AnsibleFilterError):
                look(*args[:place], other, *args[place + 1 :])
