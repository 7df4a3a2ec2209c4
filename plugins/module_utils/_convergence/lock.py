# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. The host's lock: one run at a time from read to read back."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import time
import typing as t

from .._errors import LockTimeout, PermissionMissing, StateUnreadable

DEFAULT_STATE = "/var/lib/gpuops-sharing"
# Not /run/lock: there anyone may hold a lock against us.
DEFAULT_DIRECTORY = "/run/gpuops-sharing"


def lock_directory(state_directory: str) -> str:
    """Return where the lock lies: a state directory of one's own brings its own lock."""
    return DEFAULT_DIRECTORY if state_directory == DEFAULT_STATE else state_directory


@contextlib.contextmanager
def host_lock(state_directory: str, limit: float) -> t.Iterator[None]:
    """Hold the lock. Raises LockTimeout after ``limit`` seconds; the lock falls with the process and no child inherits it."""
    directory = lock_directory(state_directory)
    path = os.path.join(directory, "lock")
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        if stat.S_IMODE(os.lstat(directory).st_mode) & 0o022 or os.lstat(directory).st_uid not in (0, os.geteuid()):
            raise StateUnreadable(
                f"{directory} may be written by others, so a lock in it means nothing; make it belong to root with mode 0700"
            )
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as exc:
        raise PermissionMissing(
            f"Cannot take the host's lock {path}: {exc.strerror}; run as root (become: true), or set state_directory to a directory of your own"
        ) from exc
    try:
        _wait(handle, path, limit)
        yield
    finally:
        os.close(handle)


def _wait(handle: int, path: str, limit: float) -> None:
    deadline = time.monotonic() + limit
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(handle, 0)
            os.write(handle, f"{os.getpid()}\n".encode())
            return
        except BlockingIOError:
            if time.monotonic() >= deadline:
                holder = os.pread(handle, 32, 0).decode(errors="replace").strip() or "unknown"
                raise LockTimeout(
                    f"Another run holds the host's lock {path} (pid {holder}) for longer than {limit:g} s; let it end and run again, or raise timeout",
                    pid=holder,
                ) from None
            time.sleep(0.05)  # flock has no time limit of its own
