# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The filters from_mig_parted and to_mig_parted: what can be carried over is, exactly, and what cannot be is told."""

from __future__ import annotations

import typing as t

import pytest
import yaml
from ansible.errors import AnsibleFilterError
from ansible_collections.gpuops.sharing.plugins.filter import from_mig_parted as incoming
from ansible_collections.gpuops.sharing.plugins.filter import to_mig_parted as outgoing

from_mig_parted = incoming.FilterModule().filters()["from_mig_parted"]
to_mig_parted = outgoing.FilterModule().filters()["to_mig_parted"]

# In the form of the files that mig-parted v0.15 installs.
FILE = yaml.safe_load("""
version: v1
mig-configs:
  all-disabled:
    - devices: all
      mig-enabled: false
  all-enabled:
    - devices: all
      mig-enabled: true
      mig-devices: {}
  all-1g.5gb:
    - devices: all
      mig-enabled: true
      mig-devices:
        "1g.5gb": 7
  all-1g.24gb.me.all:
    - devices: all
      mig-enabled: true
      mig-devices:
        "1g.24gb+me.all": 1
        "1g.24gb-me": 3
  all-balanced:
    - device-filter: ["0x20B010DE", "0x20B110DE"]
      devices: all
      mig-enabled: true
      mig-devices: {"1g.5gb": 2, "2g.10gb": 1, "3g.20gb": 1}
    - device-filter: "0x20B210DE"
      devices: [0, 1]
      mig-enabled: true
      mig-devices: {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}
  custom:
    - devices: [0]
      mig-enabled: false
    - devices: [1, 2]
      mig-enabled: true
      mig-devices: {"3g.20gb": 1, "1c.3g.20gb": 3}
    - devices: [3]
      mig-enabled: true
      mig-devices: {"1c.3g.20gb": 2, "2c.3g.20gb": 1}
""")


@pytest.mark.parametrize(
    ("config", "layouts"),
    [
        ("all-disabled", [{"gpus": ["all"], "enabled": False}]),
        ("all-enabled", [{"gpus": ["all"], "enabled": True, "instances": []}]),
        ("all-1g.5gb", [{"gpus": ["all"], "enabled": True, "instances": [{"profile": "1g.5gb", "count": 7}]}]),
        (
            "all-1g.24gb.me.all",
            [
                {
                    "gpus": ["all"],
                    "enabled": True,
                    "instances": [{"profile": "1g.24gb+me.all", "count": 1}, {"profile": "1g.24gb-me", "count": 3}],
                }
            ],
        ),
        (
            "custom",
            [
                {"gpus": [0], "enabled": False},
                {
                    "gpus": [1, 2],
                    "enabled": True,
                    "instances": [
                        {"profile": "3g.20gb", "count": 1},
                        {"profile": "3g.20gb", "count": 1, "compute_instances": ["1c.3g.20gb"] * 3},
                    ],
                },
                {
                    "gpus": [3],
                    "enabled": True,
                    "instances": [
                        {"profile": "3g.20gb", "count": 1, "compute_instances": ["2c.3g.20gb", "1c.3g.20gb"]},
                        {"profile": "3g.20gb", "count": 1, "compute_instances": ["1c.3g.20gb"]},
                    ],
                },
            ],
        ),
    ],
)
def test_a_configuration_becomes_layouts_and_returns(config: str, layouts: list[dict[str, t.Any]]) -> None:
    assert from_mig_parted(FILE, config) == layouts
    assert to_mig_parted(layouts, config) == {"version": "v1", "mig-configs": {config: FILE["mig-configs"][config]}}


def test_the_only_configuration_needs_no_name() -> None:
    file = to_mig_parted(
        [{"gpus": "0, 1", "instances": [{"profile": "MIG 1G.5gb", "count": "2"}, {"profile": "1g.5gb"}]}], "ours"
    )
    assert file == {
        "version": "v1",
        "mig-configs": {"ours": [{"devices": [0, 1], "mig-enabled": True, "mig-devices": {"1g.5gb": 3}}]},
    }
    assert from_mig_parted(file)[0]["instances"] == [{"profile": "1g.5gb", "count": 3}]


def test_device_filters_say_which_cards_are_meant() -> None:
    meant = {"0x20B010DE": [2, "GPU-x"], "0x20B110DE": [2], "0x20B210DE": ["1"]}
    assert [entry["gpus"] for entry in from_mig_parted(FILE, "all-balanced", meant)] == [[2, "GPU-x"], [1]]
    none = {"0x20B010DE": [], "0x20B110DE": [], "0x20B210DE": [0]}
    assert [entry["gpus"] for entry in from_mig_parted(FILE, "all-balanced", device_filters=none)] == [[0]]


def file(**entry: t.Any) -> dict[str, t.Any]:
    return {"version": "v1", "mig-configs": {"a": [{name.replace("_", "-"): value for name, value in entry.items()}]}}


@pytest.mark.parametrize(
    ("data", "config", "message"),
    [
        (
            FILE,
            "all-balanced",
            "mig-configs.all-balanced[0].device-filter: '0x20B010DE': cannot be carried over: layouts name cards, not models; say",
        ),
        (
            FILE,
            "all-2g",
            "config: 'all-2g': is no configuration of this file; it has: all-1g.24gb.me.all, all-1g.5gb, all-balanced, ",
        ),
        (FILE, None, "config: '': is no configuration of this file"),
        ({**FILE, "version": "v2"}, "custom", "version: 'v2': is not known; this takes files of version v1"),
        ("version: v1", "a", "file: 'version: v1': is no mig-parted file; give its content as a mapping (from_yaml)"),
        ([], "a", "file: 'list': is no mig-parted file"),
        ({"version": "v1", "mig-configs": {"a": ["all"]}}, "a", "mig-configs.a[0]: 'all': is no entry"),
        (
            file(devices="all", mig_enabled=False, mode="x"),
            "a",
            "mig-configs.a[0]: 'mode': is no field of version v1; it has: device-filter, ",
        ),
        (
            file(devices="0", mig_enabled=False),
            "a",
            "mig-configs.a[0].devices: '0': is neither 'all' nor a list of indices",
        ),
        (file(devices=["0"], mig_enabled=False), "a", "mig-configs.a[0].devices: ['0']: is neither"),
        (file(devices=[0]), "a", "mig-configs.a[0].mig-enabled: None: is neither true nor false"),
        (file(devices=[0], mig_enabled=True), "a", "mig-configs.a[0].mig-devices: None: is missing"),
        (
            file(devices=[0], mig_enabled=True, mig_devices={"5gb": 1}),
            "a",
            "mig-configs.a[0].mig-devices: '5gb': is no MIG device",
        ),
        (
            file(devices=[0], mig_enabled=True, mig_devices={"4c.3g.20gb": 1}),
            "a",
            "mig-configs.a[0].mig-devices: '4c.3g.20gb': is no MIG device",
        ),
        (
            file(devices=[0], mig_enabled=True, mig_devices={"1g.5gb": -1}),
            "a",
            "mig-configs.a[0].mig-devices.1g.5gb: -1: is no number of devices",
        ),
    ],
)
def test_what_cannot_be_read_is_told(data: t.Any, config: str | None, message: str) -> None:
    with pytest.raises(AnsibleFilterError) as failure:
        from_mig_parted(data, config)
    assert str(failure.value).startswith(f"from_mig_parted: {message}")


@pytest.mark.parametrize(
    ("layouts", "message"),
    [
        (
            [{"gpus": ["GPU-a", 1], "enabled": False}],
            "layouts[0].gpus: 'GPU-a': cannot be said in mig-parted's files, which know indices and 'all'",
        ),
        (
            [{"gpus": [0]}],
            "layouts[0].instances: '': is left out (only the mode is asked for), and mig-parted's files always say the instances",
        ),
        (
            [{"gpus": [0], "instances": [{"profile": "1g.5gb", "start": 3}]}],
            "layouts[0].instances[0].start: 3: cannot be said",
        ),
        (
            [
                {
                    "gpus": [0],
                    "instances": [
                        {"profile": "3g.20gb", "count": 2, "compute_instances": ["1c.3g.20gb", "1c.3g.20gb"]}
                    ],
                }
            ],
            "layouts[0].instances: '1c.3g.20gb': cannot be said in mig-parted's files: it would put these compute instances into GPU instances in another",
        ),
        ([{"gpus": [0], "instances": [{"profile": 19}]}], "layouts[0].instances[0].profile: 19: is an id"),
        ({"gpus": [0]}, "layouts: {'gpus': [0]}: is no list of layouts"),
    ],
)
def test_what_cannot_be_said_is_told(layouts: t.Any, message: str) -> None:
    with pytest.raises(AnsibleFilterError) as failure:
        to_mig_parted(layouts, "ours")
    assert str(failure.value).startswith(f"to_mig_parted: {message}")
