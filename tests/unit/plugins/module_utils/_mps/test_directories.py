# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which directories a daemon may use, and that what comes goes again."""

from __future__ import annotations

import os
import pathlib
import stat

import pytest
from ansible_collections.gpuops.sharing.plugins.module_utils._errors import DoesNotFit
from ansible_collections.gpuops.sharing.plugins.module_utils._mps import directories

NOBODY = 65534


def complaint(path: pathlib.Path) -> str:
    with pytest.raises(DoesNotFit) as failure:
        directories.check_pipe(str(path), "render")
    subject = f"Daemon 'render': pipe_directory {path}: "
    assert failure.value.message.startswith(subject)
    return failure.value.message[len(subject) :]


def test_a_directory_of_ones_own_and_one_that_can_be_made(tmp_path: pathlib.Path) -> None:
    directories.check_pipe(str(tmp_path), "render")
    directories.check_pipe(str(tmp_path / "new"), "render")
    directories.check_log(str(tmp_path / "new"), "render")


def test_the_default_parents_are_made_by_the_collection_itself(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.setattr(directories, "DEFAULT_PIPE_PARENT", str(tmp_path / "pipes"))
    monkeypatch.setattr(directories, "DEFAULT_LOG_PARENT", str(tmp_path / "logs"))
    directories.check_pipe(str(tmp_path / "pipes" / "render"), "render")
    directories.check_log(str(tmp_path / "logs" / "render"), "render")


def test_a_missing_parent(tmp_path: pathlib.Path) -> None:
    assert (
        complaint(tmp_path / "a" / "b")
        == f"its parent {tmp_path}/a is missing; create it first, or choose another directory"
    )


def test_a_file_in_its_place(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").touch()
    assert complaint(tmp_path / "file") == "is no directory; remove the file, or choose another directory"
    assert complaint(tmp_path / "file" / "render") == "Not a directory"


def test_a_symbolic_link(tmp_path: pathlib.Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there")
    assert complaint(tmp_path / "link") == (
        f"is a symbolic link, which could lead elsewhere tomorrow; give the directory that it means ({tmp_path}/there)"
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a directory of another user")
def test_a_directory_of_another_user(tmp_path: pathlib.Path) -> None:
    os.chown(tmp_path, NOBODY, NOBODY)
    assert (
        complaint(tmp_path)
        == f"belongs to another user (id {NOBODY}), who could replace what is in it; choose another directory"
    )


def test_a_directory_that_is_not_writable(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write everywhere
    assert complaint(tmp_path) == "is not writable; run as root (become: true), or choose another directory"
    assert complaint(tmp_path / "new") == (
        f"cannot be created, {tmp_path} is not writable; run as root (become: true), or choose another directory"
    )


def test_the_complaint_about_a_log_directory_names_its_option(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DoesNotFit, match=f"^Daemon 'render': log_directory {tmp_path}/file: is no directory"):
        directories.check_log(str(tmp_path / "file"), "render")


def test_shared_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setattr(directories, "_SHARED_MEMORY", str(tmp_path))
    directories.check_shared_memory()
    monkeypatch.setattr(directories, "_SHARED_MEMORY", str(tmp_path / "none"))
    with pytest.raises(DoesNotFit, match="is missing or not writable; MPS needs it: mount a tmpfs there$"):
        directories.check_shared_memory()


def modes(*paths: pathlib.Path) -> list[int]:
    return [stat.S_IMODE(path.stat().st_mode) for path in paths]


@pytest.mark.parametrize("mask", [0o000, 0o077])
def test_clients_reach_the_pipes_and_only_the_owner_reads_the_logs(tmp_path: pathlib.Path, mask: int) -> None:
    pipe, log = tmp_path / "pipe", tmp_path / "log"
    before = os.umask(mask)
    try:
        directories.make(str(pipe), str(log))
    finally:
        os.umask(before)
    assert modes(pipe, log) == [0o755, 0o700]


def test_a_directory_that_is_there_keeps_its_mode(tmp_path: pathlib.Path) -> None:
    for name in ("pipe", "log"):
        (tmp_path / name).mkdir(mode=0o750)
    directories.make(str(tmp_path / "pipe"), str(tmp_path / "log"))
    assert modes(tmp_path / "pipe", tmp_path / "log") == [0o750, 0o750]


def test_a_pipe_directory_goes_with_what_a_daemon_leaves_in_it(tmp_path: pathlib.Path) -> None:
    pipe = tmp_path / "pipe"
    pipe.mkdir()
    for name in ("control", "control_lock", "control_privileged", "log", "nvidia-cuda-mps-control.pid"):
        (pipe / name).touch()
    directories.remove_pipe(str(pipe))
    assert not pipe.exists()
    directories.remove_pipe(str(pipe))


def test_what_is_not_a_daemons_stays(tmp_path: pathlib.Path) -> None:
    for name in ("control", "mine"):
        (tmp_path / name).touch()
    directories.remove_pipe(str(tmp_path))
    assert os.listdir(tmp_path) == ["mine"]


@pytest.mark.parametrize("path", ["/home/ops/pipe", "/etc/mps", "/run/user/0/mps", "/usr/local/mps"])
def test_a_directory_that_the_unit_may_not_write(path: str) -> None:
    directories.check_sandbox(["/run/nvidia-mps/render", "/srv/mps"], "render")
    with pytest.raises(DoesNotFit, match=f"Daemon 'render': {path} is closed to the unit"):
        directories.check_sandbox(["/run/nvidia-mps/render", path], "render")
