# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. Small files that must be whole or not be there: written beside, synced, renamed."""

from __future__ import annotations

import json
import os
import tempfile
import typing as t

from .._errors import StateUnreadable

_REMEDY = "look at it, repair it or move it away (then the modes from before are forgotten), and run again"


def read_text(path: str) -> str | None:
    """Return the contents of a file, None when there is none."""
    try:
        with open(path, encoding="utf-8") as handle:
            return handle.read()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as exc:
        raise StateUnreadable(f"Cannot read {path}: {exc}; repair it or move it away, and run again") from exc


def write_text(path: str, content: str, mode: int = 0o644) -> None:
    """Put ``content`` at ``path``, durable when this returns."""
    directory = os.path.dirname(path)
    try:
        os.makedirs(directory, mode=0o755, exist_ok=True)
        handle, beside = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", dir=directory)
        try:
            os.write(handle, content.encode())
            os.fchmod(handle, mode)
            os.fsync(handle)
            os.replace(beside, path)
        except OSError:
            os.unlink(beside)
            raise
        finally:
            os.close(handle)
        _sync_directory(directory)
    except OSError as exc:
        raise StateUnreadable(
            f"Cannot write {path}: {exc.strerror}; run as root (become: true), or choose a directory of your own"
        ) from exc


def probe(directory: str) -> None:
    """Raises StateUnreadable where no file can be put into a directory, which is made if it is not there."""
    try:
        os.makedirs(directory, mode=0o755, exist_ok=True)
        handle, path = tempfile.mkstemp(prefix=".", dir=directory)
        os.close(handle)
        os.unlink(path)
    except OSError as exc:
        raise StateUnreadable(
            f"Cannot write into {directory}: {exc.strerror}; run as root (become: true), or choose a directory of your own"
        ) from exc


def _sync_directory(directory: str) -> None:
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove(path: str) -> None:
    """Remove a file if it is there."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as exc:
        raise StateUnreadable(f"Cannot remove {path}: {exc.strerror}") from exc


def read_json(path: str, remedy: str = _REMEDY) -> t.Any:
    """Return what a JSON file holds, None when there is none. Raises StateUnreadable with the remedy when it is corrupt."""
    text = read_text(path)
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError as exc:
        raise StateUnreadable(f"{path} is corrupt ({exc}); {remedy}") from exc


def write_json(path: str, document: t.Any) -> None:
    """Write a JSON file that a person can read, with its keys in their order: a daemon's cards are counted in it."""
    write_text(path, json.dumps(document, indent=2) + "\n", 0o600)
