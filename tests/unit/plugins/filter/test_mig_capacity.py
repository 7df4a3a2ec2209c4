# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The filter mig_capacity: a card of a module's result in, numbers out."""

from __future__ import annotations

import typing as t

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.gpuops.sharing.plugins.filter.mig_capacity import FilterModule

mig_capacity = FilterModule().filters()["mig_capacity"]

CARD: dict[str, t.Any] = {
    "index": 1,
    "name": "NVIDIA A100-SXM4-40GB",
    "uuid": "GPU-a",
    "profiles": [
        {
            "id": 19,
            "name": "1g.5gb",
            "slices": 1,
            "memory_mib": 4864,
            "most": 7,
            "placements": [[n, 1] for n in range(7)],
        },
        {
            "id": 14,
            "name": "2g.10gb",
            "slices": 2,
            "memory_mib": 9856,
            "most": 3,
            "placements": [[0, 2], [2, 2], [4, 2]],
        },
        {"id": 9, "name": "3g.20gb", "slices": 3, "memory_mib": 19968, "most": 2, "placements": [[0, 4], [4, 4]]},
        {"id": 0, "name": "7g.40gb", "slices": 7, "memory_mib": 40192, "most": 1, "placements": [[0, 8]]},
    ],
    "instances": [{"id": 5, "profile": "2g.10gb", "placement": {"start": 4, "size": 2}}],
}

ONE = "give one entry of gpus in the result of nvidia_mig, like looked.gpus[0]"
NO_PROFILES = (
    f"tells no MIG profiles; {ONE}. nvidia_mig tells a card's profiles only if its layout gives instances ([] will do) or instances exist, "
    "and some drivers tell them only while MIG mode is on"
)


def test_an_empty_card() -> None:
    assert mig_capacity(CARD) == {"1g.5gb": 7, "2g.10gb": 3, "3g.20gb": 2, "7g.40gb": 1}
    assert mig_capacity(CARD, "2g.10gb") == 3
    assert mig_capacity(CARD, " MIG 2G.10GB") == 3


@pytest.mark.parametrize("free", [True, "true", "yes"])
def test_what_is_free(free: t.Any) -> None:
    assert mig_capacity(CARD, free=free) == {"1g.5gb": 5, "2g.10gb": 2, "3g.20gb": 1, "7g.40gb": 0}
    assert mig_capacity(CARD, "3g.20gb", free) == 1


def test_free_off_as_a_string() -> None:
    assert mig_capacity(CARD, "3g.20gb", "false") == 2


def test_a_card_without_instances_is_all_free() -> None:
    assert mig_capacity({"profiles": CARD["profiles"]}, "2g.10gb", True) == 3


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            (CARD, "2g.12gb"),
            "mig_capacity: profile: '2g.12gb': GPU 1 (NVIDIA A100-SXM4-40GB, GPU-a) offers no such profile; did you mean 2g.10gb?",
        ),
        ((CARD, None, "perhaps"), "mig_capacity: free: "),
        (({"index": 0, "name": "T4"},), f"mig_capacity: card: 'GPU 0 (T4)': {NO_PROFILES}"),
        (({**CARD, "profiles": []},), f"mig_capacity: card: 'GPU 1 (NVIDIA A100-SXM4-40GB, GPU-a)': {NO_PROFILES}"),
        (({**CARD, "profiles": None},), f"mig_capacity: card: 'GPU 1 (NVIDIA A100-SXM4-40GB, GPU-a)': {NO_PROFILES}"),
        (("GPU-a",), f"mig_capacity: card: 'GPU-a': is no card; {ONE}"),
        ((None,), f"mig_capacity: card: None: is no card; {ONE}"),
        (([CARD],), f"mig_capacity: card: 'a list': is no card; {ONE}"),
        (({"changed": False, "gpus": [CARD]},), f"mig_capacity: card: 'a mapping': is no card; {ONE}"),
        (
            ({"index": "x", "profiles": CARD["profiles"]},),
            "mig_capacity: card: 'a mapping': cannot be read (ValueError: ",
        ),
        (({"profiles": ["1g.5gb"]},), "mig_capacity: card: 'a mapping': cannot be read (AttributeError: "),
        (
            ({"profiles": [{"name": "1g.5gb"}]},),
            "mig_capacity: card: 'a mapping': cannot be read (KeyError: 'slices'); give",
        ),
        (({**CARD, "instances": ["2g.10gb"]},), "mig_capacity: card: 'a mapping': cannot be read (AttributeError: "),
    ],
)
def test_what_is_no_card_is_told(args: tuple[t.Any, ...], message: str) -> None:
    with pytest.raises(AnsibleFilterError) as failure:
        mig_capacity(*args)
    assert str(failure.value).startswith(message)
