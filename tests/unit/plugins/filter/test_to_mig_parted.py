# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The filter to_mig_parted: layouts of tasks and of results, and that nothing is lost in silence."""

from __future__ import annotations

import typing as t

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.gpuops.sharing.plugins.filter import from_mig_parted as incoming
from ansible_collections.gpuops.sharing.plugins.filter import to_mig_parted as outgoing
from ansible_collections.gpuops.sharing.plugins.module_utils._instance import GpuInstance
from ansible_collections.gpuops.sharing.plugins.module_utils._mig import compute, export, layout, planner
from ansible_collections.gpuops.sharing.plugins.module_utils._mig.planner import Plan
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils._mig import machines
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils._mig.planning import A100, a100

from_mig_parted = incoming.FilterModule().filters()["from_mig_parted"]
to_mig_parted = outgoing.FilterModule().filters()["to_mig_parted"]

# As results of modules have them, with more keys.
GPUS = [
    {"index": 0, "uuid": "GPU-a", "pci_bus_id": "0000:07:00.0", "name": "A100", "before": {}, "after": {}},
    {"index": -1, "uuid": "GPU-lost", "pci_bus_id": None, "error": "GPU is lost"},
    {"index": "1", "uuid": "GPU-b", "pci_bus_id": "0000:0f:00.0", "name": None},
]


def one(**entry: t.Any) -> list[dict[str, t.Any]]:
    return [{"gpus": [0], **entry}]


def test_spellings_of_surveys() -> None:
    instances = [{"profile": "MIG 1G.5gb", "count": "2"}, {"profile": "1g.5gb"}]
    assert to_mig_parted([{"gpus": "0, 1", "enabled": "yes", "instances": instances}], "ours") == {
        "version": "v1",
        "mig-configs": {"ours": [{"devices": [0, 1], "mig-enabled": True, "mig-devices": {"1g.5gb": 3}}]},
    }


@pytest.mark.parametrize(
    ("gpus", "devices"),
    [(["gpu-B", 0], [1, 0]), ("0F:00.0,GPU-a", [1, 0]), (["all"], "all"), ([5], [5])],
)
def test_gpus_tell_the_index_of_a_card(gpus: t.Any, devices: t.Any) -> None:
    content = to_mig_parted([{"gpus": gpus, "enabled": False}], "ours", gpus=GPUS)
    assert content["mig-configs"]["ours"] == [{"devices": devices, "mig-enabled": False}]


@pytest.mark.parametrize("drop", [True, "yes"])
def test_places_are_left_out_where_that_is_allowed(drop: t.Any) -> None:
    instances = [
        {"profile": "3g.20gb", "start": 4, "compute_instances": ["2c.3g.20gb:0", "1c.3g.20gb:2"]},
        {"profile": "1g.5gb", "start": 0},
    ]
    (entry,) = to_mig_parted(one(instances=instances), "ours", drop_starts=drop)["mig-configs"]["ours"]
    assert entry["mig-devices"] == {"2c.3g.20gb": 1, "1c.3g.20gb": 1, "1g.5gb": 1}


@pytest.mark.parametrize(
    ("wish", "device"),
    [
        ({"profile": "1g.5gb", "compute_instances": "1c.1g.5gb"}, "1g.5gb"),
        ({"profile": "3g.20gb", "compute_instances": ["3g.20gb"]}, "3g.20gb"),
        ({"profile": "3g.20gb"}, "3g.20gb"),
    ],
)
def test_a_compute_instance_that_fills_its_gpu_instance(wish: dict[str, t.Any], device: str) -> None:
    (entry,) = to_mig_parted(one(instances=[wish]), "ours")["mig-configs"]["ours"]
    assert entry["mig-devices"] == {device: 1}


@pytest.mark.parametrize(
    "there",
    [
        [],
        [a100("3g.20gb@4", 2, ["2c.3g.20gb", "1c.3g.20gb"]), a100("1g.5gb@0", 7), a100("1g.5gb@2", 9)],
        [a100("4g.20gb@0", 1), a100("2g.10gb@4", 5, ["1c.2g.10gb", "1c.2g.10gb"]), a100("1g.5gb+me@6", 13)],
        [a100("3g.20gb@0", 1, ["1c.3g.20gb"] * 3), a100("3g.20gb@4", 2)],
    ],
)
def test_what_a_task_returns_comes_back_the_same(there: list[GpuInstance]) -> None:
    """By UUID and with every start: the cards match the layouts that come back, so that nothing would be done."""
    gpu = machines.gpu()
    returned = [export.layout(gpu, True, Plan(keep=tuple(there))), {"gpus": ["GPU-other"], "enabled": False}]
    host = [{"index": 3, "uuid": gpu.uuid}, {"index": 1, "uuid": "GPU-other"}]
    back = from_mig_parted(to_mig_parted(returned, "found", gpus=host, drop_starts=True), "found")
    assert [entry["gpus"] for entry in back] == [[3], [1]]
    wish = layout.parse(back)[0]
    assert planner.make(machines.card(A100, *there), wish, purge=True).empty
    assert planner.make(machines.card(A100), wish, purge=True).create or not there


def test_a_whole_gpu_instance_is_no_divided_one() -> None:
    file = to_mig_parted(one(instances=[{"profile": "3g.20gb"}]), "ours")
    divided = a100("3g.20gb@0", 1, ["1c.3g.20gb"] * 3)
    plan = planner.make(machines.card(A100, divided), layout.parse(from_mig_parted(file))[0], purge=True)
    assert [change.create for change in plan.repair] == [(compute.Share("3g.20gb"),)]


CUT = {"profile": "3g.20gb", "count": 2, "compute_instances": ["1c.3g.20gb", "1c.3g.20gb"]}
START = "cannot be said in mig-parted's files, it chooses the places itself; drop the start, or give the filter drop_starts=true"


@pytest.mark.parametrize(
    ("layouts", "message"),
    [
        ({"gpus": [0]}, "layouts: {'gpus': [0]}: is no list of layouts"),
        (None, "layouts: None: is no list of layouts"),
        ([], "layouts: []: has no layout, and mig-parted wants at least one entry in a configuration"),
        (["x"], "layouts[0]: 'x': is no entry; give one like {gpus: [0], instances: ["),
        (one(instances=[], mode="on"), "layouts[0]: 'mode': is not known here; there are: gpus, enabled, instances"),
        (
            one(instances=[{"profile": "1g.5gb", "places": 1}]),
            "layouts[0].instances[0]: 'places': is not known here; there are: profile, ",
        ),
        (
            [{"gpus": ["GPU-a", 1], "enabled": False}],
            "layouts[0].gpus: 'GPU-a': cannot be said in mig-parted's files, which know indices and 'all'; give indices, or give the filter gpus of",
        ),
        ([{"gpus": [0, "00"], "enabled": False}], "layouts[0].gpus: 0: stands there twice; name each GPU once"),
        (
            [{"gpus": [0, 1], "enabled": False}, {"gpus": "1", "enabled": False}],
            "layouts[1].gpus: 1: already stands in layouts[0].gpus; a card has one layout",
        ),
        (
            [{"gpus": [0, 1], "enabled": False}, {"gpus": "all", "enabled": False}],
            "layouts[1].gpus: 'all': already stands in layouts[0].gpus",
        ),
        (
            one(),
            "layouts[0].instances: '': is left out (only the mode is asked for), and mig-parted's files always say the instances",
        ),
        (one(instances=[{"profile": "1g.5gb", "start": 3}]), f"layouts[0].instances[0].start: 3: {START}"),
        (
            one(instances=[{"profile": "3g.20gb", "compute_instances": ["1c.3g.20gb:2"]}]),
            f"layouts[0].instances[0].compute_instances: '1c.3g.20gb:2': {START}",
        ),
        (
            one(instances=[CUT]),
            "layouts[0].instances: '1c.3g.20gb': cannot be said in mig-parted's files: it would put these compute instances into GPU instances in another",
        ),
        (
            one(instances=[{"profile": "3g.20gb", "compute_instances": ["1c.2g.10gb"]}]),
            "layouts[0].instances[0].compute_instances: '1c.2g.10gb': 3g.20gb has no such compute instance",
        ),
        (one(instances=[{"profile": 19}]), "layouts[0].instances[0].profile: 19: is an id"),
        (one(instances=[{"profile": "small"}]), "layouts[0].instances[0].profile: 'small': is no MIG device"),
    ],
)
def test_what_cannot_be_said_is_told(layouts: t.Any, message: str) -> None:
    with pytest.raises(AnsibleFilterError) as failure:
        to_mig_parted(layouts, "ours")
    assert str(failure.value).startswith(f"to_mig_parted: {message}")


WHICH = "give gpus of the result of nvidia_mig or nvidia_gpu_info"


@pytest.mark.parametrize(
    ("layouts", "options", "message"),
    [
        (one(instances=[]), {"config": None}, "config: None: is no name of a configuration"),
        (one(instances=[]), {"config": " "}, "config: ' ': is no name of a configuration"),
        (one(instances=[]), {"drop_starts": "perhaps"}, "drop_starts: The value 'perhaps' is not a valid boolean"),
        (one(instances=[]), {"gpus": {"gpus": GPUS}}, f"gpus: 'a mapping': is no list of GPUs; {WHICH}"),
        (one(instances=[]), {"gpus": ["GPU-a"]}, f"gpus[0]: 'GPU-a': is no GPU with an index; {WHICH}"),
        (one(instances=[]), {"gpus": [{"uuid": "GPU-a"}]}, "gpus[0]: {'uuid': 'GPU-a'}: is no GPU with an index"),
        (
            [{"gpus": ["GPU-c"], "enabled": False}],
            {"gpus": GPUS},
            "layouts[0].gpus: 'GPU-c': is not in gpus, which has: GPU 0 (GPU-a, 0000:07:00.0), GPU 1 (GPU-b, ",
        ),
        (
            [{"gpus": ["GPU-c"], "enabled": False}],
            {"gpus": []},
            "layouts[0].gpus: 'GPU-c': is not in gpus, which has: none",
        ),
        (
            [{"gpus": ["GPU-b", "0f:00.0"], "enabled": False}],
            {"gpus": GPUS},
            "layouts[0].gpus: 1: stands there twice; name each GPU once",
        ),
        (
            one(instances=[{"profile": "3g.20gb", "compute_instances": ["1c.3g.20gb:x"]}]),
            {"drop_starts": True},
            "layouts[0].instances[0].compute_instances: '1c.3g.20gb:x': is no name, and no name with a start",
        ),
    ],
)
def test_options_that_cannot_be_used_are_told(layouts: t.Any, options: dict[str, t.Any], message: str) -> None:
    with pytest.raises(AnsibleFilterError) as failure:
        to_mig_parted(layouts, **{"config": "ours", **options})
    assert str(failure.value).startswith(f"to_mig_parted: {message}")
