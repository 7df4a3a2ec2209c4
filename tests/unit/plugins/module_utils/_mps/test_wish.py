# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What options of nvidia_mps are taken, and how the others are refused: with the option, the value and the remedy."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.gpuops.sharing.plugins.module_utils._errors import BadOption
from ansible_collections.gpuops.sharing.plugins.module_utils._mps import wish
from ansible_collections.gpuops.sharing.plugins.module_utils._mps.wish import MemoryWish, Wish


def parse(**options: t.Any) -> Wish:
    """One daemon with a name and a GPU, unless options say otherwise."""
    return wish.parse([{"name": "render", "gpus": ["0"], **options}])[0]


def refusal(*daemons: dict[str, t.Any]) -> str:
    with pytest.raises(BadOption) as failure:
        wish.parse([{"name": "render", "gpus": ["0"], **daemon} for daemon in daemons])
    return failure.value.message


def test_a_name_and_a_gpu_are_enough() -> None:
    assert parse() == Wish(
        name="render",
        gpus=("0",),
        state="started",
        compute_mode="exclusive_process",
        tenths=1000,
        memory=(),
        clients=None,
        pipe_directory="/run/nvidia-mps/render",
        log_directory="/var/log/nvidia-mps/render",
    )


def test_all_options_as_the_strings_that_a_survey_delivers() -> None:
    assert parse(
        gpus=[" 0 ", "0000:0f:00.0"],
        active_thread_percentage="50",
        memory_limits=[{"size": "8g"}, {"gpu": "0", "size": "512M"}],
        clients="",
        compute_mode="unchanged",
        pipe_directory="/srv/mps/render/",
        log_directory="/srv/log/render",
    ) == Wish(
        name="render",
        gpus=("0", "0000:0f:00.0"),
        state="started",
        compute_mode="unchanged",
        tenths=500,
        memory=(MemoryWish("all", 8192), MemoryWish("0", 512)),
        clients=None,
        pipe_directory="/srv/mps/render",
        log_directory="/srv/log/render",
    )


def test_clients_share_the_threads() -> None:
    assert (parse(clients="3").clients, parse(clients="3").tenths) == (3, 333)


def test_a_question_that_was_not_answered_sets_nothing() -> None:
    assert (
        parse(active_thread_percentage="", clients="", pipe_directory="", log_directory="", memory_limits=None)
        == parse()
    )


@pytest.mark.parametrize("state", ["stopped", "absent"])
def test_a_daemon_that_shall_not_run_needs_no_gpus(state: str) -> None:
    ending = parse(gpus=None, state=state)
    assert (ending.gpus, ending.started) == ((), False)


@pytest.mark.parametrize("name", ["a", "0", "GPU-0.left_half", "x" * 64])
def test_name(name: str) -> None:
    assert parse(name=name).name == name


@pytest.mark.parametrize(
    "name", ["", " a", "a b", "a/b", "..", ".a", "-a", "_a", "a@b", "a%i", "\u00e4", "a\n", "x" * 65]
)
def test_bad_name(name: str) -> None:
    assert refusal({"name": name}) == (
        f"daemons[0].name: '{name}': is no usable name; give 1 to 64 letters, digits, '.', '_' and '-', beginning with a letter or a digit"
    )


def test_missing_name() -> None:
    assert refusal({"name": None}).startswith("daemons[0].name: '': is no usable name")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"gpus": None},
            "daemons[0].gpus: '': is missing; a started daemon needs GPUs: indices, UUIDs, PCI addresses, or 'all'",
        ),
        ({"gpus": []}, "daemons[0].gpus: '[]': names no GPU; give an index"),
        ({"gpus": [""]}, "daemons[0].gpus: '': is empty; give an index"),
        ({"gpus": ["420.0"]}, "daemons[0].gpus: '420.0': is no GPU index; YAML reads an unquoted PCI address"),
        ({"gpus": [], "state": "absent"}, "daemons[0].gpus: '[]': names no GPU"),
        (
            {"active_thread_percentage": "0"},
            "daemons[0].active_thread_percentage: '0': is out of range; give a percentage above 0",
        ),
        ({"active_thread_percentage": 0}, "daemons[0].active_thread_percentage: 0: is out of range"),
        ({"active_thread_percentage": "101"}, "daemons[0].active_thread_percentage: '101': is out of range"),
        ({"active_thread_percentage": "abc"}, "daemons[0].active_thread_percentage: 'abc': is no number"),
        ({"active_thread_percentage": "50%"}, "daemons[0].active_thread_percentage: '50%': is no number"),
        (
            {"memory_limits": [{"size": "8G"}, {"size": "512K"}]},
            "daemons[0].memory_limits[1].size: '512K': is no size; give whole MiB",
        ),
        ({"memory_limits": [{"size": "0"}]}, "daemons[0].memory_limits[0].size: '0': is no size"),
        ({"memory_limits": [{"gpu": "", "size": "8G"}]}, "daemons[0].memory_limits[0].gpu: '': is empty"),
        (
            {"memory_limits": [{"gpu": 420.0, "size": "8G"}]},
            "daemons[0].memory_limits[0].gpu: '420.0': is no GPU index",
        ),
        ({"clients": "0"}, "daemons[0].clients: '0': is no number of clients; give a whole number from 1"),
        ({"clients": "x"}, "daemons[0].clients: 'x': is no number of clients"),
        ({"clients": "1001"}, "daemons[0].clients: 1001: is too many clients"),
        (
            {"clients": "4", "active_thread_percentage": "50"},
            "daemons[0].clients: 4: already sets the shares (100/N and memory/N); drop clients or drop active_thread_percentage",
        ),
        (
            {"clients": 4, "memory_limits": [{"size": "8G"}]},
            "daemons[0].clients: 4: already sets the shares (100/N and memory/N); drop clients or drop memory_limits",
        ),
        (
            {"pipe_directory": "run/mps"},
            "daemons[0].pipe_directory: 'run/mps': is no usable directory; give an absolute path",
        ),
        ({"log_directory": "mps"}, "daemons[0].log_directory: 'mps': is no usable directory"),
    ],
)
def test_bad_option(options: dict[str, t.Any], message: str) -> None:
    assert refusal(options).startswith(message)


@pytest.mark.parametrize("path", ["/a b", "/a\n", '/a"b', "/a'b", "/a\\b", "/$HOME", "/%i", "/a/../b", "/..", "~/mps"])
def test_bad_directory(path: str) -> None:
    assert refusal({"pipe_directory": path}).startswith(f"daemons[0].pipe_directory: '{path}': is no usable directory")


def test_the_second_daemon_is_named_by_its_number() -> None:
    assert refusal({}, {"name": "train", "clients": "0"}).startswith("daemons[1].clients: '0':")


def test_the_longest_pipe_directory() -> None:
    assert parse(pipe_directory="/" + "x" * 86).pipe_directory == "/" + "x" * 86
    assert len(parse(name="x" * 64).pipe_directory) < 88


@pytest.mark.parametrize(("path", "length"), [("/" + "x" * 87, 88), ("/" + "\u00e4" * 44, 89)])
def test_a_pipe_directory_in_which_no_socket_can_lie(path: str, length: int) -> None:
    assert refusal({"pipe_directory": path}) == (
        f"daemons[0].pipe_directory: '{path}': is {length} bytes long; the control daemon takes at most 87 (sockets lie in it)"
    )


@pytest.mark.parametrize("path", ["/tmp/nvidia-mps", "/tmp/nvidia-mps/", "//tmp/nvidia-mps", "/tmp/./nvidia-mps"])
def test_the_pipe_directory_of_every_cuda_process_is_for_all_gpus_only(path: str) -> None:
    assert parse(gpus=["all"], pipe_directory=path).pipe_directory == "/tmp/nvidia-mps"
    message = refusal({"gpus": ["0"], "pipe_directory": path})
    assert message.startswith(
        "daemons[0].pipe_directory: '/tmp/nvidia-mps': is NVIDIA's default, which every CUDA process of the host uses"
    )
    assert message.endswith("it is allowed with gpus: all only: leave it out")


def test_a_daemon_on_the_pipe_directory_of_every_cuda_process_can_be_ended() -> None:
    assert parse(gpus=None, state="absent", pipe_directory="/tmp/nvidia-mps").pipe_directory == "/tmp/nvidia-mps"


def test_two_daemons_of_one_name() -> None:
    assert (
        refusal({}, {})
        == "daemons: name: 'render': stands twice (daemons render and render); each daemon needs its own"
    )


@pytest.mark.parametrize("path", ["/run/nvidia-mps/render", "/run/nvidia-mps//render/"])
def test_two_daemons_on_one_pipe_directory(path: str) -> None:
    assert refusal({}, {"name": "train", "pipe_directory": path}) == (
        "daemons: pipe_directory: '/run/nvidia-mps/render': stands twice (daemons render and train); each daemon needs its own"
    )
