# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What nvidia_mig writes down for the next boot."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.machine import UUIDS
from harness.mig import MigMachine


@pytest.fixture
def path(mig_machine: MigMachine) -> str:
    return str(mig_machine.folder / "run" / "layouts.json")


def saved(path: str) -> list[dict[str, Any]]:
    with open(path) as file:
        document: dict[str, list[dict[str, Any]]] = json.load(file)
    return document["layouts"]


def test_written_changed_and_removed(mig_machine: MigMachine, path: str) -> None:
    with mig_machine.untouched():
        foretold = mig_machine.cut("1g.5gb", gpu="all", layout_file=path, check=True)
    first = mig_machine.cut("1g.5gb", gpu="all", layout_file=path)
    assert foretold["steps"] == first["steps"] and first["steps"][-1] == f"write {path}"
    assert sorted(entry["gpus"] for entry in saved(path)) == sorted([[uuid] for uuid in UUIDS])
    assert saved(path) == first["saved_layouts"] == foretold["saved_layouts"]
    with mig_machine.untouched():
        assert not mig_machine.cut("1g.5gb", gpu="all", layout_file=path).changed
        assert not mig_machine.cut("1g.5gb", gpu=1, layout_file=path).changed, "the other card's entry stays"

    other = next(entry for entry in saved(path) if entry["gpus"] == [UUIDS[1]])
    changed = mig_machine.cut("3g.20gb", gpu=0, purge=True, layout_file=path)
    assert other in saved(path)
    assert changed["layouts"][0] in saved(path)
    whole: dict[str, Any] = {"enabled": False}
    assert mig_machine.mig({"gpus": [0], **whole}, purge=True, layout_file=path)["saved_layouts"] == [other]
    last = mig_machine.mig({"gpus": [0, 1], **whole}, purge=True, layout_file=path)
    assert (last["steps"][-1], last["saved_layouts"]) == (f"remove {path}", [])
    with mig_machine.untouched():
        assert not mig_machine.mig({"gpus": [0, 1], **whole}, layout_file=path).changed


def test_written_where_the_cards_match(mig_machine: MigMachine, path: str) -> None:
    mig_machine.cut("1g.5gb")
    result = mig_machine.cut("1g.5gb", layout_file=path)
    assert result.changed
    assert result["steps"] == [f"write {path}"]
    assert saved(path) == result["layouts"]


def test_a_lost_card_keeps_its_entry(mig_machine: MigMachine, path: str) -> None:
    mig_machine.cut("1g.5gb", gpu="all", layout_file=path)
    mig_machine.mock_driver("lose", "0")
    with mig_machine.untouched():
        assert not mig_machine.cut("1g.5gb", gpu="all", layout_file=path).changed


def test_nothing_is_written_when_the_cards_fail(mig_machine: MigMachine, path: str) -> None:
    mig_machine.cut("1g.5gb", layout_file=path)
    before = saved(path)
    mig_machine.mock_driver("fault", "nvmlDeviceCreateGpuInstanceWithPlacement", "UNKNOWN")
    assert mig_machine.cut("1g.5gb", "2g.10gb", layout_file=path).failed
    assert saved(path) == before


def test_a_boot_changes_nothing_that_is_written_down(mig_machine: MigMachine, path: str) -> None:
    """Compute instances that were made one after the other get other ids when all are made at once."""
    for shares in ("1c.4g.20gb:3", "1c.4g.20gb:3,2c.4g.20gb:0"):
        mig_machine.cut({"profile": "4g.20gb", "compute_instances": shares}, layout_file=path)
    before = mig_machine.instances()[0]
    mig_machine.mock_driver("reboot")
    assert mig_machine.mig(*saved(path)).changed
    after = mig_machine.instances()[0]
    assert after.parts != before.parts
    assert {(part.start, part.uuid) for part in after.parts} == {(part.start, part.uuid) for part in before.parts}
    wish = {"profile": "4g.20gb", "compute_instances": shares}
    assert not mig_machine.cut(wish, purge=True, layout_file=path).changed


@pytest.mark.parametrize("lost", [False, True])
def test_a_card_that_is_no_more(mig_machine: MigMachine, path: str, lost: bool) -> None:
    mig_machine.cut("1g.5gb", layout_file=path)
    gone = "GPU-00000000-0000-0000-0000-000000000000"
    document = {"layouts": [{"gpus": [gone], "enabled": True, "instances": []}, *saved(path)]}
    with open(path, "w") as file:
        json.dump(document, file)
    if lost:
        mig_machine.mock_driver("lose", "1")  # it may be this one
    result = mig_machine.cut("1g.5gb", layout_file=path)
    assert result.changed != lost
    assert ([gone] in [entry["gpus"] for entry in saved(path)]) == lost
    assert (f"{path} has no entry of {gone} any more: there is no such GPU" in result.warnings) != lost


def test_a_path_that_depends_on_the_folder_of_a_task(mig_machine: MigMachine) -> None:
    with mig_machine.untouched():
        refused = mig_machine.cut("1g.5gb", layout_file="layouts.json")
    assert refused.message == "layout_file: 'layouts.json': is no absolute path"


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"layouts": [{"gpus": []}]}', '{"layouts": [{"gpus": "all", "enabled": true}]}']
)
def test_a_file_that_is_none(mig_machine: MigMachine, path: str, content: str) -> None:
    with open(path, "w") as file:
        file.write(content)
    with mig_machine.untouched():
        refused = mig_machine.cut("1g.5gb", layout_file=path)
    assert refused["error"] == "StateUnreadable"
    assert refused.message.startswith(path)
    assert refused.message.endswith("move it away, and run the role mig again for all cards that it had")


def test_a_file_that_cannot_be_read(mig_machine: MigMachine) -> None:
    with mig_machine.untouched():
        refused = mig_machine.cut("1g.5gb", layout_file=str(mig_machine.folder / "machine" / "layouts.json"))
    assert refused["error"] == "StateUnreadable"


def test_a_file_that_cannot_be_written(mig_machine: MigMachine) -> None:
    with mig_machine.untouched():
        failed = mig_machine.cut("1g.5gb", layout_file="/proc/gpuops/layouts.json")
    assert failed["error"] == "StateUnreadable"
    assert failed.message.startswith("Cannot write into /proc/gpuops: ")
