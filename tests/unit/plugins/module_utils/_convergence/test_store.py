# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A file is there as a whole or not at all, and a corrupt one is said to be so."""

from __future__ import annotations

import os
import pathlib
import stat

import pytest
from ansible_collections.gpuops.sharing.plugins.module_utils._convergence import store
from ansible_collections.gpuops.sharing.plugins.module_utils._errors import StateUnreadable


def mode(path: pathlib.Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_text_comes_back(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "new" / "render.env"
    store.write_text(str(path), "NAME=\u00e4\n")
    assert store.read_text(str(path)) == "NAME=\u00e4\n"
    assert (mode(path), os.listdir(path.parent)) == (0o644, ["render.env"])


def test_state_is_for_its_owner_only_and_can_be_read_by_a_person(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "daemons.json"
    store.write_json(str(path), {"version": 1, "daemons": {}})
    assert path.read_text(encoding="utf-8") == '{\n  "version": 1,\n  "daemons": {}\n}\n'
    assert mode(path) == 0o600


def test_what_is_not_there(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "none")
    assert (store.read_text(path), store.read_json(path)) == (None, None)
    store.remove(path)


def test_remove(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").touch()
    store.remove(str(tmp_path / "file"))
    assert os.listdir(tmp_path) == []


def test_who_reads_while_it_is_written_reads_the_old_file_to_its_end(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "file"
    path.write_text("old " * 1000, encoding="utf-8")
    with open(path, encoding="utf-8") as reader:
        begin = reader.read(4)
        store.write_text(str(path), "new")
        assert begin + reader.read() == "old " * 1000
    assert path.read_text(encoding="utf-8") == "new"


@pytest.mark.parametrize("call", ["fsync", "fchmod", "write", "replace"])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_beside_it(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "file"
    path.write_text("old", encoding="utf-8")
    monkeypatch.setattr(os, call, full)
    with pytest.raises(StateUnreadable) as failure:
        store.write_text(str(path), "new")
    monkeypatch.undo()
    assert (
        failure.value.message
        == f"Cannot write {path}: No space left on device; run as root (become: true), or choose a directory of your own"
    )
    assert (path.read_text(encoding="utf-8"), os.listdir(tmp_path)) == ("old", ["file"])


def test_a_folder_that_cannot_be_made(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StateUnreadable, match="^Cannot write .*: File exists; run as root"):
        store.write_text(str(tmp_path / "file" / "render.env"), "")


@pytest.mark.parametrize("content", [b"", b"{", b'{"version": 1,', b"text", b'{"version": 1}}'])
def test_corrupt_state(tmp_path: pathlib.Path, content: bytes) -> None:
    path = tmp_path / "daemons.json"
    path.write_bytes(content)
    with pytest.raises(StateUnreadable) as failure:
        store.read_json(str(path))
    assert failure.value.message.startswith(f"{path} is corrupt (")
    assert failure.value.message.endswith(
        "; look at it, repair it or move it away (then the modes from before are forgotten), and run again"
    )
    assert path.read_bytes() == content


def test_what_is_no_text(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_bytes(b"\xff")
    for path in (tmp_path / "file", tmp_path):
        with pytest.raises(StateUnreadable, match=f"^Cannot read {path}: "):
            store.read_json(str(path))


def test_what_cannot_be_removed(tmp_path: pathlib.Path) -> None:
    with pytest.raises(StateUnreadable, match=f"^Cannot remove {tmp_path}: "):
        store.remove(str(tmp_path))
