# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Pipe and log directories that will not do: found before anything is changed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.machine import Machine

STRANGER = 4242
AS_ROOT = pytest.mark.skipif(os.getuid() != 0, reason="only root can make what belongs to somebody else")


def a_file(path: Path) -> None:
    path.write_text("")


def a_link(path: Path) -> None:
    (path.parent / "elsewhere").mkdir()
    path.symlink_to(path.parent / "elsewhere")


def without_parent(path: Path) -> None:
    path.parent.rmdir()


def somebodys(path: Path) -> None:
    path.mkdir()
    os.chown(path, STRANGER, STRANGER)


@pytest.mark.parametrize("kind", ["run", "log"])
@pytest.mark.parametrize("check", [False, True], ids=["do", "check"])
@pytest.mark.parametrize(
    ("prepare", "words", "remedy"),
    [
        (a_file, "is no directory", "remove the file, or choose another directory"),
        (a_link, "is a symbolic link", "give the directory that it means"),
        (without_parent, "is missing", "create it first, or choose another directory"),
        pytest.param(somebodys, f"belongs to another user (id {STRANGER})", "choose another directory", marks=AS_ROOT),
    ],
)
def test_directory(
    machine: Machine, kind: str, check: bool, prepare: Callable[[Path], None], words: str, remedy: str
) -> None:
    path = machine.folder / kind / "render"
    prepare(path)
    with machine.untouched():
        refused = machine.mps(machine.daemon(), check=check)
    for part in ("'render'", f"{kind.replace('run', 'pipe')}_directory {path}", words, remedy):
        assert part in refused.message


@pytest.mark.parametrize("kind", ["run", "log"])
@pytest.mark.parametrize("parent", [False, True], ids=["itself", "parent"])
def test_directory_that_is_not_writable(machine: Machine, kind: str, parent: bool) -> None:
    path = machine.folder / kind / "render"
    if not parent:
        path.mkdir()
    (path.parent if parent else path).chmod(0o555)
    with machine.untouched():
        refused = machine.mps_as_somebody(machine.daemon())
    for part in (str(path), "is not writable", "run as root (become: true), or choose another directory"):
        assert part in refused.message


def test_a_directory_that_is_there_keeps_its_mode(machine: Machine) -> None:
    path = Path(machine.pipe())
    path.mkdir(mode=0o700)
    machine.mps(machine.daemon())
    assert path.stat().st_mode & 0o777 == 0o700
    assert not machine.mps(machine.daemon()).changed


def test_clients_of_every_user_reach_a_new_directory(machine: Machine) -> None:
    machine.mps(machine.daemon())
    assert Path(machine.pipe()).stat().st_mode & 0o777 == 0o755
    assert (machine.folder / "log" / "render").stat().st_mode & 0o777 == 0o700


def test_what_others_put_there_stays(machine: Machine) -> None:
    path = Path(machine.pipe())
    path.mkdir()
    (path / "notes").write_text("mine")
    machine.mps(machine.daemon())
    machine.mps(machine.daemon(state="absent"))
    assert [entry.name for entry in path.iterdir()] == ["notes"]


def test_the_longest_pipe_path(machine: Machine) -> None:
    path = machine.pipe("p" * (88 - len(machine.pipe("p"))))
    assert len(path) == 87
    assert machine.mps(machine.daemon(pipe_directory=path))["daemons"][0]["pid"]
