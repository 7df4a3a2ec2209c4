# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is done to compute modes: the one from before is remembered once, and comes back only where nobody else changed it."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.gpuops.sharing.plugins.module_utils._errors import DoesNotFit, InUse
from ansible_collections.gpuops.sharing.plugins.module_utils._gpu import Gpu, Process
from ansible_collections.gpuops.sharing.plugins.module_utils._mps.live import Stray
from ansible_collections.gpuops.sharing.plugins.module_utils._mps.record import Memory, ModeEntry
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils._mps.host import (
    Host,
    after,
    make,
    running,
    steps,
)
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils.fakes import A100, CARDS, SECOND_A100

RENDER = {"name": "render", "gpus": ["0"]}
TRAIN = {"name": "train", "gpus": ["1"]}
ALL = {"name": "render", "gpus": ["all"]}
UNCHANGED = {**RENDER, "compute_mode": "unchanged"}
ABSENT = {"name": "render", "state": "absent"}
FIRST, SECOND = str(A100.uuid), str(SECOND_A100.uuid)

FRESH = Host()
RUNNING = after(FRESH, RENDER)
LOST = Gpu(index=1, error="GPU is lost")
SECOND_LOST = after(FRESH, ALL)._replace(gpus=(A100._replace(compute_mode="exclusive_process"), LOST))


def entry(before: str, *owners: str) -> ModeEntry:
    return ModeEntry(before, "exclusive_process", owners)


@pytest.mark.parametrize(
    ("host", "wish", "expected", "remembered"),
    [
        pytest.param(
            FRESH.with_mode(0, "prohibited"),
            RENDER,
            ["set_mode 0 exclusive_process"],
            {FIRST: entry("prohibited", "render")},
            id="remembered before the first change",
        ),
        pytest.param(
            RUNNING.with_mode(0, "prohibited"),
            RENDER,
            ["set_mode 0 exclusive_process"],
            {FIRST: entry("default", "render")},
            id="never overwritten while remembered",
        ),
        pytest.param(RUNNING, ABSENT, ["set_mode 0 default"], {}, id="given back with the last daemon"),
        pytest.param(
            FRESH.with_mode(0, "exclusive_process"),
            RENDER,
            [],
            {FIRST: entry("exclusive_process", "render")},
            id="exclusive already: nothing to set",
        ),
        pytest.param(
            after(FRESH.with_mode(0, "exclusive_process"), RENDER),
            ABSENT,
            [],
            {},
            id="exclusive already: nothing to give back",
        ),
        pytest.param(FRESH, UNCHANGED, [], {}, id="unchanged is left alone"),
        pytest.param(RUNNING, UNCHANGED, ["set_mode 0 default"], {}, id="given back when it is no longer wished"),
        pytest.param(
            after(FRESH, UNCHANGED),
            RENDER,
            ["set_mode 0 exclusive_process"],
            {FIRST: entry("default", "render")},
            id="wished only later",
        ),
        pytest.param(after(FRESH, UNCHANGED), ABSENT, [], {}, id="nothing remembered, nothing to give back"),
        pytest.param(
            after(FRESH, RENDER, TRAIN),
            ABSENT,
            ["set_mode 0 default"],
            {SECOND: entry("default", "train")},
            id="of its own cards only",
        ),
        pytest.param(
            after(FRESH, RENDER, TRAIN).with_mode(1, "default"),
            RENDER,
            [],
            {FIRST: entry("default", "render"), SECOND: entry("default", "train")},
            id="another daemon's card is not looked at",
        ),
    ],
)
def test_modes(host: Host, wish: dict[str, t.Any], expected: list[str], remembered: dict[str, ModeEntry]) -> None:
    made = make(host, wish)
    assert [step for step in steps(made) if step.startswith("set_mode")] == expected
    assert (made.memory.modes, made.warnings) == (remembered, ())


def test_a_mode_is_remembered_on_disk_before_it_is_set_and_forgotten_after_it_was_given_back() -> None:
    assert steps(make(FRESH, RENDER))[:2] == ["remember", "set_mode 0 exclusive_process"]
    ending = steps(make(RUNNING, ABSENT))
    assert ending.index("set_mode 0 default") < ending.index("remember")


@pytest.mark.parametrize("mode", ["default", "prohibited"])
def test_a_mode_that_somebody_else_changed_is_left_as_it_is(mode: str) -> None:
    host = RUNNING.with_mode(0, mode)
    made = make(host, ABSENT)
    assert steps(made) == ["stop render", "remember", "remove render"]
    assert made.memory == Memory({}, {})
    assert made.warnings == (
        f"{host.gpus[0].label} is in mode {mode}, not in exclusive_process as was set: somebody else changed it, so it is left as it is",
    )


def test_a_lost_card_is_no_reason_to_touch_the_daemon_of_all_cards() -> None:
    made = make(SECOND_LOST.with_clients("render", 201), ALL)
    assert steps(made) == []
    assert made.memory.modes[SECOND] == entry("default", "render")
    assert made.warnings == (
        f"GPU {SECOND} does not answer: its compute mode stays as it is, and 'default' stays remembered as the mode from before",
    )


def test_a_lost_card_gets_its_mode_back_when_it_answers_again() -> None:
    ended = after(SECOND_LOST, ABSENT)
    assert ended.memory.modes == {SECOND: entry("default")}
    back = ended._replace(gpus=CARDS).with_mode(1, "exclusive_process")
    for wish in (ABSENT, RENDER):
        made = make(back, wish)
        assert "set_mode 1 default" in steps(made)
        assert SECOND not in made.memory.modes


def test_a_card_that_was_taken_out_is_forgotten() -> None:
    made = make(RUNNING._replace(gpus=(SECOND_A100,)), ABSENT)
    assert steps(made) == ["stop render", "remember", "remove render"]
    assert made.memory.modes == {}
    assert made.warnings == (f"GPU {FIRST} is no longer in this host: the mode from before, 'default', is forgotten",)


def test_without_a_driver_the_mode_stays_remembered() -> None:
    made = make(RUNNING._replace(gpus=()), ABSENT)
    assert made.memory.modes == {FIRST: entry("default")}
    assert "does not answer" in made.warnings[0]


@pytest.mark.parametrize("host", [FRESH, RUNNING])
def test_a_mode_that_cannot_be_read_cannot_be_set_safely(host: Host) -> None:
    with pytest.raises(DoesNotFit) as failure:
        make(host.with_mode(0, None), RENDER)
    assert failure.value.message == (
        f"The compute mode of {A100.label} cannot be read, so it cannot be set safely; use compute_mode: unchanged"
    )


def test_a_mode_that_cannot_be_read_is_in_no_daemons_way_out() -> None:
    made = make(RUNNING.with_mode(0, None), ABSENT)
    assert steps(made) == ["stop render", "remember", "remove render"]
    assert made.memory.modes == {FIRST: entry("default")}
    assert made.warnings == (
        f"GPU {FIRST} does not answer: its compute mode stays as it is, and 'default' stays remembered as the mode from before",
    )


def test_a_card_in_use_by_others_is_not_made_exclusive() -> None:
    host = FRESH.with_card(0, processes=(Process(500, "python3", 300, "C"), Process(501, None, None, "C+G")))
    with pytest.raises(InUse) as failure:
        make(host, RENDER, force=True)
    assert failure.value.message == (
        f"{A100.label} is in use by processes that are no clients of its MPS daemon: 500 (python3), 501 (?); "
        "end them before the card is shared, or use compute_mode: unchanged"
    )
    assert [process["pid"] for process in failure.value.details["processes"]] == [500, 501]
    assert steps(make(host, UNCHANGED)) == ["remember", "write render", "start render"]


@pytest.mark.parametrize("kind", ["G", "M+C"])
def test_graphics_and_clients_of_a_server_are_in_nobodys_way(kind: str) -> None:
    host = FRESH.with_card(0, processes=(Process(500, "one", 30, kind),))
    assert "set_mode 0 exclusive_process" in steps(make(host, RENDER))


def test_the_servers_of_our_daemon_that_hangs_are_in_nobodys_way() -> None:
    daemon = running(RUNNING, "render")
    hung = Stray(daemon.pid, daemon.started, 0, daemon.pipe_directory, (90,))
    host = RUNNING.but("render", daemon=None, strays=(hung,)).with_card(0, processes=(Process(90, None, 30, "C"),))
    assert steps(make(host, RENDER, force=True)) == ["end_stray render", "remember", "start render"]


def test_the_daemons_own_server_and_clients_are_in_nobodys_way() -> None:
    host = after(FRESH, UNCHANGED).with_clients("render", 201)
    daemon = running(host, "render")
    ours = (Process(daemon.servers[0].pid, "nvidia-cuda-mps-server", 30, "C"), Process(201, "python3", 300, "M+C"))
    assert "set_mode 0 exclusive_process" in steps(make(host.with_card(0, processes=ours), RENDER))


USED = (Process(500, "python3", 300, "C"),)


def test_who_uses_the_card_of_a_daemon_that_runs_is_no_question() -> None:
    assert steps(make(RUNNING.with_card(0, processes=USED), RENDER)) == []


@pytest.mark.parametrize("host", [RUNNING.but("render", daemon=None), FRESH.with_mode(0, "exclusive_process")])
def test_no_daemon_starts_on_an_exclusive_card_that_others_use(host: Host) -> None:
    with pytest.raises(InUse, match=r"is in use by processes that are no clients of its MPS daemon: 500 \(python3\)"):
        make(host.with_card(0, processes=USED), RENDER)


def test_clients_of_a_second_user_get_a_warning() -> None:
    made = make(RUNNING.with_clients("render", 201, 202, users=(0, 1000)), RENDER)
    assert made.warnings == (
        "Daemon 'render' has clients of several users (ids 0, 1000): one user's clients wait until the other's have ended",
    )
    assert make(RUNNING.with_clients("render", 201), RENDER).warnings == ()
