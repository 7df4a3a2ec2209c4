# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How an MPS control daemon starts, lives and ends: NVIDIA's own and the stand-in, side by side."""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from _programs import ABSENT, CONTROL, PROGRAMS, STRANGER, TIMEOUT, Answer, Mps, alive, eventually, open_mps

RUNNING = "An instance of this daemon is already running"
NOT_FOUND = Answer([], ABSENT, 1)
LEFT_BEHIND = {"control", "control_lock", "control_privileged"}
as_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root, to be another user")


# The two versions of the stand-in live alike, but for one file.
@pytest.fixture(params=[program for program in PROGRAMS if program.name != "stand-in-550"], ids=str)
def mps(request: pytest.FixtureRequest) -> Iterator[Mps]:
    opened = open_mps(request.param)
    yield opened
    opened.close()


def files(folder: Path) -> dict[str, str]:
    """Kind and permissions of what is in a folder, as ls shows them."""
    return {entry.name: stat.filemode(entry.lstat().st_mode) for entry in folder.iterdir()}


def names(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir()}


def test_help(mps: Mps) -> None:
    answer = mps.run("-h")
    assert answer.status == 0
    assert answer.printed[0] == "CUDA MPS Control for Linux/Unix."
    assert mps.run("--help").printed == answer.printed


@pytest.mark.parametrize("line", ["get_server_list", "quit"])
def test_no_daemon(mps: Mps, line: str) -> None:
    assert mps.ask(line) == NOT_FOUND


def test_files_of_a_running_daemon(mps: Mps) -> None:
    old = os.umask(0o022)
    try:
        pid = mps.start()
    finally:
        os.umask(old)
    expected = {
        "control": "srw-rw-rw-",
        "control_lock": "-rw-rw-rw-",
        "control_privileged": "srwxr-xr-x",
        "log": "prwxrwxrwx",
    }
    if mps.program.version >= 550:
        expected["nvidia-cuda-mps-control.pid"] = "-rw-rw-rw-"
        assert (mps.pipe / "nvidia-cuda-mps-control.pid").read_text() == str(pid)
    assert files(mps.pipe) == expected
    assert files(mps.logs) == {"control.log": "-rw-r--r--", "server.log": "-rw-r--r--"}
    assert files(mps.folder)["p"] == "drwxrwxrwx"
    assert files(mps.folder)["l"] == "drwx------"
    assert mps.log() == [
        f"Starting control daemon using socket {mps.pipe}/control",
        f"To connect CUDA applications to this daemon, set env CUDA_MPS_PIPE_DIRECTORY={mps.pipe}",
    ]


def test_process_id_file_of_550() -> None:
    mps = open_mps(next(program for program in PROGRAMS if program.name == "stand-in-550"))
    try:
        pid = mps.start()
        file = mps.pipe / "nvidia-cuda-mps-control.pid"
        assert (files(mps.pipe)[file.name], file.read_text()) == ("-rw-rw-rw-", str(pid))
        mps.ask("quit")
        assert names(mps.pipe) == LEFT_BEHIND
    finally:
        mps.close()


def test_strict_umask_and_directories_that_exist(mps: Mps) -> None:
    mps.pipe.mkdir(0o700)
    old = os.umask(0o077)
    try:
        mps.start()
    finally:
        os.umask(old)
    assert files(mps.pipe)["control"] == "srw-rw-rw-"
    assert files(mps.pipe)["control_privileged"] == "srwx------"
    assert files(mps.logs) == {"control.log": "-rw-------", "server.log": "-rw-------"}
    assert files(mps.folder)["p"] == "drwx------"


def test_process_as_proc_shows_it(mps: Mps) -> None:
    pid = mps.start(CUDA_VISIBLE_DEVICES="GPU-283ac4e4-651c-54fd-a922-7809abbd0253")
    process = Path(f"/proc/{pid}")
    arguments = (process / "cmdline").read_text().rstrip("\0").split("\0")
    assert (Path(arguments[0]).name, arguments[1:]) == (CONTROL, ["-d"])
    assert (process / "comm").read_text() == "nvidia-cuda-mps\n"
    environment = dict(entry.partition("=")[::2] for entry in (process / "environ").read_text().split("\0") if entry)
    assert environment["CUDA_VISIBLE_DEVICES"] == "GPU-283ac4e4-651c-54fd-a922-7809abbd0253"
    assert environment["CUDA_MPS_PIPE_DIRECTORY"] == str(mps.pipe)
    assert [os.readlink(process / "fd" / number) for number in "012"] == ["/dev/null"] * 3
    assert os.getsid(pid) == pid


def test_second_daemon_is_refused(mps: Mps) -> None:
    pid = mps.start()
    assert mps.run("-d") == Answer([RUNNING], "", 1)
    assert mps.run("-f") == Answer([RUNNING], "", 1)
    (mps.folder / "link").symlink_to(mps.pipe)
    assert mps.run("-d", CUDA_MPS_PIPE_DIRECTORY=f"{mps.folder}/link/") == Answer([RUNNING], "", 1)
    assert mps.daemon() == pid


def test_of_many_starts_at_once_one_wins(mps: Mps) -> None:
    starts = [mps.begin("-d") for _number in range(5)]
    ends = sorted((start.communicate()[0].strip(), start.returncode) for start in starts)
    assert ends == [("", 0)] + [(RUNNING, 1)] * 4
    assert mps.ask("get_server_list") == Answer([], "", 0)


def test_two_daemons_have_their_own_settings(mps: Mps) -> None:
    mps.start()
    other = {"CUDA_MPS_PIPE_DIRECTORY": f"{mps.folder}/q", "CUDA_MPS_LOG_DIRECTORY": f"{mps.folder}/m"}
    assert mps.run("-d", text="", user=None, timeout=TIMEOUT, **other) == Answer([], "", 0)
    assert mps.ask("set_default_active_thread_percentage 10").printed == ["10.0"]
    for line, printed in (("get_default_active_thread_percentage", ["100.0"]), ("quit", [])):
        assert mps.run(text=f"{line}\n", user=None, timeout=TIMEOUT, **other) == Answer(printed, "", 0)
    assert mps.ask("get_default_active_thread_percentage").printed == ["10.0"]


@pytest.mark.parametrize("line", ["quit", "quit -t 30", "quit -t", "quit -t abc", "quit now"])
def test_quit_without_servers(mps: Mps, line: str) -> None:
    pid = mps.start()
    assert mps.ask(line) == Answer([], "", 0)
    eventually(lambda: not alive(pid), "the daemon lives on")
    assert mps.log()[-1] == "Exit with status 0"
    assert names(mps.pipe) == LEFT_BEHIND
    assert mps.ask("get_server_list") == NOT_FOUND


def test_settings_are_lost_with_the_daemon_and_logs_go_on(mps: Mps) -> None:
    mps.start()
    mps.ask("set_default_active_thread_percentage 10", "quit")
    eventually(lambda: mps.daemon() is None, "the daemon lives on")
    mps.start()
    assert mps.ask("get_default_active_thread_percentage").printed == ["100.0"]
    assert sum(message.startswith("Starting control daemon") for message in mps.log()) == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_a_signal_ends_the_daemon_without_cleaning_up(mps: Mps, number: signal.Signals) -> None:
    pid = mps.start()
    before = mps.log()
    os.kill(pid, number)
    eventually(lambda: not alive(pid), "the daemon lives on")
    assert names(mps.pipe) > LEFT_BEHIND
    assert mps.log() == before
    assert mps.ask("get_server_list") == NOT_FOUND
    assert mps.start() != pid


def test_foreground(mps: Mps) -> None:
    daemon = mps.begin("-f")
    eventually(lambda: mps.ask("get_default_active_thread_percentage").printed == ["100.0"], "the daemon is not there")
    assert mps.run("-d") == Answer([RUNNING], "", 1)
    assert mps.ask("quit") == Answer([], "", 0)
    printed, complaints = daemon.communicate()
    assert (daemon.returncode, complaints) == (0, "")
    assert f"Starting control daemon using socket {mps.pipe}/control" in printed
    assert "Cmd:get_default_active_thread_percentage" in printed
    assert names(mps.logs) == set()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_foreground_and_signals(mps: Mps, number: signal.Signals) -> None:
    daemon = mps.begin("-f")
    eventually(lambda: mps.ask("get_server_list").status == 0, "the daemon is not there")
    daemon.send_signal(number)
    assert daemon.wait() == -number


@pytest.mark.parametrize("length", [86, 87])
def test_longest_pipe_directories(mps: Mps, length: int) -> None:
    path = f"{mps.folder}/".ljust(length, "x")
    mps.environment["CUDA_MPS_PIPE_DIRECTORY"] = path
    assert mps.run("-d") == Answer([], "", 0)
    assert mps.ask("get_default_active_thread_percentage") == Answer(["100.0"], "", 0)
    assert mps.ask("quit") == Answer([], "", 0)


def test_too_long_a_pipe_directory(mps: Mps) -> None:
    path = Path(f"{mps.folder}/".ljust(88, "x"))
    mps.environment["CUDA_MPS_PIPE_DIRECTORY"] = str(path)
    assert mps.run("-d") == Answer([], "", 1)
    assert names(path) == {"control_lock", "log"}
    assert mps.ask("get_server_list") == NOT_FOUND


def test_pipe_directory_that_cannot_be(mps: Mps) -> None:
    missing = f"{mps.folder}/none/p"
    assert mps.run("-d", CUDA_MPS_PIPE_DIRECTORY=missing) == Answer(
        [f"Cannot access CUDA_MPS_PIPE_DIRECTORY={missing}"], "", 1
    )
    mps.pipe.write_text("")
    expected = Answer([f"Cannot access CUDA_MPS_PIPE_DIRECTORY={mps.pipe}"], "", 1)
    assert mps.run("-d") == expected
    assert mps.run("-f") == expected


def test_without_a_log_directory_the_daemon_runs(mps: Mps) -> None:
    missing = f"{mps.folder}/none/l"
    warning = f"Warning: Failed writing log files to directory [{missing}]. No logs will be available."
    assert mps.run("-d", CUDA_MPS_LOG_DIRECTORY=missing) == Answer([warning], "", 0)
    assert mps.ask("get_default_active_thread_percentage") == Answer(["100.0"], "", 0)


def test_relative_pipe_directory(mps: Mps, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(mps.folder)
    mps.environment["CUDA_MPS_PIPE_DIRECTORY"] = "p"
    mps.start()
    assert mps.ask("get_default_active_thread_percentage") == Answer(["100.0"], "", 0)


def test_pipe_directory_removed_under_a_daemon(mps: Mps) -> None:
    first = mps.start()
    mps.pipe.rename(mps.folder / "gone")
    assert mps.ask("get_server_list") == NOT_FOUND
    second = mps.start()
    assert alive(first)
    assert second != first


@as_root
def test_without_its_open_socket_root_still_gets_through(mps: Mps) -> None:
    mps.start()
    (mps.pipe / "control").unlink()
    assert mps.ask("get_default_active_thread_percentage") == Answer(["100.0"], "", 0)
    assert mps.ask("get_server_list", user=STRANGER) == NOT_FOUND


@pytest.mark.parametrize(
    ("variable", "value", "line", "answer"),
    [
        ("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "50", "get_default_active_thread_percentage", ["50.0"]),
        ("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "50%", "get_default_active_thread_percentage", ["50.0"]),
        ("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "101", "get_default_active_thread_percentage", ["100.0"]),
        ("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "abc", "get_default_active_thread_percentage", ["100.0"]),
        ("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "", "get_default_active_thread_percentage", ["100.0"]),
        ("CUDA_MPS_CLIENT_PRIORITY", "1", "get_default_client_priority", ["1"]),
        ("CUDA_MPS_CLIENT_PRIORITY", "2", "get_default_client_priority", ["0"]),
        ("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=1G", "get_default_device_pinned_mem_limit 0", []),
        ("CUDA_VISIBLE_DEVICES", "99", "get_server_list", []),
        ("CUDA_VISIBLE_DEVICES", "", "get_server_list", []),
    ],
)
def test_daemon_environment(mps: Mps, variable: str, value: str, line: str, answer: list[str]) -> None:
    mps.environment[variable] = value
    mps.start()
    assert mps.ask(line) == Answer(answer, "", 0)


def test_arguments_are_no_commands(mps: Mps) -> None:
    mps.start()
    assert mps.run("quit") == Answer([], "", 0)
    assert mps.run("-x", text="get_default_client_priority") == Answer(["0"], "", 0)
