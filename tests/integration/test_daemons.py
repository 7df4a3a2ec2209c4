# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Several daemons on a host, and daemons that come and go."""

from __future__ import annotations

import json
from typing import Any

from harness.machine import UUIDS, Machine


def two(machine: Machine, **options: Any) -> list[dict[str, Any]]:
    """A daemon for each card."""
    return [machine.daemon("train", gpus=[0], **options), machine.daemon("infer", gpus=[1], **options)]


def states(machine: Machine) -> dict[str, Any]:
    """What the file of daemons holds."""
    content: dict[str, Any] = json.loads((machine.var / "daemons.json").read_text())["daemons"]
    return content


def test_one_call_for_the_whole_host(machine: Machine) -> None:
    result = machine.mps(*two(machine, active_thread_percentage=50))
    assert [entry["gpus"] for entry in result["daemons"]] == [[UUIDS[0]], [UUIDS[1]]]
    assert sorted(machine.daemons()) == sorted(entry["pid"] for entry in result["daemons"])
    assert machine.compute_modes() == ["exclusive_process", "exclusive_process"]
    assert result["remaining"] == ["infer", "train"]
    with machine.untouched():
        assert not machine.mps(*two(machine, active_thread_percentage=50)).changed


def test_one_daemon_for_all_cards_with_a_limit_for_one(machine: Machine) -> None:
    entry = machine.daemon(
        gpus="all", memory_limits=[{"gpu": "all", "size": "8G"}, {"gpu": "0000:0f:00.0", "size": "512M"}]
    )
    (daemon,) = machine.mps(entry)["daemons"]
    assert daemon["gpus"] == list(UUIDS)
    assert daemon["default"] == {"active_thread_percentage": 100.0, "memory": {"0": "8G", "1": "512M"}}
    with machine.untouched():
        assert not machine.mps(entry).changed


def test_the_ordinal_of_a_limit_is_the_daemons_own(machine: Machine) -> None:
    (daemon,) = machine.mps(machine.daemon(gpus=[1], memory_limits=[{"gpu": 1, "size": "2G"}]))["daemons"]
    assert daemon["default"]["memory"] == {"0": "2G"}
    assert machine.control("get_default_device_pinned_mem_limit 0") == "2G\n"


def test_daemons_that_are_not_listed_are_left_alone(machine: Machine) -> None:
    train, infer = two(machine)
    first, second = (entry["pid"] for entry in machine.mps(train, infer)["daemons"])
    result = machine.mps({**train, "state": "absent"})
    assert machine.daemons() == [second]
    assert result["remaining"] == ["infer"]
    assert machine.compute_modes() == ["default", "exclusive_process"]


def test_purge_ends_what_is_recorded_and_not_listed(machine: Machine) -> None:
    train, infer = two(machine)
    first = machine.mps(train, infer)["daemons"][0]["pid"]
    foretold = machine.mps(train, purge=True, check=True)
    result = machine.mps(train, purge=True)
    assert foretold["steps"] == result["steps"]
    assert foretold["diff"] == result["diff"]
    assert machine.daemons() == [first]
    assert list(states(machine)) == ["train"]
    assert machine.compute_modes() == ["exclusive_process", "default"]
    with machine.untouched():
        assert not machine.mps(train, purge=True).changed


def test_purge_of_everything(machine: Machine) -> None:
    machine.mps(*two(machine))
    assert machine.mps(purge=True).changed
    assert machine.daemons() == []
    assert machine.compute_modes() == ["default", "default"]
    assert [path.name for path in machine.var.iterdir()] == ["lock"]


def test_purge_never_touches_daemons_of_others(machine: Machine) -> None:
    machine.launch("somebody")
    (other,) = machine.daemons()
    machine.mps(machine.daemon())
    machine.mps(purge=True)
    assert machine.daemons() == [other]


def test_purge_stops_for_clients(machine: Machine) -> None:
    train, infer = two(machine)
    machine.mps(train, infer)
    client = machine.client("infer", CUDA_VISIBLE_DEVICES=UUIDS[1])
    with machine.untouched():
        refused = machine.mps(train, purge=True)
    assert refused["clients"] == [client.pid]


def test_a_card_moves_from_one_daemon_to_another(machine: Machine) -> None:
    machine.mps(machine.daemon("old"))
    result = machine.mps(machine.daemon("old", state="absent"), machine.daemon("new"))
    assert machine.daemons() == [result["daemons"][1]["pid"]]
    assert machine.compute_modes()[0] == "exclusive_process"
    machine.mps(machine.daemon("new", state="absent"))
    assert machine.compute_modes()[0] == "default", "the mode from before the first daemon"


def test_a_card_that_another_recorded_daemon_has(machine: Machine) -> None:
    machine.mps(machine.daemon("old"))
    with machine.untouched():
        refused = machine.mps(machine.daemon("new"))
    for part in ("'new'", "GPU 0", "'old'", "a card has one daemon", "state: absent"):
        assert part in refused.message


def test_stopped_keeps_its_files(machine: Machine) -> None:
    machine.mps(machine.daemon(active_thread_percentage=50))
    stopped = machine.daemon(state="stopped")
    result = machine.mps(stopped)
    assert result["daemons"][0]["pid"] is None
    assert machine.daemons() == []
    assert machine.compute_modes()[0] == "default"
    assert {path.name for path in machine.var.iterdir()} >= {"render.client.sh", "render.commands", "render.env"}
    with machine.untouched():
        assert not machine.mps(stopped).changed
    assert machine.mps(machine.daemon(active_thread_percentage=50)).changed


def test_absent_where_nothing_is(machine: Machine) -> None:
    with machine.untouched():
        result = machine.mps({"name": "never", "state": "absent"})
    assert not result.changed


def test_absent_without_a_driver(machine: Machine) -> None:
    machine.mps(machine.daemon())
    machine.mock_driver("down")
    result = machine.mps({"name": "render", "state": "absent"})
    assert result.changed
    assert UUIDS[0] in result.warnings
    assert "does not answer" in result.warnings


def test_a_client_finds_its_daemon(machine: Machine) -> None:
    (daemon,) = machine.mps(machine.daemon())["daemons"]
    assert daemon["client_environment"] == {"CUDA_MPS_PIPE_DIRECTORY": machine.pipe()}
    assert (machine.var / "render.client.sh").read_text().endswith(f"export CUDA_MPS_PIPE_DIRECTORY={machine.pipe()}\n")


def test_another_pipe_directory(machine: Machine) -> None:
    machine.mps(machine.daemon())
    moved = machine.daemon(pipe_directory=machine.pipe("elsewhere"))
    (daemon,) = machine.mps(moved)["daemons"]
    assert machine.daemons() == [daemon["pid"]]
    assert machine.control("get_default_active_thread_percentage", "elsewhere") == "100.0\n"
    with machine.untouched():
        assert not machine.mps(moved).changed


def test_a_daemon_that_died_is_started_again(machine: Machine) -> None:
    entry = machine.daemon(active_thread_percentage=50)
    (before,) = machine.mps(entry)["daemons"]
    machine.kill(before["pid"])
    result = machine.mps(entry)
    assert result.changed
    assert result["daemons"][0]["default"]["active_thread_percentage"] == 50.0
    assert machine.daemons() == [result["daemons"][0]["pid"]]
