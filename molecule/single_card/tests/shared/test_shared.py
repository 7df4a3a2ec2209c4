# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""After the playbook, and again after a reboot: one card is shared, with its limits, and the other is left alone."""

from __future__ import annotations

import pytest
from sharing import PIPE_DIRECTORY, UNIT, Machine

CLIENT_FILE = "/etc/nvidia-mps/single-card.client.sh"


def test_unit_runs_and_starts_at_boot(machine: Machine) -> None:
    service = machine.host.service(UNIT)
    assert service.is_running
    assert service.is_enabled


def test_only_the_shared_card_is_exclusive(machine: Machine) -> None:
    shared = machine.shared_card()
    assert {card.number: card.compute_mode for card in machine.cards()} == {
        shared.number: "Exclusive_Process",
        1 - shared.number: "Default",
    }


def test_daemon_has_the_limits(machine: Machine) -> None:
    assert machine.limits() == "50.0\n8G"


def test_daemon_serves_the_shared_card_only(machine: Machine) -> None:
    environment = machine.host.check_output(f"tr '\\0' '\\n' < /proc/{machine.unit('MainPID')}/environ").splitlines()
    assert f"CUDA_VISIBLE_DEVICES={machine.shared_card().uuid}" in environment


def test_another_user_reaches_the_daemon(machine: Machine) -> None:
    nobody = "setpriv --reuid=65534 --regid=65534 --clear-groups"
    assert machine.control("get_default_active_thread_percentage", prefix=nobody) == "50.0"


def test_client_file_leads_to_the_daemon(machine: Machine) -> None:
    said = machine.host.check_output(f'. {CLIENT_FILE}; echo "$CUDA_MPS_PIPE_DIRECTORY"')
    assert said == PIPE_DIRECTORY


@pytest.mark.parametrize(
    ("path", "mode"),
    [
        ("/etc/nvidia-mps", 0o755),
        ("/etc/nvidia-mps/single-card.env", 0o644),
        ("/etc/nvidia-mps/single-card.commands", 0o644),
        (CLIENT_FILE, 0o644),
        ("/etc/systemd/system/nvidia-mps@.service", 0o644),
        ("/usr/local/sbin/gpuops-sharing-boot", 0o755),
        ("/var/lib/gpuops-sharing", 0o755),
        (PIPE_DIRECTORY, 0o755),
        ("/var/log/nvidia-mps/single-card", 0o700),
    ],
)
def test_files_belong_to_root(machine: Machine, path: str, mode: int) -> None:
    file = machine.host.file(path)
    assert (file.user, file.group, oct(file.mode)) == ("root", "root", oct(mode))


def test_unit_is_sandboxed(machine: Machine) -> None:
    # systemd calls what is below 5.0 medium; without the sandbox it is 9.6.
    answer = machine.host.run(f"systemd-analyze security --no-pager --threshold=49 {UNIT}")
    assert answer.rc == 0, answer.stdout.splitlines()[-1]


def test_nothing_is_left_for_systemd_to_do(machine: Machine) -> None:
    assert machine.unit("NeedDaemonReload") == "no"
    assert machine.failed_units() == ""
