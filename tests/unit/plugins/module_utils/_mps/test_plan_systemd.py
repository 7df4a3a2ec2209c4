# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is done where systemd runs the daemons, and that every way leads back: plans carried out one after another."""

from __future__ import annotations

import itertools
import typing as t

import pytest
from ansible_collections.gpuops.sharing.plugins.module_utils._errors import InUse
from ansible_collections.gpuops.sharing.plugins.module_utils._mps.limits import Limits
from ansible_collections.gpuops.sharing.plugins.module_utils._mps.live import Daemon
from ansible_collections.gpuops.sharing.plugins.module_utils._mps.record import Memory
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils._mps.host import (
    STOPPED_UNIT,
    Host,
    after,
    make,
    running,
    steps,
)
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils.fakes import CARDS

RENDER = {"name": "render", "gpus": ["0"]}
TRAIN = {"name": "train", "gpus": ["1"]}
STOPPED = {**RENDER, "state": "stopped"}
ABSENT = {"name": "render", "state": "absent"}

FRESH = Host()
RUNNING = after(FRESH, RENDER)
RESTARTED = running(RUNNING, "render")._replace(pid=300, started=1)
FOREIGN = Daemon(666, 1, 1000, "/run/nvidia-mps/render", None, None, Limits(), ())
MANAGED = after(FRESH.but("render", unit=STOPPED_UNIT), RENDER, service="systemd")
UNIT = MANAGED.seen["render"].unit or STOPPED_UNIT


@pytest.mark.parametrize(
    ("host", "wish", "expected"),
    [
        pytest.param(
            FRESH.but("render", unit=STOPPED_UNIT),
            RENDER,
            ["remember", "set_mode 0 exclusive_process", "write render", "start render", "enable render"],
            id="nothing there",
        ),
        pytest.param(MANAGED, RENDER, [], id="all as wished"),
        pytest.param(
            MANAGED.but("render", unit=UNIT._replace(enabled=False)),
            RENDER,
            ["enable render"],
            id="unit disabled by somebody",
        ),
        pytest.param(
            MANAGED.but("render", unit=UNIT._replace(needs_reload=True)), RENDER, ["reload"], id="unit file changed"
        ),
        pytest.param(
            MANAGED.but("render", daemon=RESTARTED, unit=UNIT._replace(main_pid=300)),
            RENDER,
            [],
            id="restarted by systemd",
        ),
        pytest.param(
            MANAGED.but("render", daemon=None, unit=UNIT._replace(active="failed", main_pid=0)),
            RENDER,
            ["remember", "start render"],
            id="unit failed",
        ),
        pytest.param(
            MANAGED, STOPPED, ["stop render", "disable render", "set_mode 0 default", "remember"], id="stopped"
        ),
        pytest.param(
            MANAGED,
            ABSENT,
            ["stop render", "disable render", "set_mode 0 default", "remember", "remove render"],
            id="absent",
        ),
        pytest.param(
            MANAGED.but("render", daemon=None, unit=UNIT._replace(active="activating", main_pid=0)),
            ABSENT,
            ["stop render", "disable render", "set_mode 0 default", "remember", "remove render"],
            id="absent while systemd restarts it",
        ),
        pytest.param(
            MANAGED,
            {**RENDER, "gpus": ["0", "1"]},
            ["stop render", "remember", "set_mode 1 exclusive_process", "write render", "start render"],
            id="another card more",
        ),
        pytest.param(
            RUNNING.but("render", unit=STOPPED_UNIT),
            RENDER,
            ["stop render", "remember", "write render", "start render", "enable render"],
            id="until now without systemd",
        ),
    ],
)
def test_steps_under_systemd(host: Host, wish: dict[str, t.Any], expected: list[str]) -> None:
    assert steps(make(host, wish, service="systemd")) == expected


def test_a_daemon_leaves_systemd() -> None:
    assert steps(make(MANAGED, RENDER, service="none")) == [
        "stop render",
        "disable render",
        "remember",
        "write render",
        "start render",
    ]


def test_under_systemd_only_the_units_main_process_is_ours() -> None:
    with pytest.raises(InUse, match=r"did not start already answers on .* \(pid 666, user id 1000\)"):
        make(MANAGED.but("render", daemon=FOREIGN), RENDER, service="systemd")


WISHES: tuple[list[dict[str, t.Any]], ...] = (
    [RENDER],
    [{**RENDER, "clients": "4"}],
    [{**RENDER, "gpus": ["all"], "pipe_directory": "/srv/mps"}],
    [RENDER, TRAIN],
    [{**RENDER, "gpus": ["1"]}, {**TRAIN, "gpus": ["0"]}],
    [{**RENDER, "compute_mode": "unchanged"}, TRAIN],
    [STOPPED, TRAIN],
    [{**TRAIN, "gpus": ["0"], "log_directory": "/srv/log"}],
    [],
)


@pytest.mark.parametrize("service", ["none", "systemd"])
def test_from_any_state_to_any_other_and_back(service: str) -> None:
    for first, second in itertools.product(WISHES, WISHES):
        host = after(FRESH, *first, service=service, purge=True)
        host = after(host, *second, service=service, purge=True)
        assert steps(make(host, *second, service=service, purge=True)) == [], (first, second)
        host = after(host, service=service, purge=True)
        assert (host.gpus, host.memory) == (CARDS, Memory({}, {})), (first, second)
        assert not any(seen.daemon or seen.files for seen in host.seen.values()), (first, second)


def test_from_one_service_to_the_other_and_back() -> None:
    host = after(after(FRESH, RENDER, service="systemd"), RENDER, service="none")
    assert steps(make(host, RENDER, service="none")) == []
    assert after(host, ABSENT).memory == Memory({}, {})
