# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Clients of a daemon: never ended unless that was asked for."""

from __future__ import annotations

from harness.machine import Machine


def test_absent_is_refused_while_a_client_lives(machine: Machine) -> None:
    machine.mps(machine.daemon())
    client = machine.client()
    with machine.untouched():
        refused = machine.mps(machine.daemon(state="absent"))
    assert refused["error"] == "InUse"
    assert refused["clients"] == [client.pid]
    assert f"pids {client.pid}" in refused.message and "force" in refused.message
    assert client.poll() is None
