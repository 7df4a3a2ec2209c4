# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Clients of a daemon: never ended unless that was asked for, and never given other limits than they started with."""

from __future__ import annotations

from typing import Any

import pytest

from harness.machine import PATIENCE, Machine
from harness.modules import Result

# What needs the daemon to stop.
CHANGES: dict[str, dict[str, Any]] = {
    "absent": {"state": "absent"},
    "stopped": {"state": "stopped"},
    "other cards": {"gpus": [0, 1]},
    "another log directory": {"log_directory": "logs"},
}


@pytest.fixture(params=list(CHANGES))
def change(request: pytest.FixtureRequest, machine: Machine) -> dict[str, Any]:
    options = dict(CHANGES[request.param])
    if "log_directory" in options:
        options["log_directory"] = str(machine.folder / "log" / "elsewhere")
    return machine.daemon(**options)


def test_a_client_is_in_the_way_unless_forced(machine: Machine, change: dict[str, Any]) -> None:
    (before,) = machine.mps(machine.daemon())["daemons"]
    client = machine.client()
    with machine.untouched():
        refused = machine.mps(change)
        assert machine.mps(change, check=True).message == refused.message
    assert refused["error"] == "InUse"
    assert refused["clients"] == [client.pid]
    for part in (f"clients: pids {client.pid}", "end these jobs first, or set force: true"):
        assert part in refused.message
    assert client.poll() is None

    forced = machine.mps(change, force=True)
    assert any(f"end its clients {client.pid}" in step for step in forced["steps"])
    assert "terminated" in client.communicate(timeout=PATIENCE)[0]
    if change.get("state"):
        assert machine.daemons() == []
    else:
        assert machine.daemons() == [forced["daemons"][0]["pid"]] != [before["pid"]]
    assert not machine.mps(change).changed


def test_a_server_without_clients_is_in_nobodys_way(machine: Machine) -> None:
    machine.mps(machine.daemon())
    client = machine.client()
    client.kill()
    client.wait()
    assert len(machine.programs("nvidia-cuda-mps-server")) == 1
    assert machine.mps(machine.daemon(gpus=[1])).changed
    assert machine.programs("nvidia-cuda-mps-server") == []


def test_limits_change_in_place_for_the_next_server(machine: Machine) -> None:
    (before,) = machine.mps(machine.daemon(active_thread_percentage=50, memory_limits=[{"size": "8G"}]))["daemons"]
    client = machine.client()
    (after,) = machine.mps(machine.daemon(active_thread_percentage=20, memory_limits=[{"size": "512M"}]))["daemons"]
    assert after["pid"] == before["pid"]
    assert client.poll() is None
    assert after["default"] == {"active_thread_percentage": 20.0, "memory": {"0": "512M"}}
    (server,) = after["in_force"]
    assert (server["clients"], server["limits"]) == (
        [client.pid],
        {"active_thread_percentage": 50.0, "memory": {"0": "8G"}},
    )


def test_clients_share_evenly(machine: Machine) -> None:
    result: Result = machine.mps(machine.daemon(gpus="all", clients=3))
    assert result["daemons"][0]["default"] == {"active_thread_percentage": 33.3, "memory": {"0": "13G", "1": "13G"}}


def test_a_stop_that_a_server_drags_out_is_bounded(machine: Machine) -> None:
    machine.mps(machine.daemon())
    machine.mock_driver("fault", "nvidia-cuda-mps-server", "HANG")
    machine.control(f"start_server -uid {machine.uid}")
    assert machine.control("get_server_list").strip().isdigit()
    assert machine.mps(machine.daemon(state="absent"), stop_timeout=1).changed
    assert machine.daemons() == []
