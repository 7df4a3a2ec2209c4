# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Who may do what with an MPS control daemon: NVIDIA's own and the stand-in, side by side."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from _programs import PROGRAMS, STRANGER, Answer, Mps, alive, eventually, open_mps

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="needs root, to be several users")
OTHER = STRANGER + 1
NO_QUIT = Answer(["Not enough privilege to execute quit command"], "", 0)


@pytest.fixture(params=PROGRAMS, ids=str)
def mps(request: pytest.FixtureRequest) -> Iterator[Mps]:
    opened = open_mps(request.param, MOCK_MPS_SERVER_FAULT="HANG")
    opened.share()
    yield opened
    opened.close()


def own(mps: Mps, user: int) -> None:
    """Let a user make the directories."""
    os.chown(mps.folder, user, user)


def no_server_for_others(mps: Mps, user: int) -> str:
    more = ". Only the root user may start server for another user." if mps.program.version >= 550 else ""
    return f"Insufficient privileges for UID {user}{more}"


def test_what_a_stranger_may_read_of_roots_daemon(mps: Mps) -> None:
    mps.start()
    assert mps.ask("get_server_list", user=STRANGER) == Answer([], "", 0)
    assert mps.ask("get_default_active_thread_percentage", user=STRANGER) == Answer(["100.0"], "", 0)
    assert mps.ask("bogus", user=STRANGER) == Answer(['Unknown command "bogus"'], "", 0)


def test_what_a_stranger_may_change_of_roots_daemon(mps: Mps) -> None:
    """With 535 everything; 550 knows better."""
    mps.start()
    refused = [
        f"Insufficient privileges for UID {STRANGER}. Control deamon settings can only be modified by the user started "
        "it or by the root user."
    ]
    modern = mps.program.version >= 550
    for line, printed in (
        ("set_default_active_thread_percentage 40", ["40.0"]),
        ("set_default_device_pinned_mem_limit 0 1G", []),
        ("set_default_client_priority 1", []),
    ):
        assert mps.ask(line, user=STRANGER) == Answer(refused if modern else printed, "", 0)
    read = [
        "get_default_active_thread_percentage",
        "get_default_device_pinned_mem_limit 0",
        "get_default_client_priority",
    ]
    assert mps.ask(*read).printed == (["100.0", "0"] if modern else ["40.0", "1G", "1"])


def test_a_stranger_may_not_end_roots_daemon(mps: Mps) -> None:
    pid = mps.start()
    assert mps.ask("quit", user=STRANGER) == NO_QUIT
    assert mps.ask("quit -t 1", user=STRANGER) == NO_QUIT
    assert alive(pid)


def test_servers_for_oneself_and_for_others(mps: Mps) -> None:
    mps.start()
    assert mps.ask("start_server -uid 0", user=STRANGER).printed == [no_server_for_others(mps, STRANGER)]
    assert mps.ask("get_server_list").printed == []
    assert mps.ask(f"start_server -uid {STRANGER}", user=STRANGER).printed == []
    (server,) = mps.ask("get_server_list").printed
    eventually(lambda: os.stat(f"/proc/{server}").st_uid == STRANGER, "the server is not the user's")
    assert f"Starting new server {server} for user {STRANGER}" in mps.log()


def test_daemon_of_an_ordinary_user(mps: Mps) -> None:
    own(mps, STRANGER)
    pid = mps.start(user=STRANGER)
    for user in (STRANGER, OTHER, None):
        assert mps.ask("get_default_active_thread_percentage", user=user) == Answer(["100.0"], "", 0)
    assert mps.ask(f"start_server -uid {OTHER}", user=STRANGER).printed == [no_server_for_others(mps, STRANGER)]
    assert mps.ask("quit", user=OTHER) == NO_QUIT
    assert mps.ask("quit") == Answer([], "", 0)
    eventually(lambda: not alive(pid), "root could not end it")


def test_ordinary_user_without_a_writable_log_directory(mps: Mps) -> None:
    mps.pipe.mkdir()
    os.chown(mps.pipe, STRANGER, STRANGER)
    warning = f"Warning: Failed writing log files to directory [{mps.logs}]. No logs will be available."
    assert mps.run("-d", user=STRANGER) == Answer([warning], "", 0)
    assert mps.ask("get_default_active_thread_percentage", user=STRANGER) == Answer(["100.0"], "", 0)


@pytest.mark.parametrize("exists", [False, True])
def test_ordinary_user_without_a_writable_pipe_directory(mps: Mps, exists: bool) -> None:
    mps.logs.mkdir()
    os.chown(mps.logs, STRANGER, STRANGER)
    if exists:
        mps.pipe.mkdir()
    assert mps.run("-d", user=STRANGER) == Answer([f"Cannot access CUDA_MPS_PIPE_DIRECTORY={mps.pipe}"], "", 1)


def test_directory_that_keeps_others_out(mps: Mps) -> None:
    mps.pipe.mkdir(0o700)
    mps.start()
    assert mps.ask("get_server_list", user=STRANGER) == Answer([], "Cannot find MPS control daemon process", 1)
