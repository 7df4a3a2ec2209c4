# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""After limits and unit were changed in place, without a restart."""

from __future__ import annotations

from sharing import Machine
from systems import await_true


def test_daemon_has_the_new_limits(machine: Machine) -> None:
    assert machine.limits() == "25.0\n4G"


def test_killed_daemon_comes_back_with_the_new_limits(machine: Machine) -> None:
    killed = machine.unit("MainPID")
    machine.host.check_output(f"kill -9 {killed}")
    assert await_true(lambda: machine.unit("ActiveState") == "active" and machine.unit("MainPID") != killed)
    assert machine.limits() == "25.0\n4G"


def test_systemd_knows_the_new_unit(machine: Machine) -> None:
    assert "# older" not in machine.host.file("/etc/systemd/system/nvidia-mps@.service").content_string
    assert machine.unit("NeedDaemonReload") == "no"


def test_lock_is_out_of_other_users_reach(machine: Machine) -> None:
    directory = machine.host.file("/run/gpuops-sharing")
    assert (directory.user, oct(directory.mode)) == ("root", oct(0o700))
