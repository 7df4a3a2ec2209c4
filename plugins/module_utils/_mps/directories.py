# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. Pipe and log directories: whose they may be, and how they come and go."""

from __future__ import annotations

import os
import stat
import typing as t

from .._errors import DoesNotFit
from .wish import DEFAULT_LOG_PARENT, DEFAULT_PIPE_PARENT

_OURS = ("control", "control_lock", "control_privileged", "log", "nvidia-cuda-mps-control.pid")
_CLOSED = ("/home", "/root", "/run/user", "/usr", "/boot", "/efi", "/etc")
_SHARED_MEMORY = "/dev/shm"


def check_pipe(path: str, name: str) -> None:
    """Refuse a pipe directory that the daemon could not use, or that somebody else could swap."""
    _check(path, DEFAULT_PIPE_PARENT, f"Daemon '{name}': pipe_directory {path}")


def check_log(path: str, name: str) -> None:
    """Refuse a log directory that cannot be written: the daemon would run without logs and say so only once."""
    _check(path, DEFAULT_LOG_PARENT, f"Daemon '{name}': log_directory {path}")


def _check(path: str, own_parent: str, subject: str) -> None:
    parent = os.path.dirname(path)
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        if parent != own_parent and not os.path.isdir(parent):
            raise DoesNotFit(
                f"{subject}: its parent {parent} is missing; create it first, or choose another directory"
            ) from None
        if os.path.isdir(parent) and not os.access(parent, os.W_OK):
            raise DoesNotFit(
                f"{subject}: cannot be created, {parent} is not writable; run as root (become: true), or choose another directory"
            ) from None
        return
    except OSError as exc:
        raise DoesNotFit(f"{subject}: {exc.strerror}") from exc
    if stat.S_ISLNK(found.st_mode):
        raise DoesNotFit(
            f"{subject}: is a symbolic link, which could lead elsewhere tomorrow; give the directory that it means ({os.path.realpath(path)})"
        )
    if not stat.S_ISDIR(found.st_mode):
        raise DoesNotFit(f"{subject}: is no directory; remove the file, or choose another directory")
    if found.st_uid not in (0, os.geteuid()):
        raise DoesNotFit(
            f"{subject}: belongs to another user (id {found.st_uid}), who could replace what is in it; choose another directory"
        )
    if not os.access(path, os.W_OK):
        raise DoesNotFit(f"{subject}: is not writable; run as root (become: true), or choose another directory")


def check_sandbox(paths: t.Sequence[str], name: str) -> None:
    """The unit sees these as empty or may not write there (ProtectHome, ProtectSystem=full in the unit template)."""
    for path in paths:
        if path.startswith(tuple(f"{closed}/" for closed in _CLOSED)):
            raise DoesNotFit(
                f"Daemon '{name}': {path} is closed to the unit ({', '.join(_CLOSED)} are); choose a directory below /run, /var or /srv"
            )


def check_system() -> None:
    """MPS exists on Linux (and QNX, where Ansible does not run)."""
    if not os.path.isdir("/proc/self"):
        raise DoesNotFit("This host has no /proc: MPS needs Linux")


def check_shared_memory() -> None:
    """MPS passes page-locked memory between server and clients by /dev/shm (docs.nvidia.com/deploy/mps)."""
    if not os.path.isdir(_SHARED_MEMORY) or not os.access(_SHARED_MEMORY, os.W_OK | os.X_OK):
        raise DoesNotFit(f"{_SHARED_MEMORY} is missing or not writable; MPS needs it: mount a tmpfs there")


def make(pipe_directory: str, log_directory: str) -> None:
    """Create what is missing. Clients of every user must reach the sockets; logs are for the owner."""
    _make(pipe_directory, 0o755)
    _make(log_directory, 0o700)


def _make(path: str, mode: int) -> None:
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    try:
        os.mkdir(path, mode)
    except FileExistsError:
        return
    os.chmod(path, mode)  # whatever the umask is


def remove_pipe(path: str) -> None:
    """Remove a pipe directory with what a daemon leaves in it, and nothing else."""
    for name in _OURS:
        try:
            os.unlink(os.path.join(path, name))
        except OSError:
            continue
    remove_empty(path)


def remove_empty(path: str) -> None:
    """Remove a directory if it is empty."""
    try:
        os.rmdir(path)
    except OSError:
        return
