# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Open the machine's state file from Python, under the same lock as the C library."""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import sizeof
from functools import cache
from pathlib import Path
from typing import Any

from library import layout

DEFAULT_PATH = Path("/var/lib/mock-driver/state")
HOME = Path(__file__).resolve().parents[1]
BUILD = HOME / "build"


class MockDriverError(Exception):
    """Something the caller can put right; the text says what."""


def state_path(path: str | os.PathLike[str] | None = None) -> Path:
    """The state file meant: the one given, $MOCK_DRIVER_STATE, or the default."""
    return Path(path or os.environ.get("MOCK_DRIVER_STATE") or DEFAULT_PATH)


@cache
def nvml() -> dict[str, Any]:
    """What the build took from nvml.h: `functions`, `setters`, `per_gpu`, `errors`."""
    try:
        loaded: dict[str, Any] = json.loads((BUILD / "nvml.json").read_text())
    except OSError as error:
        raise MockDriverError(f"the library is not built; run: make -C {HOME}") from error
    return loaded


def signature() -> int:
    return layout.signature(nvml()["functions"])


@contextmanager
def open_state(path: str | os.PathLike[str] | None = None) -> Iterator[layout.State]:
    """The machine, locked as long as the block runs: keep the block short, every NVML call on the machine waits.

    Raises MockDriverError where no machine is up, or another build of the mock made the state.
    """
    file = state_path(path)
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise MockDriverError(
            f"no mocked machine is up at {file} ({error.strerror}); start one: mock-driver up"
        ) from error
    with os.fdopen(descriptor, "r+b", buffering=0) as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)
        try:
            if os.fstat(opened.fileno()).st_size != sizeof(layout.State):
                raise MockDriverError(f"{file} is not the state of a mocked machine of this build")
            # Not closed here: the caller's names may still point into it. It goes when they go.
            state = layout.State.from_buffer(mmap.mmap(opened.fileno(), 0))
            if state.magic != layout.MAGIC or state.layout != signature():
                raise MockDriverError(f"{file} is not the state of a mocked machine of this build")
            yield state
        finally:
            fcntl.flock(opened, fcntl.LOCK_UN)


def create_state(state: layout.State, path: Path) -> None:
    """Write a new state file in one step, so that nobody ever sees half of it."""
    if path.exists():
        raise MockDriverError(f"a mocked machine is up at {path} already; take it down first: mock-driver down")
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name + ".")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(bytes(state))
            os.fchmod(file.fileno(), 0o666)
        os.link(name, path)
    except FileExistsError as error:
        raise MockDriverError(
            f"a mocked machine is up at {path} already; take it down first: mock-driver down"
        ) from error
    finally:
        os.unlink(name)
