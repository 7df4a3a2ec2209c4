# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is done to daemons: as little as the wish needs, and nothing to those of others."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.gpuops.sharing.plugins.module_utils._errors import DoesNotFit, InUse
from ansible_collections.gpuops.sharing.plugins.module_utils._gpu import Gpu
from ansible_collections.gpuops.sharing.plugins.module_utils._mps.limits import Limits
from ansible_collections.gpuops.sharing.plugins.module_utils._mps.live import Daemon, Stray
from ansible_collections.gpuops.sharing.plugins.module_utils._mps.record import Memory
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils._mps.host import (
    Host,
    after,
    make,
    running,
    steps,
)
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils.fakes import A100, SECOND_A100

RENDER = {"name": "render", "gpus": ["0"]}
TRAIN = {"name": "train", "gpus": ["1"]}
STOPPED = {**RENDER, "state": "stopped"}
ABSENT = {"name": "render", "state": "absent"}

FRESH = Host()
RUNNING = after(FRESH, RENDER)
BOTH = after(FRESH, RENDER, TRAIN)
PIPE = "/run/nvidia-mps/render"
FOREIGN = Daemon(666, 1, 1000, PIPE, None, None, Limits(), ())
DAEMON = running(RUNNING, "render")
OURS_HUNG = Stray(DAEMON.pid, DAEMON.started, 0, PIPE, ())
NEW_START = ["remember", "write render", "start render"]


@pytest.mark.parametrize(
    ("host", "wish", "expected"),
    [
        pytest.param(
            FRESH,
            RENDER,
            ["remember", "set_mode 0 exclusive_process", "write render", "start render"],
            id="nothing there",
        ),
        pytest.param(RUNNING, RENDER, [], id="all as wished"),
        pytest.param(RUNNING, {**RENDER, "gpus": ["07:00.0"]}, ["remember"], id="the same card in another spelling"),
        pytest.param(
            RUNNING,
            {**RENDER, "active_thread_percentage": "50"},
            ["write render", "limit render"],
            id="threads limited",
        ),
        pytest.param(
            RUNNING,
            {**RENDER, "memory_limits": [{"size": "8G"}]},
            ["write render", "limit render"],
            id="memory limited",
        ),
        pytest.param(
            after(FRESH, {**RENDER, "clients": "4"}),
            RENDER,
            ["remember", "write render", "limit render"],
            id="limits no longer wished",
        ),
        pytest.param(
            RUNNING.but("render", daemon=DAEMON._replace(limits=Limits(500))),
            RENDER,
            ["limit render"],
            id="limits changed by somebody",
        ),
        pytest.param(RUNNING.but("render", files={}), RENDER, ["write render"], id="files lost"),
        pytest.param(
            RUNNING,
            {**RENDER, "gpus": ["all"]},
            ["stop render", "remember", "set_mode 1 exclusive_process", "write render", "start render"],
            id="another card more",
        ),
        pytest.param(
            RUNNING,
            {**RENDER, "gpus": ["1"]},
            [
                "stop render",
                "set_mode 0 default",
                "remember",
                "set_mode 1 exclusive_process",
                "write render",
                "start render",
            ],
            id="another card instead",
        ),
        pytest.param(
            RUNNING, {**RENDER, "pipe_directory": "/srv/mps"}, ["stop render", *NEW_START], id="another pipe directory"
        ),
        pytest.param(
            RUNNING, {**RENDER, "log_directory": "/srv/log"}, ["stop render", *NEW_START], id="another log directory"
        ),
        pytest.param(RUNNING.but("render", daemon=None), RENDER, ["remember", "start render"], id="daemon killed"),
        pytest.param(
            RUNNING.but("render", daemon=None, strays=(OURS_HUNG,)),
            RENDER,
            ["end_stray render", "remember", "start render"],
            id="daemon hangs",
        ),
        pytest.param(RUNNING, STOPPED, ["stop render", "set_mode 0 default", "remember"], id="stopped"),
        pytest.param(after(RUNNING, STOPPED), STOPPED, [], id="stopped again"),
        pytest.param(FRESH, STOPPED, [], id="stopped, never set up"),
        pytest.param(
            after(RUNNING, STOPPED),
            RENDER,
            ["remember", "set_mode 0 exclusive_process", "start render"],
            id="started after a stop",
        ),
        pytest.param(RUNNING, ABSENT, ["stop render", "set_mode 0 default", "remember", "remove render"], id="absent"),
        pytest.param(after(RUNNING, ABSENT), ABSENT, [], id="absent again"),
        pytest.param(FRESH, ABSENT, [], id="absent, never set up"),
        pytest.param(after(RUNNING, STOPPED), ABSENT, ["remember", "remove render"], id="absent after a stop"),
        pytest.param(
            RUNNING.but("render", daemon=None, strays=(OURS_HUNG,)),
            ABSENT,
            ["end_stray render", "set_mode 0 default", "remember", "remove render"],
            id="absent, daemon hangs",
        ),
        pytest.param(
            BOTH,
            {**RENDER, "clients": "4"},
            ["remember", "write render", "limit render"],
            id="the other daemon is left alone",
        ),
    ],
)
def test_steps(host: Host, wish: dict[str, t.Any], expected: list[str]) -> None:
    assert steps(make(host, wish)) == expected


def test_daemons_that_are_not_listed_stay() -> None:
    assert steps(make(BOTH, RENDER)) == []
    assert make(BOTH, ABSENT).memory.daemons.keys() == {"train"}


def test_purge_ends_those_that_are_not_listed() -> None:
    assert steps(make(BOTH, RENDER, purge=True)) == ["stop train", "set_mode 1 default", "remember", "remove train"]
    assert after(BOTH, purge=True).memory == Memory({}, {})


def test_a_card_moves_from_one_daemon_to_another() -> None:
    made = make(RUNNING, ABSENT, {**TRAIN, "gpus": ["0"]})
    assert steps(made) == ["stop render", "remember", "write train", "start train", "remove render"]
    assert made.memory.modes[str(A100.uuid)] == ("default", "exclusive_process", ("train",))


@pytest.mark.parametrize("gpus", [["1"], ["all"]])
def test_a_card_of_a_daemon_that_is_not_listed_is_refused(gpus: list[str]) -> None:
    with pytest.raises(DoesNotFit) as failure:
        make(after(FRESH, TRAIN), {**RENDER, "gpus": gpus})
    assert failure.value.message == (
        f"Daemon 'render': {SECOND_A100.label} already belongs to daemon 'train' of an earlier run; "
        "a card has one daemon: choose another card, or list 'train' with state: absent"
    )


def test_a_card_of_a_daemon_that_was_stopped_or_is_purged_is_free() -> None:
    stopped = after(after(FRESH, TRAIN), {**TRAIN, "state": "stopped"})
    assert "start render" in steps(make(stopped, {**RENDER, "gpus": ["1"]}))
    assert "stop train" in steps(make(after(FRESH, TRAIN), {**RENDER, "gpus": ["1"]}, purge=True))


def test_steps_say_what_a_person_needs_to_know() -> None:
    assert [action.text for action in make(FRESH, {**RENDER, "clients": "4"}).actions] == [
        "remember the daemons and the compute modes from before",
        f"set the compute mode of {A100.label} from default to exclusive_process",
        "write the files of daemon 'render'",
        f"start daemon 'render' for {A100.label} (25.0 % of the threads, memory 10G on GPU 0)",
    ]
    stop = make(RUNNING.with_clients("render", 201, 202), {**RENDER, "gpus": ["1"]}, force=True).actions[0]
    assert stop.text == f"stop daemon 'render' (pid {DAEMON.pid}) (its GPUs change) and end its clients 201, 202"


@pytest.mark.parametrize(
    ("wish", "why"),
    [
        ({**RENDER, "gpus": ["0", "1"]}, " (its GPUs change)"),
        (
            {**RENDER, "pipe_directory": "/srv/mps", "log_directory": "/srv/log"},
            " (its pipe directory change, its log directory change)",
        ),
        (STOPPED, ""),
        (ABSENT, ""),
    ],
)
def test_clients_forbid_a_stop(wish: dict[str, t.Any], why: str) -> None:
    host = RUNNING.with_clients("render", 201, 202)
    with pytest.raises(InUse) as failure:
        make(host, wish)
    assert failure.value.message == (
        f"Daemon 'render' (pid {DAEMON.pid}) has to stop{why}, but it has clients: pids 201, 202; "
        "end these jobs first, or set force: true to end them"
    )
    assert failure.value.details == {"clients": [201, 202]}
    assert steps(make(host, wish, force=True))[0] == "stop render"


def test_clients_do_not_forbid_a_limit() -> None:
    assert steps(make(RUNNING.with_clients("render", 201), {**RENDER, "clients": "4"})) == [
        "remember",
        "write render",
        "limit render",
    ]


@pytest.mark.parametrize("wish", [RENDER, ABSENT])
def test_the_servers_of_a_daemon_that_hangs_forbid_its_end(wish: dict[str, t.Any]) -> None:
    host = RUNNING.but("render", daemon=None, strays=(OURS_HUNG._replace(children=(90, 91)),))
    with pytest.raises(
        InUse, match=f"no longer answers on {PIPE}, and has servers: pids 90, 91; .* or set force: true"
    ) as failure:
        make(host, wish)
    assert failure.value.details == {"clients": [90, 91]}
    assert steps(make(host, wish, force=True))[0] == "end_stray render"


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize(
    ("host", "wish"),
    [
        pytest.param(FRESH.but("render", daemon=FOREIGN), RENDER, id="nothing remembered"),
        pytest.param(FRESH.but("render", daemon=FOREIGN), ABSENT, id="nothing remembered, absent"),
        pytest.param(RUNNING.but("render", daemon=FOREIGN), RENDER, id="in the place of ours"),
        pytest.param(RUNNING.but("render", daemon=FOREIGN), ABSENT, id="in the place of ours, absent"),
        pytest.param(
            RUNNING.but("render", daemon=FOREIGN._replace(pid=DAEMON.pid)), RENDER, id="with the pid that ours had"
        ),
        pytest.param(
            RUNNING.but("render", at_new_directory=FOREIGN),
            {**RENDER, "pipe_directory": "/srv/mps"},
            id="at the new directory",
        ),
    ],
)
def test_somebody_elses_daemon_is_never_touched(host: Host, wish: dict[str, t.Any], force: bool) -> None:
    with pytest.raises(InUse) as failure:
        make(host, wish, force=force)
    pid = failure.value.details["pid"]
    assert failure.value.message == (
        f"Daemon 'render': an MPS control daemon that this collection did not start already answers on {PIPE} (pid {pid}, user id 1000); "
        f"end it (echo quit -t 30 | CUDA_MPS_PIPE_DIRECTORY={PIPE} nvidia-cuda-mps-control), or choose another pipe_directory"
    )


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize(
    "host",
    [
        pytest.param(FRESH.but("render", strays=(Stray(666, 1, 1000, PIPE, ()),)), id="nothing remembered"),
        pytest.param(
            RUNNING.but("render", daemon=None, strays=(Stray(666, 1, 1000, PIPE, ()),)), id="in the place of ours"
        ),
        pytest.param(RUNNING.but("render", strays=(Stray(666, 1, 1000, PIPE, ()),)), id="beside ours"),
    ],
)
def test_somebody_elses_daemon_that_hangs_is_never_touched(host: Host, force: bool) -> None:
    with pytest.raises(InUse) as failure:
        make(host, RENDER, force=force)
    assert failure.value.message == (
        f"Daemon 'render': a control daemon that this collection did not start (pid 666, user id 1000) was told to use {PIPE}, "
        "but does not answer there; end it, or choose another pipe_directory"
    )


def test_the_order_of_cards_is_the_daemons_order() -> None:
    daemon = running(after(FRESH, {**RENDER, "gpus": ["1", "0"]}), "render")
    assert daemon.devices == (A100.uuid, SECOND_A100.uuid)


@pytest.mark.parametrize("wish", [RENDER, ABSENT], ids=["started", "absent"])
def test_who_answers_in_place_of_a_stopped_daemon_is_not_ours(wish: dict[str, t.Any]) -> None:
    with pytest.raises(InUse, match="did not start already answers"):
        make(after(RUNNING, STOPPED).but("render", daemon=FOREIGN), wish, force=True)


def test_a_unit_whose_state_was_lost_can_still_be_taken_away() -> None:
    host = after(FRESH, RENDER, service="systemd")._replace(memory=Memory({}, {}))
    assert steps(make(host, ABSENT, service="systemd")) == ["stop render", "disable render", "remove render"]


def test_two_daemons_cannot_swap_directories_in_one_run() -> None:
    host = BOTH.but("render", at_new_directory=running(BOTH, "train"))
    with pytest.raises(InUse, match="still belongs to daemon 'train'"):
        make(host, {**RENDER, "pipe_directory": "/run/nvidia-mps/train"})


def test_the_share_of_a_lost_card_stays() -> None:
    wish = {"name": "render", "gpus": ["all"], "clients": "4"}
    host = after(FRESH, wish)
    lost = host._replace(gpus=(host.gpus[0], Gpu(index=1, error="GPU is lost")))
    assert steps(make(lost, wish)) == []
