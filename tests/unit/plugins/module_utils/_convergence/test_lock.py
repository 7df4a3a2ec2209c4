# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One run at a time; who waits too long is told for whom."""

from __future__ import annotations

import os
import pathlib
import subprocess
import threading

import pytest
from ansible_collections.gpuops.sharing.plugins.module_utils._convergence import lock
from ansible_collections.gpuops.sharing.plugins.module_utils._convergence.lock import host_lock
from ansible_collections.gpuops.sharing.plugins.module_utils._errors import (
    LockTimeout,
    PermissionMissing,
    StateUnreadable,
)

NOBODY = 65534


@pytest.fixture
def state(tmp_path: pathlib.Path) -> str:
    return str(tmp_path / "state")


def test_the_second_run_is_told_who_holds_the_lock(state: str) -> None:
    with host_lock(state, 0), pytest.raises(LockTimeout) as failure, host_lock(state, 0.1):
        raise AssertionError("both hold the lock")
    assert failure.value.message == (
        f"Another run holds the host's lock {state}/lock (pid {os.getpid()}) for longer than 0.1 s; let it end and run again, or raise timeout"
    )
    assert failure.value.details == {"pid": str(os.getpid())}


def test_the_lock_is_free_after_a_run_also_after_one_that_failed(state: str) -> None:
    with pytest.raises(ZeroDivisionError), host_lock(state, 0):
        raise ZeroDivisionError
    with host_lock(state, 0):
        pass


def test_the_second_run_goes_on_when_the_first_has_ended(state: str) -> None:
    order: list[str] = []

    def second() -> None:
        with host_lock(state, 30):
            order.append("second")

    waiting = threading.Thread(target=second)
    with host_lock(state, 0):
        waiting.start()
        order.append("first")
    waiting.join(30)
    assert order == ["first", "second"]


def test_a_child_that_lives_on_does_not_keep_the_lock(state: str) -> None:
    with host_lock(state, 0):
        child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, close_fds=False)
    try:
        with host_lock(state, 0):
            assert child.poll() is None
    finally:
        child.communicate()


def test_the_directory_of_a_lock_is_for_its_owner_only(state: str) -> None:
    with host_lock(state, 0):
        assert os.stat(state).st_mode & 0o777 == 0o700
        assert os.stat(f"{state}/lock").st_mode & 0o777 == 0o600


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_directory_that_others_may_write_is_refused(state: str, mode: int) -> None:
    os.mkdir(state)
    os.chmod(state, mode)
    with (
        pytest.raises(
            StateUnreadable, match=f"^{state} may be written by others, .* make it belong to root with mode 0700$"
        ),
        host_lock(state, 0),
    ):
        pass


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a directory of another user")
def test_a_directory_of_another_user_is_refused(state: str) -> None:
    os.mkdir(state)
    os.chown(state, NOBODY, NOBODY)
    with pytest.raises(StateUnreadable, match="may be written by others"), host_lock(state, 0):
        pass


def test_a_lock_that_leads_elsewhere_is_refused(state: str) -> None:
    os.mkdir(state, 0o700)
    os.symlink(f"{state}/elsewhere", f"{state}/lock")
    with (
        pytest.raises(PermissionMissing, match=f"^Cannot take the host's lock {state}/lock: Too many levels"),
        host_lock(state, 0),
    ):
        pass
    assert not os.path.exists(f"{state}/elsewhere")


def test_a_directory_that_cannot_be_made(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(
            PermissionMissing, match=r"run as root \(become: true\), or set state_directory to a directory of your own$"
        ),
        host_lock(str(tmp_path / "file" / "state"), 0),
    ):
        pass


def test_a_state_directory_of_ones_own_brings_its_own_lock() -> None:
    assert lock.lock_directory("/var/lib/gpuops-sharing") == "/run/gpuops-sharing"
    assert lock.lock_directory("/srv/state") == "/srv/state"
