# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The filter from_mig_parted: what can be carried over is, exactly, and what cannot be is told. And there and back again."""

from __future__ import annotations

import typing as t

import pytest
import yaml
from ansible.errors import AnsibleFilterError
from ansible_collections.gpuops.sharing.plugins.filter import from_mig_parted as incoming
from ansible_collections.gpuops.sharing.plugins.filter import to_mig_parted as outgoing
from hypothesis import given
from hypothesis import strategies as st

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
    # A100-40GB, A800-40GB
    - device-filter: ["0x20B010DE", "0x20B110DE"]
      devices: all
      mig-enabled: true
      mig-devices:
        "1g.5gb": 2
        "2g.10gb": 1
        "3g.20gb": 1
    # A30-24GB
    - device-filter: "0x20B710DE"
      devices: all
      mig-enabled: true
      mig-devices:
        "1g.6gb": 2
        "2g.12gb": 1
    # A100-80GB
    - device-filter: "0x20B210DE"
      devices: [0, 1]
      mig-enabled: true
      mig-devices:
        "1g.10gb": 2
        "2g.20gb": 1
        "3g.40gb": 1
  all-4g.20gb:
    - device-filter: []
      devices: all
      mig-enabled: true
      mig-devices:
        "4g.20gb": 1
  custom-config:
    - devices: [0]
      mig-enabled: false
    - devices: [1, 2]
      mig-enabled: true
      mig-devices:
        "3g.20gb": 1
        "1c.3g.20gb": 3
    - devices: [3]
      mig-enabled: true
      mig-devices:
        "1c.3g.20gb": 2
        "2c.3g.20gb": 1
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
            "custom-config",
            [
                {"gpus": [0], "enabled": False},
                {
                    "gpus": [1, 2],
                    "enabled": True,
                    "instances": [
                        {"profile": "3g.20gb", "count": 1, "compute_instances": ["3g.20gb"]},
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


KEYS = [
    *("1g.5gb", "1g.5gb+me", "2g.10gb", "1c.2g.10gb", "3g.20gb", "2c.3g.20gb", "1c.3g.20gb", "4g.20gb", "2c.4g.20gb"),
    *("7g.40gb", "4c.7g.40gb", "3c.7g.40gb", "1c.7g.40gb"),
]


@given(st.dictionaries(st.sampled_from(KEYS), st.integers(1, 9)))
def test_whatever_a_file_counts_returns(devices: dict[str, int]) -> None:
    entry = {"devices": [0], "mig-enabled": True, "mig-devices": devices}
    there = {"version": "v1", "mig-configs": {"a": [entry]}}
    assert to_mig_parted(from_mig_parted(there), "a") == there


@pytest.mark.parametrize("config", [None, ""])
def test_the_only_configuration_needs_no_name(config: str | None) -> None:
    assert from_mig_parted(file(devices="all", mig_enabled=False), config) == [{"gpus": ["all"], "enabled": False}]


def balanced(*meant: t.Any, **options: t.Any) -> list[list[t.Any]]:
    """The cards of each layout of all-balanced where its four device-filters mean these."""
    filters = dict(zip(["0x20B010DE", "0x20B110DE", "0x20B710DE", "0x20B210DE"], meant))
    return [entry["gpus"] for entry in from_mig_parted(FILE, "all-balanced", {**filters, **options})]


def test_device_filters_say_which_cards_are_meant() -> None:
    assert balanced([2, "GPU-x"], [2, 3], [], ["1"]) == [[2, "GPU-x", 3], [1]]
    assert balanced([], [], ["0000:07:00.0"], []) == [["0000:07:00.0"]]


def test_an_entry_for_other_models_is_left_out() -> None:
    assert balanced([], [], [], [0]) == [[0]]
    assert balanced([3], [], [], [2]) == [[3]]
    assert balanced([], [], [], []) == []


@pytest.mark.parametrize(
    ("value", "gpus"),
    [
        ("0,1", [0, 1]),
        (" 1 , GPU-x", [1, "GPU-x"]),
        ("0", [0]),
        (0, [0]),
        ((0, "1"), [0, 1]),
        ("GPU-x", ["GPU-x"]),
        ("all", ["all"]),
        (["all"], ["all"]),
        ([0, "0", " 00"], [0]),
        (["GPU-x", "gpu-X", "0F:00", "0000:0f:00.0"], ["GPU-x", "0F:00"]),
    ],
)
def test_cards_as_surveys_deliver_them(value: t.Any, gpus: list[t.Any]) -> None:
    assert balanced(value, [], [], []) == [gpus]


def test_cards_of_several_filters_count_once() -> None:
    assert balanced([1, 0], "0, 2", [], []) == [[1, 0, 2]]
    assert balanced([1, 0], "all", [], []) == [["all"]]


@pytest.mark.parametrize(
    ("value", "gpus"), [("all", [[0, 1]]), ("1,5", [[1]]), ([1, "0"], [[0, 1]]), ([5], []), ("7", [])]
)
def test_devices_and_device_filter_must_both_mean_a_card(value: t.Any, gpus: list[list[int]]) -> None:
    assert balanced([], [], [], value) == gpus


def test_devices_that_are_named_twice_count_once() -> None:
    assert from_mig_parted(file(devices=[1, 0, 1], mig_enabled=False)) == [{"gpus": [1, 0], "enabled": False}]


def test_case_of_a_device_filter_means_nothing() -> None:
    there = file(device_filter="0x20b010de:0x145f10de", devices="all", mig_enabled=False)
    assert from_mig_parted(there, device_filters={"0X20B010DE:0x145F10DE": 0}) == [{"gpus": [0], "enabled": False}]


@pytest.mark.parametrize("wanted", [None, "", []])
def test_no_device_filter(wanted: t.Any) -> None:
    there = file(device_filter=wanted, devices="all", mig_enabled=False, mig_devices={})
    assert from_mig_parted(there, device_filters="") == [{"gpus": ["all"], "enabled": False}]


def file(**entry: t.Any) -> dict[str, t.Any]:
    return files({name.replace("_", "-"): value for name, value in entry.items()})


def files(*entries: t.Any, **fields: t.Any) -> dict[str, t.Any]:
    return {"version": "v1", "mig-configs": {"a": list(entries)}, **fields}


CARDS = "names no cards; give a list like [0, 1] (indices, UUIDs or PCI addresses), one of these, a comma list, 'all', or [] for none"


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        (
            None,
            "mig-configs.all-balanced[0].device-filter: '0x20B010DE, 0x20B110DE, 0x20B710DE, 0x20B210DE': cannot be carried over: "
            "layouts name cards, not models; say with device_filters which GPUs of the host each means, e.g. device_filters={'0x20B010DE': [0, 1]} ([]",
        ),
        (
            {"0x20B010DE": 0, "0x20B110DE": [], "0x20B710DE": []},
            "mig-configs.all-balanced[2].device-filter: '0x20B210DE': cannot be carried over",
        ),
        ("0,1", "device_filters: '0,1': is no dictionary; give one like {'0x20B010DE': [0, 1]}"),
        ([], "device_filters: []: is no dictionary"),
        (0, "device_filters: 0: is no dictionary"),
        (
            {0x20B010DE: [0]},
            "device_filters: 548409566: is no device-filter; YAML reads an unquoted 0x20B010DE as a number",
        ),
        ({"0xA": [0], "0xa": [1]}, "device_filters: '0xa': stands there twice, in different spellings; drop one"),
        ({"0xA": None}, f"device_filters['0xA']: None: {CARDS}"),
        ({"0xA": ""}, f"device_filters['0xA']: '': {CARDS}"),
        ({"0xA": True}, f"device_filters['0xA']: True: {CARDS}"),
        ({"0xA": {"gpus": [0]}}, f"device_filters['0xA']: {{'gpus': [0]}}: {CARDS}"),
        ({"0xA": [[0]]}, f"device_filters['0xA']: [[0]]: {CARDS}"),
        ({"0xA": [0, None]}, f"device_filters['0xA']: [0, None]: {CARDS}"),
        (
            {"0xA": "0;1"},
            "device_filters['0xA']: '0;1': is no index, UUID (GPU-...), PCI address (0000:07:00.0), or 'all'",
        ),
        ({"0xA": "0,"}, "device_filters['0xA']: '': is empty"),
        ({"0xA": -1}, "device_filters['0xA']: '-1': an index counts from 0"),
        (
            {"0xA": [420.0]},
            "device_filters['0xA']: '420.0': is no GPU index; YAML reads an unquoted PCI address as a number",
        ),
        ({"0xA": "all,0"}, "device_filters['0xA']: 'all, 0': 'all' stands alone"),
        ({"0xA": ["MIG-x"]}, "device_filters['0xA']: 'MIG-x': names a MIG instance"),
        (
            {"0x20B010DE": [], "0x20B110DE": [], "0x20B710DE": [], "0x20B210DE": ["GPU-x", 0]},
            "mig-configs.all-balanced[2].devices: [0, 1]: are indices, and device_filters names GPU-x for 0x20B210DE: whether these are the same "
            "cards cannot be told here; name the cards by index there, too",
        ),
        (
            {"0x20B010DE": [0], "0x20B110DE": [], "0x20B710DE": [1], "0x20B210DE": ["1"]},
            "mig-configs.all-balanced[2]: 1: already stands in mig-configs.all-balanced[1]; a card has one layout",
        ),
    ],
)
def test_what_device_filters_do_not_say_is_told(filters: t.Any, message: str) -> None:
    with pytest.raises(AnsibleFilterError) as failure:
        from_mig_parted(FILE, "all-balanced", filters)
    assert str(failure.value).startswith(f"from_mig_parted: {message}")


@pytest.mark.parametrize(
    ("data", "config", "message"),
    [
        (
            FILE,
            "all-2g",
            "config: 'all-2g': is no configuration of this file; it has: all-1g.24gb.me.all, all-1g.5gb, all-4g.20gb, all-balanced, ",
        ),
        (FILE, None, "config: '': is no configuration of this file"),
        (FILE, "", "config: '': is no configuration of this file"),
        (FILE, ["custom-config"], "config: ['custom-config']: is no configuration of this file"),
        ("version: v1", "a", "file: 'version: v1': is no mig-parted file; give its content as a mapping (from_yaml)"),
        ("version: v1\n" * 99, "a", "file: 'version: v1\nversion: v1\nversion: v1\nversion: v1\nversion: ...': is no"),
        (None, "a", "file: 'null': is no mig-parted file"),
        ([], "a", "file: '[]': is no mig-parted file"),
        ([FILE], "a", "file: 'a list': is no mig-parted file"),
        ({**FILE, "version": "v2"}, "a", "version: 'v2': is not known; this takes files of version v1"),
        ({"mig-configs": FILE["mig-configs"]}, "a", "version: None: is not known; this takes files of version v1"),
        ({**FILE, "hooks": {}, 1: 2}, "a", "file: '1, hooks': is no field of version v1; it has: mig-configs, version"),
        (
            {"version": "v1"},
            "a",
            "mig-configs: 'null': has no configurations; give a mapping of names to lists of entries",
        ),
        ({"version": "v1", "mig-configs": {}}, None, "mig-configs: '{}': has no configurations"),
        ({"version": "v1", "mig-configs": ["a"]}, "a", "mig-configs: 'a list': has no configurations"),
        (
            files(**{"mig-configs": {"a": None}}),
            "a",
            "mig-configs.a: 'null': has no entries; give a list, each with devices",
        ),
        (files(**{"mig-configs": {"a": None}}), None, "mig-configs.a: 'null': has no entries"),
        (files(**{"mig-configs": {"a": "all"}}), "a", "mig-configs.a: 'all': has no entries"),
        (files(**{"mig-configs": {"a": {"devices": "all"}}}), "a", "mig-configs.a: 'a mapping': has no entries"),
        (files(**{"mig-configs": {"a": 1, 2: []}}), 2, "mig-configs.2: '[]': has no entries"),
        (files(), "a", "mig-configs.a: '[]': has no entries"),
        (files("all"), "a", "mig-configs.a[0]: 'all': is no entry"),
        (files(None), "a", "mig-configs.a[0]: None: is no entry"),
        (
            files({"devices": "all", "mig-enabled": False, "mode": "x", 1: 2}),
            "a",
            "mig-configs.a[0]: '1, mode': is no field of version v1; it has: device-filter, devices, mig-devices, mig-enabled",
        ),
        (
            file(mig_enabled=False),
            "a",
            "mig-configs.a[0].devices: None: is neither 'all' nor a list of indices, [0, 1]",
        ),
        (file(devices="0", mig_enabled=False), "a", "mig-configs.a[0].devices: '0': is neither"),
        (file(devices=["0"], mig_enabled=False), "a", "mig-configs.a[0].devices: ['0']: is neither"),
        (file(devices=[True], mig_enabled=False), "a", "mig-configs.a[0].devices: [True]: is neither"),
        (file(devices=[-1], mig_enabled=False), "a", "mig-configs.a[0].devices: [-1]: is neither"),
        (file(devices=[], mig_enabled=False), "a", "mig-configs.a[0].devices: []: is neither"),
        (
            file(device_filter=0x20B010DE, devices="all", mig_enabled=False),
            "a",
            "mig-configs.a[0].device-filter: 548409566: is no device-filter; give one like '0x20B010DE', in quotes, or a list of these",
        ),
        (
            file(device_filter=["0x20B010DE", None], devices="all", mig_enabled=False),
            "a",
            "mig-configs.a[0].device-filter: None: is",
        ),
        (
            file(device_filter={"a": 1}, devices="all", mig_enabled=False),
            "a",
            "mig-configs.a[0].device-filter: {'a': 1}: is",
        ),
        (file(devices=[0]), "a", "mig-configs.a[0].mig-enabled: None: is neither true nor false"),
        (file(devices=[0], mig_enabled="true"), "a", "mig-configs.a[0].mig-enabled: 'true': is neither true nor false"),
        (file(devices=[0], mig_enabled=True), "a", "mig-configs.a[0].mig-devices: None: is missing"),
        (
            file(devices=[0], mig_enabled=True, mig_devices=["1g.5gb"]),
            "a",
            "mig-configs.a[0].mig-devices: ['1g.5gb']: is no mapping",
        ),
        (
            file(devices=[0], mig_enabled=False, mig_devices={"1g.5gb": 7}),
            "a",
            "mig-configs.a[0].mig-devices: {'1g.5gb': 7}: cannot be there with mig-enabled: false; drop it, or set mig-enabled: true",
        ),
        *[
            (
                file(devices=[0], mig_enabled=True, mig_devices={name: 1}),
                "a",
                f"mig-configs.a[0].mig-devices: '{name}': is no MIG device; they are called like 1g.5gb, 1g.5gb+me or 1c.3g.20gb",
            )
            for name in ("5gb", "4c.3g.20gb", "1g.5", "1g.5gb+", "1c.3g.20gb:2", "19")
        ],
        *[
            (
                file(devices=[0], mig_enabled=True, mig_devices={"1g.5gb": number}),
                "a",
                f"mig-configs.a[0].mig-devices.1g.5gb: {number}: is no number of devices from 0 to 64",
            )
            for number in (-1, 65, None, True, 1.5)
        ],
        (
            files({"devices": [0, 1], "mig-enabled": False}, {"devices": [1], "mig-enabled": False}),
            "a",
            "mig-configs.a[1]: 1: already stands in mig-configs.a[0]; a card has one layout",
        ),
        (
            files({"devices": "all", "mig-enabled": False}, {"devices": [1], "mig-enabled": False}),
            "a",
            "mig-configs.a[1]: 1: already stands in mig-configs.a[0]",
        ),
        (
            files({"devices": [1], "mig-enabled": False}, {"devices": "all", "mig-enabled": False}),
            "a",
            "mig-configs.a[1]: 'all': already stands in mig-configs.a[0]",
        ),
    ],
)
def test_what_cannot_be_read_is_told(data: t.Any, config: t.Any, message: str) -> None:
    with pytest.raises(AnsibleFilterError) as failure:
        from_mig_parted(data, config)
    assert str(failure.value).startswith(f"from_mig_parted: {message}")
