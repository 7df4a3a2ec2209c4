# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. One error class per kind of trouble; every one becomes a module failure with its details."""

from __future__ import annotations

import typing as t


class SharingError(Exception):
    """Base of all errors: ``message`` says what was wanted, what stands in the way and what to do; ``details`` go into the result.

    ``certain`` is set where a driver refused, so that what was asked of it was surely not done.
    """

    certain = False

    def __init__(self, message: str, **details: t.Any) -> None:
        super().__init__(message)
        self.message = message
        self.details = details


class BadOption(SharingError):
    """An option's value is not usable; found before anything was changed."""

    def __init__(self, option: str, value: t.Any, problem: str, **details: t.Any) -> None:
        shown = f"'{value}'" if isinstance(value, str) else str(value)
        super().__init__(f"{option}: {shown}: {problem}", option=option, **details)


class DriverAbsent(SharingError):
    """There is no usable NVIDIA driver: not installed, not loaded, or its parts do not match."""


class NoGpu(SharingError):
    """The driver runs, but there is no such GPU."""


class GpuLost(SharingError):
    """The GPU no longer answers (fell off the bus, needs a reset or a reboot)."""


class NotSupported(SharingError):
    """The driver or the GPU cannot do this."""


class PermissionMissing(SharingError):
    """The driver or the operating system refuses this user."""


class InUse(SharingError):
    """Somebody holds what was to be changed; the details name who."""


class DoesNotFit(SharingError):
    """The host or the card is not suited for what was asked; found before anything was changed."""


class CommandFailed(SharingError):
    """A program gave an answer that cannot be understood or means failure."""


class CommandTimeout(SharingError):
    """A program did not end within its time limit and was ended."""


class NotReadBack(SharingError):
    """Everything reported success, but the state that was read back is not the wish."""


class ChangePending(SharingError):
    """The driver took the change, but it needs a reset or a reboot that the task did not allow."""


class LockTimeout(SharingError):
    """Another run holds the host's lock."""


class StateUnreadable(SharingError):
    """A saved state file is corrupt or cannot be read or written."""
