# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The playbook single_card and its role, with every value a string, as surveys and the command line give them."""

from __future__ import annotations

import pytest

from harness.machine import LABELS, UUIDS, Machine
from harness.playbook import Run, extra, playbook
from harness.real import Choice

PLAYBOOK = "gpuops.sharing.single_card"
STEADY_TASKS = 6
SHARE = "Share the card, or give it back"


def share(machine: Machine, *options: str, **variables: str | None) -> Run:
    """Run the playbook without systemd and, unless told otherwise, without becoming root."""
    given: dict[str, str | None] = {
        "gpuops_become": "false",
        "single_card_gpu": "0",
        "single_card_service": "none",
        "single_card_name": "render",
        "single_card_state_directory": str(machine.var),
        "single_card_pipe_directory": machine.pipe(),
        "single_card_log_directory": str(machine.folder / "log" / "render"),
        **variables,
    }
    return playbook(
        machine, PLAYBOOK, *options, *extra(**{key: value for key, value in given.items() if value is not None})
    )


@pytest.fixture(params=["stand-ins", "real"])
def choice(request: pytest.FixtureRequest, machine: Machine) -> Choice:
    return Choice(machine, request.param)


def test_there_again_and_back(machine: Machine, choice: Choice) -> None:
    limits = {"single_card_active_thread_percentage": "50", "single_card_memory_limit": "8G"}
    foretold = share(machine, "--check", "--diff", **limits)
    assert foretold.status == 0, foretold.output
    assert foretold.recap["changed"] == 1
    assert set(machine.files()) <= {"run"}
    assert (machine.daemons(), machine.counters()["setter_calls"]) == ([], 0)

    first = share(machine, "--diff", **limits)
    assert first.status == 0, first.output
    assert first.recap["changed"] == 1
    result = first.named(SHARE).result
    assert result["diff"] == foretold.named(SHARE).result["diff"]
    assert result["backend"] == choice.backend
    (daemon,) = result["daemons"]
    assert machine.daemons() == [daemon["pid"]]
    assert choice.is_running(daemon["pid"])
    assert daemon["gpus"] == [UUIDS[0]]
    assert daemon["default"] == {"active_thread_percentage": 50.0, "memory": {"0": "8G"}}
    assert machine.control("get_default_device_pinned_mem_limit 0") == "8G\n"
    assert machine.compute_modes() == ["exclusive_process", "default"]

    before = machine.counters()["setter_calls"]
    again = share(machine, **limits)
    assert again.status == 0, again.output
    assert again.recap["changed"] == 0
    assert again.recap["ok"] + again.recap["skipped"] <= STEADY_TASKS
    assert machine.counters()["setter_calls"] == before
    assert machine.daemons() == [daemon["pid"]]

    gone = share(machine, single_card_state="absent")
    assert gone.status == 0, gone.output
    assert gone.recap["changed"] == 1
    assert machine.daemons() == []
    assert machine.compute_modes() == ["default", "default"]
    assert set(machine.files()) <= {"run"}

    gone_again = share(machine, single_card_state="absent")
    assert gone_again.status == 0, gone_again.output
    assert gone_again.recap["changed"] == 0


def test_other_spellings_of_the_same_wish(machine: Machine) -> None:
    limits = {"single_card_active_thread_percentage": "25", "single_card_memory_limit": "10G"}
    first = share(machine, target="node", single_card_force="no", single_card_compute_mode="unchanged", **limits)
    assert first.status == 0, first.output
    limits = {"single_card_active_thread_percentage": "25.0", "single_card_memory_limit": "10g"}
    again = share(machine, target="gpu:!nobody", single_card_clients="", single_card_compute_mode="unchanged", **limits)
    assert again.status == 0, again.output
    assert again.recap["changed"] == 0, again.named(SHARE).result["steps"]
    assert machine.compute_modes() == ["default", "default"]


def test_a_client_is_in_the_way_unless_forced(machine: Machine) -> None:
    machine.mps(machine.daemon())
    client = machine.client()
    refused = share(machine, single_card_state="absent")
    assert refused.status == 2
    assert refused.recap["changed"] == 0
    assert f"pids {client.pid}" in refused.tasks[-1].result.message
    forced = share(machine, single_card_state="absent", single_card_force="true")
    assert forced.status == 0, forced.output
    assert machine.daemons() == []


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"single_card_gpu": "9"}, f"'9': there is no such GPU on this host; there are: {LABELS[0]}, {LABELS[1]}"),
        ({"single_card_state": "started"}, "single_card_state must be one of: present, absent, got: started"),
    ],
)
def test_bad_values(machine: Machine, variables: dict[str, str], message: str) -> None:
    with machine.untouched():
        refused = share(machine, **variables)
    assert refused.status == 2
    assert refused.recap["changed"] == 0
    assert message in refused.tasks[-1].result.message


def test_the_playbook_becomes_root_unless_told_not_to(machine: Machine) -> None:
    said = machine.folder / "bin" / "sudo.log"
    machine.program("sudo", f'echo "$*" >> {said}\nwhile [ "$1" != /bin/sh ]; do shift; done\nexec "$@"')
    assert share(machine, "--check").status == 0
    assert not said.exists()
    assert share(machine, "--check", gpuops_become=None).status == 0
    assert "-u root" in said.read_text()
