# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""An MPS control daemon with a server, and several front ends: NVIDIA's own and the stand-in, side by side.

The server never becomes ready, since the stand-in server cannot talk to NVIDIA's daemon.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from _programs import CANNOT_SEND, PROGRAMS, SERVER, Answer, Mps, alive, eventually, open_mps


@pytest.fixture(params=PROGRAMS, ids=str)
def mps(request: pytest.FixtureRequest) -> Iterator[Mps]:
    opened = open_mps(request.param, MOCK_MPS_SERVER_FAULT="HANG")
    yield opened
    opened.close()


@pytest.fixture
def server(mps: Mps) -> int:
    mps.start(CUDA_VISIBLE_DEVICES="GPU-1")
    return mps.start_server(os.getuid())


def gone(*pids: int) -> bool:
    return not any(alive(pid) for pid in pids)


def named(pid: int) -> bool:
    return Path(f"/proc/{pid}/comm").read_text() == "nvidia-cuda-mps\n"


def test_server_is_found_on_path_and_has_the_daemons_environment(mps: Mps, server: int) -> None:
    eventually(lambda: named(server), "the server does not show its name")
    process = Path(f"/proc/{server}")
    assert Path((process / "cmdline").read_text().split("\0")[0]).name == SERVER
    environment = (process / "environ").read_text().split("\0")
    assert "CUDA_VISIBLE_DEVICES=GPU-1" in environment
    assert f"CUDA_MPS_PIPE_DIRECTORY={mps.pipe}" in environment
    parent = (process / "stat").read_text().rpartition(")")[2].split()[1]
    assert int(parent) == mps.daemon()


def test_one_server_is_enough(mps: Mps, server: int) -> None:
    assert mps.ask(f"start_server -uid {os.getuid()}", f"start_server -uid {os.getuid()}") == Answer([], "", 0)
    assert mps.ask("get_server_list").printed == [str(server)]


def test_server_program_that_is_missing(mps: Mps) -> None:
    (mps.folder / "bin" / SERVER).unlink()
    (mps.folder / "bin" / SERVER).symlink_to("/bin/false")
    mps.start()
    assert mps.ask(f"start_server -uid {os.getuid()}") == Answer([], "", 0)
    eventually(lambda: any("exited with status 1" in message for message in mps.log()), "the server lives")
    assert mps.ask("get_server_list").printed == []
    mps.ask("quit")
    eventually(lambda: mps.log()[-1] == "Exit with status 1", "the daemon forgot that a server failed")


def test_server_that_was_killed(mps: Mps, server: int) -> None:
    os.kill(server, signal.SIGKILL)
    eventually(lambda: f"Server {server} exited with status 0" in mps.log(), "the daemon does not notice")
    assert mps.ask("get_server_list").printed == []
    assert mps.start_server(os.getuid()) != server


def test_shutdown_server(mps: Mps, server: int) -> None:
    assert mps.ask(f"shutdown_server {server}") == Answer([], "", 0)
    assert alive(server)
    assert mps.ask(f"shutdown_server {server} -f") == Answer([], "", 0)
    eventually(lambda: gone(server), "the server lives on")
    eventually(lambda: f"Server {server} exited with status 0" in mps.log(), "the daemon does not notice")


def test_quit_waits_for_a_server_and_then_all_else_waits(mps: Mps, server: int) -> None:
    daemon = mps.daemon()
    assert daemon is not None
    assert mps.hangs("quit")
    assert mps.hangs("get_default_active_thread_percentage")
    assert not gone(daemon, server)
    assert mps.ask("quit -t 0").status is not None
    eventually(lambda: gone(daemon, server), "daemon or server live on")


def test_quit_with_a_time_limit_ends_the_server(mps: Mps, server: int) -> None:
    daemon = mps.daemon()
    assert daemon is not None
    begin = time.monotonic()
    assert mps.ask("quit -t 1") == Answer([], "", 0)
    assert time.monotonic() - begin >= 1
    eventually(lambda: gone(daemon, server), "daemon or server live on")
    expected = ["quit command issued with timeout of 1", f"Server {server} exited with status 0", "Exit with status 0"]
    assert [message for message in mps.log() if message in expected] == expected


def test_quit_ends_by_itself_when_the_server_does(mps: Mps, server: int) -> None:
    quitter = mps.begin()
    assert quitter.stdin is not None
    quitter.stdin.write("quit\n")
    quitter.stdin.flush()
    eventually(lambda: "Cmd:quit" in mps.log(), "quit does not arrive")
    os.kill(server, signal.SIGKILL)
    assert quitter.communicate() == ("", "")
    assert quitter.returncode == 0


def test_signal_orphans_the_server(mps: Mps, server: int) -> None:
    daemon = mps.daemon()
    assert daemon is not None
    os.kill(daemon, signal.SIGTERM)
    eventually(lambda: gone(daemon), "the daemon lives on")
    assert alive(server)
    mps.start()
    assert mps.ask("get_server_list") == Answer([], "", 0)


def test_a_second_front_end_is_turned_away(mps: Mps) -> None:
    """While one front end is open, another gets an error or, from NVIDIA's, now and then nothing at all with status 0."""
    mps.start()
    first = mps.begin()
    assert first.stdin is not None
    first.stdin.write("get_default_client_priority\n")
    first.stdin.flush()
    eventually(lambda: "Cmd:get_default_client_priority" in mps.log(), "the first front end does not get through")
    turned_away = [Answer([], CANNOT_SEND, 1)]
    if mps.program.real:
        turned_away += [Answer([], "", 0), Answer([], "", 1)]
    assert mps.run(text="get_default_active_thread_percentage\n") in turned_away
    assert first.communicate() == ("0\n", "")
    assert mps.ask("get_default_active_thread_percentage") == Answer(["100.0"], "", 0)


def test_front_end_killed_in_the_middle_does_no_harm(mps: Mps) -> None:
    mps.start()
    first = mps.begin()
    assert first.stdin is not None
    first.stdin.write("get_default_client_priority\n")
    first.stdin.flush()
    eventually(lambda: "Cmd:get_default_client_priority" in mps.log(), "the front end does not get through")
    first.kill()
    first.communicate()
    eventually(lambda: mps.log()[-1] == "UI closed", "the daemon does not notice")
    assert mps.ask("get_default_active_thread_percentage") == Answer(["100.0"], "", 0)


def test_a_server_does_not_keep_a_front_ends_output_open(mps: Mps) -> None:
    """Whoever reads the output of a front end to its end must not wait for the server that it started."""
    mps.start()
    ran = subprocess.run(
        [mps.folder / "bin" / mps.program.path.name],
        input=f"start_server -uid {os.getuid()}\n",
        env=mps.environment,
        stdout=subprocess.PIPE,
        text=True,
        timeout=20,
    )
    assert ran.returncode == 0
    assert mps.ask("get_server_list").printed
