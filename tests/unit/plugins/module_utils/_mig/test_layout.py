# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Layouts: every spelling that a task, a survey or a template delivers, and what is refused with its remedy."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.gpuops.sharing.plugins.module_utils._errors import BadOption, CommandFailed, DoesNotFit
from ansible_collections.gpuops.sharing.plugins.module_utils._gpu import Gpu, Mig
from ansible_collections.gpuops.sharing.plugins.module_utils._mig import layout
from ansible_collections.gpuops.sharing.plugins.module_utils._mig.layout import InstanceWish, Layout, Protected

Raw = dict[str, t.Any]


def parse(**entry: t.Any) -> Layout:
    return layout.parse([entry])[0]


def test_everything_can_be_a_string() -> None:
    strings = parse(
        gpus="0,1",
        enabled="yes",
        instances=[
            {"profile": "1g.5gb", "count": "2", "start": "", "compute_instances": ""},
            {
                "profile": " MIG 3G.20GB ",
                "count": "",
                "start": "4",
                "compute_instances": "1c.3g.20gb:2, MIG 2C.3g.20gb",
            },
        ],
    )
    typed = parse(
        gpus=[0, 1],
        enabled=True,
        instances=[
            {"profile": "1g.5gb", "count": 2},
            {"profile": "3g.20gb", "start": 4, "compute_instances": ["1c.3g.20gb:2", "2c.3g.20gb"]},
        ],
    )
    assert strings == typed
    assert typed == Layout(
        "layouts[0]",
        ("0", "1"),
        True,
        (
            InstanceWish("layouts[0].instances[0]", "1g.5gb", 2),
            InstanceWish("layouts[0].instances[1]", "3g.20gb", 1, 4, ("1c.3g.20gb:2", "2c.3g.20gb")),
        ),
    )


@pytest.mark.parametrize("value", [None, ""])
def test_instances_that_are_left_out_mean_the_mode_only(value: t.Any) -> None:
    assert parse(gpus=["all"], instances=value) == Layout("layouts[0]", ("all",), True, None)
    assert parse(gpus="all", enabled=value) == Layout("layouts[0]", ("all",), True, None)


def test_no_instances_are_a_wish_too() -> None:
    assert parse(gpus=[0], instances=[]).instances == ()
    assert parse(gpus=[0], enabled=False, instances=[]).instances == ()


@pytest.mark.parametrize(
    ("value", "enabled"), [("true", True), ("On", True), (1, True), ("no", False), ("False", False), (0, False)]
)
def test_enabled(value: t.Any, enabled: bool) -> None:
    assert parse(gpus=[0], enabled=value).enabled is enabled


@pytest.mark.parametrize("name", ["1g.5gb+me", "1g.24gb-me", "1g.24gb+me.all", "2g.48gb+gfx"])
def test_suffixes_are_part_of_the_name(name: str) -> None:
    assert [wish.profile for wish in parse(gpus=[0], instances=[{"profile": name}]).instances or ()] == [name]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({}, "layouts[0].gpus: '': is missing; give indices, UUIDs, PCI addresses, or 'all'"),
        ({"gpus": []}, "layouts[0].gpus: '[]': names no GPU"),
        ({"gpus": ""}, "layouts[0].gpus: '': is empty"),
        ({"gpus": {"a": 1}}, "layouts[0].gpus: {'a': 1}: is no list"),
        ({"enabled": "maybe"}, "layouts[0].enabled: 'maybe': is neither true nor false"),
        (
            {"instances": "1g.5gb"},
            "layouts[0].instances: '1g.5gb': is no list; give entries like {profile: 1g.5gb, count: 7}",
        ),
        ({"instances": ["1g.5gb"]}, "layouts[0].instances[0]: '1g.5gb': is no entry"),
        ({"instance": []}, "layouts[0]: 'instance': is not known here; there are: gpus, enabled, instances"),
        (
            {"instances": [{"profile": "1g.5gb", "placement": 0, 1: 2}]},
            "layouts[0].instances[0]: '1, placement': is not known here; there are: profile, count, start, compute_instances",
        ),
        ({"instances": [{}]}, "layouts[0].instances[0].profile: '': is missing; give a profile's name"),
        ({"instances": [{"profile": 19}]}, "layouts[0].instances[0].profile: 19: is an id, and ids differ between"),
        ({"instances": [{"profile": "9:4"}]}, "layouts[0].instances[0].profile: '9:4': is an id"),
        ({"count": "0"}, "layouts[0].instances[0].count: '0': is no whole number from 1 to 64"),
        ({"count": "-1"}, "layouts[0].instances[0].count: '-1': is no whole number from 1 to 64"),
        ({"count": 2.5}, "layouts[0].instances[0].count: 2.5: is no whole number"),
        ({"count": "999999999999"}, "layouts[0].instances[0].count: '999999999999': is no whole number"),
        ({"count": True}, "layouts[0].instances[0].count: True: is no whole number"),
        ({"start": "4:4"}, "layouts[0].instances[0].start: '4:4': is no whole number from 0 to 64"),
        (
            {"start": 0, "count": 2},
            "layouts[0].instances[0].count: 2: with start there is one place, so one instance; drop count or start",
        ),
        ({"compute_instances": []}, "layouts[0].instances[0].compute_instances: []: names no compute instance"),
        (
            {"compute_instances": ["1c.3g.20gb", " "]},
            "layouts[0].instances[0].compute_instances: ['1c.3g.20gb', ' ']: ",
        ),
        (
            {"enabled": False, "instances": [{"profile": "1g.5gb"}]},
            "layouts[0].instances: '1g.5gb': cannot be there with enabled: false; drop instances, or set enabled: true",
        ),
        (
            {"instances": [{"profile": "1g.5gb", "start": 3}, {"profile": "MIG 1G.5gb", "start": "3"}]},
            "layouts[0].instances[1].start: 3: 1g.5gb already stands there by layouts[0].instances[0]",
        ),
    ],
)
def test_a_bad_value_is_named_with_its_remedy(entry: Raw, message: str) -> None:
    whole = {"gpus": [0], **entry} if entry else {}
    wish = {key: whole.pop(key) for key in ("count", "start", "compute_instances") if key in whole}
    if wish:
        whole["instances"] = [{"profile": "3g.20gb", **wish}]
    with pytest.raises(BadOption) as failure:
        layout.parse([whole])
    assert failure.value.message.startswith(message)


@pytest.mark.parametrize("entry", ["x", None, 3, ["gpus"]])
def test_what_is_no_layout(entry: t.Any) -> None:
    with pytest.raises(BadOption) as failure:
        layout.parse([entry])
    assert failure.value.message.endswith(
        ": is no entry; give one like {gpus: [0], instances: [{profile: 1g.5gb, count: 7}]}"
    )


A100 = Gpu(index=0, uuid="GPU-a", pci_bus_id="0000:07:00.0", name="A100", mig=Mig(True, False, False))
SECOND = A100._replace(index=1, uuid="GPU-b", pci_bus_id="0000:0f:00.0")
T4 = Gpu(index=2, uuid="GPU-c", name="T4", mig=Mig(False, False, False))


def choose(*entries: Raw) -> list[tuple[int, str]]:
    layouts = layout.parse(entries)
    return [(gpu.index, chosen.option) for gpu, chosen in layout.choose(layouts, [A100, SECOND, T4])]


def test_each_card_gets_its_layout() -> None:
    assert choose({"gpus": "GPU-b"}, {"gpus": [0]}) == [(0, "layouts[1]"), (1, "layouts[0]")]


def test_a_card_in_two_layouts() -> None:
    with pytest.raises(BadOption) as failure:
        choose({"gpus": [0, 1]}, {"gpus": ["0000:07:00.0"]})
    assert failure.value.message == (
        "layouts[1].gpus: '0000:07:00.0': GPU 0 (A100, GPU-a, 0000:07:00.0) already stands in layouts[0]; a card has one layout"
    )


def test_a_card_without_mig() -> None:
    with pytest.raises(DoesNotFit, match=r"layouts\[0\]: GPU 2 \(T4, GPU-c\) has no MIG mode; leave it out"):
        choose({"gpus": [0, 2]})
    assert choose({"gpus": [2], "enabled": False}) == [(2, "layouts[0]")]


def test_all_means_the_cards_that_can_be_cut() -> None:
    assert choose({"gpus": "all"}) == [(0, "layouts[0]"), (1, "layouts[0]")]
    assert choose({"gpus": "all", "enabled": False}) == [(number, "layouts[0]") for number in range(3)]
    lost = SECOND._replace(error="GPU is lost")
    told = layout.left_out(layout.parse([{"gpus": "all"}]), [A100, lost, T4])
    assert told == [
        "GPU 1 (A100, GPU-b, 0000:0f:00.0) was left out: GPU is lost",
        "GPU 2 (T4, GPU-c) was left out: it has no MIG mode",
    ]
    assert layout.left_out(layout.parse([{"gpus": [0]}, {"gpus": "all", "enabled": False}]), [A100, T4]) == []
    with pytest.raises(DoesNotFit, match="has no MIG mode"):
        layout.choose(layout.parse([{"gpus": "all"}]), [T4])


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("gpus", ["all", "0"])
def test_a_card_whose_mode_cannot_be_read(gpus: str, enabled: bool) -> None:
    dumb = A100._replace(mig=None)
    with pytest.raises(CommandFailed, match=r"layouts\[0\]: the driver cannot tell the MIG mode of GPU 0"):
        layout.choose(layout.parse([{"gpus": gpus, "enabled": enabled}]), [dumb])


UUID = "MIG-74882b04-987f-508d-a6fa-466e2a1ef94f"


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("0/13", Protected("0/13", card="GPU-a", instance=13)),
        ("0 / 13", Protected("0 / 13", card="GPU-a", instance=13)),
        ("gpu-A/13", Protected("gpu-A/13", card="GPU-a", instance=13)),
        ("0000:0F:00.0/7", Protected("0000:0F:00.0/7", card="GPU-b", instance=7)),
        ("MIG-GPU-b/7/0", Protected("MIG-GPU-b/7/0", card="GPU-b", instance=7)),
        (UUID.upper(), Protected(UUID.upper(), device=UUID.lower())),
    ],
)
def test_what_is_protected(name: str, meant: Protected) -> None:
    assert layout.protect([f" {name} ", ""], [A100, SECOND, T4]) == [meant]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("13", "'13': is no MIG device (UUID MIG-...), and no GPU with the id of a GPU instance (0/13, GPU-.../13)"),
        ("0/x", "'0/x': is no MIG device"),
        ("0/", "'0/': is no MIG device"),
        ("MIG-1", "'MIG-1': is no MIG device"),
        ("gpu0/7", "'gpu0': is no index, UUID (GPU-...), PCI address (0000:07:00.0), or 'all'"),
        ("all/7", "'all/7': there is no GPU all on this host"),
        ("5/7", "'5/7': there is no GPU 5 on this host"),
        ("GPU-c2/7", "'GPU-c2/7': there is no GPU GPU-c2 on this host"),
    ],
)
def test_what_cannot_be_protected(name: str, problem: str) -> None:
    with pytest.raises(BadOption) as failure:
        layout.protect([name], [A100, SECOND, T4])
    assert failure.value.message.startswith(f"protect: {problem}")
