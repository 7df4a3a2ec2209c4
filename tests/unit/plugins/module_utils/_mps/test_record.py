# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is remembered comes back as it was, and nothing else is taken for it."""

from __future__ import annotations

import pathlib
import typing as t

import pytest
from ansible_collections.gpuops.sharing.plugins.module_utils._convergence import store
from ansible_collections.gpuops.sharing.plugins.module_utils._errors import StateUnreadable
from ansible_collections.gpuops.sharing.plugins.module_utils._mps import record
from ansible_collections.gpuops.sharing.plugins.module_utils._mps.record import Memory, ModeEntry, Record

RENDER = Record(
    "render",
    {"0": "GPU-1", "GPU-2": "GPU-2"},
    "/run/nvidia-mps/render",
    "/var/log/nvidia-mps/render",
    "none",
    77,
    123456,
)
MEMORY = Memory(
    {"render": RENDER, "train": RENDER._replace(name="train", pid=None, started=None, service="systemd")},
    {
        "GPU-1": ModeEntry("default", "exclusive_process", ("render", "train")),
        "GPU-2": ModeEntry("prohibited", "exclusive_process", ()),
    },
)


def through_files(memory: Memory, folder: pathlib.Path) -> Memory:
    paths = [str(folder / name) for name in ("daemons.json", "compute_modes.json")]
    for path, document in zip(paths, record.to_json(memory)):
        store.write_json(path, document)
    daemons, modes = [store.read_json(path) for path in paths]
    return record.from_json(daemons, modes)


def test_what_is_remembered_comes_back(tmp_path: pathlib.Path) -> None:
    assert through_files(MEMORY, tmp_path) == MEMORY


def test_a_daemons_cards_keep_their_order(tmp_path: pathlib.Path) -> None:
    memory = Memory({"render": RENDER._replace(gpus={"GPU-9": "GPU-9", "GPU-1": "GPU-1"})}, {})
    assert list(through_files(memory, tmp_path).daemons["render"].gpus) == ["GPU-9", "GPU-1"]


def test_nothing_is_remembered_where_there_are_no_files() -> None:
    assert record.from_json(None, None) == Memory({}, {})


@pytest.mark.parametrize(
    "document",
    [
        [],
        "text",
        7,
        {},
        {"version": 1},
        {"version": 1, "daemons": None},
        {"version": 1, "daemons": "text"},
        {"version": 1, "daemons": [1]},
        {"version": 1, "daemons": {"render": None}},
        {"version": 1, "daemons": {"render": []}},
        {"version": 1, "daemons": {"render": {"gpus": {}}}},
        {"version": 1, "daemons": {"render": {**RENDER._asdict(), "surprise": 1}}},
    ],
)
def test_other_contents_of_daemons_json(document: t.Any) -> None:
    with pytest.raises(StateUnreadable, match="^its contents are not what this collection writes"):
        record.from_json(document, None)


@pytest.mark.parametrize(
    "card", [None, [], "text", {}, {"before": "default"}, {"before": "default", "set": "x", "owners": None}]
)
def test_other_contents_of_compute_modes_json(card: t.Any) -> None:
    with pytest.raises(StateUnreadable, match="^its contents are not what this collection writes"):
        record.from_json(None, {"version": 1, "cards": {"GPU-1": card}})


def test_files_of_a_later_version() -> None:
    with pytest.raises(StateUnreadable, match="^it is of version 2, this collection reads version 1$"):
        record.from_json({"version": 2, "daemons": {}}, None)
