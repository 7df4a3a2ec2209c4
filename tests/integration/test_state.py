# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is remembered between runs, and the lock that keeps two runs apart."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from harness.machine import UUIDS, Machine
from harness.modules import Modules

ABSENT = {"name": "render", "state": "absent"}
CORRUPT = [
    b"",
    b"{",
    b"[]",
    b"\xff",
    b'{"version": 1}',
    b'{"version": 2}',
    b'{"version": 1, "daemons": {"render": {}}, "cards": {"x": {}}}',
]
OTHER = "GPU-00000000-1111-2222-3333-444444444444"


@contextmanager
def lock(machine: Machine) -> Iterator[None]:
    """Hold the host's lock as another run would."""
    machine.var.mkdir(mode=0o700, exist_ok=True)
    with open(machine.var / "lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


@pytest.mark.parametrize("module", ["nvidia_mps", "nvidia_compute_mode"])
def test_lock_held_by_another(machine: Machine, module: str) -> None:
    options = (
        {"mode": "prohibited"}
        if module == "nvidia_compute_mode"
        else {"daemons": [machine.daemon()], "service": "none"}
    )
    with lock(machine):
        with machine.untouched():
            refused = machine.run(module, timeout=0.2, **options)
            assert machine.run(module, timeout=0.2, check=True, **options).changed, "check mode needs no lock"
        assert refused["error"] == "LockTimeout"
        for part in (str(machine.var / "lock"), f"(pid {os.getpid()})", "0.2 s", "run again, or raise timeout"):
            assert part in refused.message
    assert machine.run(module, **options).changed


def test_a_run_waits_for_the_other(machine: Machine) -> None:
    with lock(machine):
        waiting = machine.start("nvidia_compute_mode", mode="prohibited")
        assert machine.compute_modes() == ["default", "default"]
    assert machine.finish(waiting).changed


def test_a_daemon_does_not_keep_the_lock(machine: Machine) -> None:
    assert machine.mps(machine.daemon()).changed
    assert len(machine.daemons()) == 1
    assert not machine.mps(machine.daemon(), timeout=5).changed


def test_two_runs_at_once_with_one_wish(machine: Machine) -> None:
    runs = [machine.start_mps(machine.daemon()) for _number in range(2)]
    results = [machine.finish(run) for run in runs]
    assert sorted(result.changed for result in results) == [False, True]
    assert machine.daemons() == [results[0]["daemons"][0]["pid"]]


def test_two_runs_at_once_with_two_wishes(machine: Machine) -> None:
    runs = [machine.start_mps(machine.daemon(name, gpus=[index])) for index, name in enumerate(("train", "infer"))]
    pids = sorted(machine.finish(run)["daemons"][0]["pid"] for run in runs)
    assert machine.daemons() == pids
    assert machine.mps(purge=True)["remaining"] == []
    assert machine.compute_modes() == ["default", "default"]


def test_two_runs_at_once_that_want_one_card(machine: Machine) -> None:
    runs = [machine.start_mps(machine.daemon(name)) for name in ("one", "two")]
    results = [machine.finish(run) for run in runs]
    assert sorted(result.failed for result in results) == [False, True]
    assert len(machine.daemons()) == 1


@pytest.mark.parametrize("file", ["daemons.json", "compute_modes.json"])
@pytest.mark.parametrize("content", CORRUPT)
@pytest.mark.parametrize("state", ["started", "absent"])
def test_corrupt_state(shared: Machine, file: str, content: bytes, state: str) -> None:
    path = shared.var / file
    good = path.read_bytes()
    path.write_bytes(content)
    with shared.untouched():
        refused = shared.mps(shared.daemon(state=state), force=True)
    path.write_bytes(good)
    assert refused["error"] == "StateUnreadable"
    assert file in refused.message
    assert "repair" in refused.message and "run again" in refused.message


@pytest.fixture(scope="module")
def shared(modules: Modules) -> Iterator[Machine]:
    """A machine with a daemon, which nothing here changes."""
    machine = Machine("a100-40gb-x2", modules)
    machine.mps(machine.daemon())
    yield machine
    machine.close()


def test_state_of_other_cards(machine: Machine) -> None:
    """As after a disk was moved to another host."""
    machine.mps(machine.daemon())
    machine.control("quit -t 1")
    for file in ("daemons.json", "compute_modes.json"):
        path = machine.var / file
        path.write_text(path.read_text().replace(UUIDS[0], OTHER))
    with machine.untouched():
        refused = machine.mps(machine.daemon())
    assert f"meant {OTHER} when daemon 'render' was set up and means {UUIDS[0]} now" in refused.message
    result = machine.mps(ABSENT)
    assert result.changed and f"{OTHER} is no longer in this host" in result.warnings
    assert [path.name for path in machine.var.iterdir()] == ["lock"]
    assert machine.mps(machine.daemon()).changed


def test_state_directory_that_others_may_write(machine: Machine) -> None:
    machine.var.mkdir()
    machine.var.chmod(0o777)
    with machine.untouched():
        refused = machine.mps(machine.daemon())
    for part in (str(machine.var), "may be written by others", "make it belong to root with mode 0700"):
        assert part in refused.message


def test_state_directory_that_is_not_writable(machine: Machine) -> None:
    machine.var.mkdir()
    machine.var.chmod(0o555)
    with machine.untouched():
        refused = machine.mps_as_somebody(machine.daemon(), state_directory=str(machine.var))
    assert refused["error"] == "PermissionMissing"
    for part in (str(machine.var / "lock"), "run as root (become: true), or set state_directory"):
        assert part in refused.message
