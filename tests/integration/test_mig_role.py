# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The playbook mig and its role, with every value a string, and the program that brings instances back at boot."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from ansible_collections.gpuops.sharing.plugins.lookup import program

from harness.machine import LABELS, UUIDS
from harness.mig import ALONE, MigMachine
from harness.modules import ROOT
from harness.playbook import Run, playbook

PLAYBOOK = "gpuops.sharing.mig"
STEADY_TASKS = 7  # with the check of the variables
LAYOUTS = "[{gpus: [0], instances: [{profile: 1g.5gb, count: 2}, {profile: 3g.20gb}]}]"
CUT = "Cut the cards, or make them whole again"


def cut(machine: MigMachine, *options: str, **variables: str) -> Run:
    """Run the playbook without becoming root, with what it would install in the machine's own folder."""
    given = {
        "gpuops_become": "false",
        "mig_layouts": LAYOUTS,
        "mig_service": "none",
        "mig_state_directory": str(machine.var),
        **{f"__mig_{name}": str(installed(machine) / name) for name in ("program", "unit", "wants", "saved")},
        **variables,
    }
    installed(machine).mkdir(exist_ok=True)
    return playbook(machine, PLAYBOOK, *options, "-e", json.dumps(given))


def installed(machine: MigMachine) -> Path:
    return machine.folder / "bin" / "installed"


def test_there_again_and_back(mig_machine: MigMachine) -> None:
    foretold = cut(mig_machine, "--check", "--diff")
    assert foretold.status == 0, foretold.output
    assert foretold.recap["changed"] == 1
    assert (mig_machine.mode(), mig_machine.counters()["setter_calls"]) == ((False, False), 0)
    first = cut(mig_machine, "--diff")
    assert first.status == 0, first.output
    assert first.recap["changed"] == 1
    assert first.named(CUT).result["diff"] == foretold.named(CUT).result["diff"]
    assert sorted(one.profile for one in mig_machine.instances()) == ["1g.5gb", "1g.5gb", "3g.20gb"]
    calls = mig_machine.counters()["setter_calls"]
    again = cut(mig_machine)
    assert (again.status, again.recap["changed"]) == (0, 0)
    gone = cut(mig_machine, mig_state="absent")
    assert (gone.status, gone.recap["changed"]) == (0, 1), gone.output
    assert (mig_machine.mode(), mig_machine.places()) == ((False, False), [])
    assert mig_machine.counters()["setter_calls"] == 2 * calls
    assert cut(mig_machine, mig_state="absent").recap["changed"] == 0
    assert list(installed(mig_machine).iterdir()) == []


def test_with_what_brings_the_instances_back(mig_machine: MigMachine) -> None:
    foretold = cut(mig_machine, "--check", mig_service="systemd")
    assert (foretold.status, foretold.recap["changed"]) == (0, 4), foretold.output
    assert list(installed(mig_machine).iterdir()) == []
    first = cut(mig_machine, mig_service="systemd")
    assert (first.status, first.recap["changed"]) == (0, 4), first.output
    again = cut(mig_machine, mig_service="systemd")
    assert (again.status, again.recap["changed"]) == (0, 0), again.output
    assert again.recap["ok"] <= STEADY_TASKS

    folder = installed(mig_machine)
    assert os.readlink(folder / "wants") == str(folder / "unit")
    (command,) = (line[10:] for line in (folder / "unit").read_text().splitlines() if line.startswith("ExecStart="))
    assert command.split() == [str(folder / "program"), str(folder / "saved"), str(mig_machine.var)]
    before = mig_machine.instances()
    mig_machine.mock_driver("reboot")
    assert mig_machine.instances() == []
    status, output = mig_machine.execute(command.split(), mig_machine.environment)
    assert (status, output) == (0, f"{UUIDS[0]}: as written down\n")
    assert mig_machine.instances() == before, "with the same UUIDs"

    other = [{"gpus": [1], "instances": [{"profile": "7g.40gb"}]}]
    assert cut(mig_machine, mig_service="systemd", mig_layouts=json.dumps(other)).status == 0
    gone = cut(mig_machine, mig_service="systemd", mig_state="absent")
    assert gone.status == 0, gone.output
    assert mig_machine.mode() == (False, False)
    (left,) = json.loads((folder / "saved").read_text())["layouts"]
    assert left["gpus"] == [UUIDS[1]]
    assert len(list(folder.iterdir())) == 4, "the other card is to come back"
    last = cut(mig_machine, mig_service="systemd", mig_state="absent", mig_layouts=json.dumps(other))
    assert last.status == 0, last.output
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        (
            {"mig_layouts": "[{gpus: [9]}]"},
            f"'9': there is no such GPU on this host; there are: {LABELS[0]}, {LABELS[1]}",
        ),
        ({"mig_layouts": "[{gpus: [0], instances: [{profile: 1g.10g}]}]"}, "did you mean 1g.10gb?"),
        ({"mig_state": "started"}, "value of mig_state must be one of: present, absent, got: started"),
    ],
)
def test_bad_values(mig_machine: MigMachine, variables: dict[str, str], message: str) -> None:
    with mig_machine.untouched():
        refused = cut(mig_machine, **variables)
    assert (refused.status, refused.recap["changed"]) == (2, 0)
    assert message in refused.tasks[-1].result.message


def test_purge_protect_and_reset_are_handed_on(new_mig_machine: Callable[[str], MigMachine]) -> None:
    machine = new_mig_machine("a100-reset-needed")
    assert cut(machine, mig_allow_reset="yes").recap["changed"] == 1
    (kept,) = (one for one in machine.instances() if one.profile == "3g.20gb")
    what = {"mig_purge": "true", "mig_protect": f"0/{kept.id}"}
    refused = cut(machine, mig_layouts="[{gpus: [0], instances: []}]", **what)
    assert "protected by this task" in refused.tasks[-1].result.message
    assert cut(machine, mig_layouts="[{gpus: [0], instances: [{profile: 3g.20gb}]}]", **what).recap["changed"] == 1
    assert machine.instances() == [kept]


@pytest.fixture
def boot(tmp_path: Path) -> Path:
    """The packed program."""
    path = tmp_path / "mig.pyz"
    path.write_bytes(program.pack((ROOT / "roles" / "mig" / "files" / "boot.py").read_text(), sys.executable))
    path.chmod(0o755)
    return path


def bring_back(machine: MigMachine, boot: Path, saved: object) -> tuple[int, str]:
    file = boot.with_name("layouts.json")
    file.write_text(saved if isinstance(saved, str) else json.dumps(saved))
    return machine.execute([str(boot), str(file), str(machine.var)], machine.environment)


@pytest.mark.parametrize("name", ["a100-40gb-x2", "h100-pcie"])
def test_boot_of_each_generation(new_mig_machine: Callable[[str], MigMachine], boot: Path, name: str) -> None:
    machine = new_mig_machine(name)
    profile = {"a": "3g.20gb", "h": "3g.40gb"}[name[0]]
    parts = {"profile": profile, "compute_instances": [f"1c.{profile}"] * 2}
    saved = {"layouts": machine.cut(parts, profile, gpu="all")["layouts"]}
    before = [machine.instances(gpu) for gpu in (0, 1)]
    machine.mock_driver("reboot")
    assert machine.mode() == ((True, True) if name[0] == "a" else (False, False))
    assert bring_back(machine, boot, saved)[0] == 0
    assert [machine.instances(gpu) for gpu in (0, 1)] == before
    with machine.untouched():
        assert bring_back(machine, boot, saved)[0] == 0


def test_boot_with_a_lost_card(mig_machine: MigMachine, boot: Path) -> None:
    saved = {"layouts": mig_machine.cut("3g.20gb", gpu="all")["layouts"]}
    mig_machine.mock_driver("reboot")
    mig_machine.mock_driver("lose", "0")
    status, output = bring_back(mig_machine, boot, saved)
    assert status == 1
    assert f"'{UUIDS[0]}'" in output and f"{UUIDS[1]}: as written down" in output
    assert [one.profile for one in mig_machine.instances(1)] == ["3g.20gb"]


def test_boot_waits_but_once_for_a_driver_that_does_not_answer(mig_machine: MigMachine, boot: Path) -> None:
    """What waits for the unit would wait for each card."""
    saved = {"layouts": mig_machine.cut("3g.20gb", gpu="all")["layouts"]}
    assert len(saved["layouts"]) == 2
    mig_machine.mock_driver("fault", "nvmlDeviceGetCount", "TIMEOUT")
    status, output = bring_back(mig_machine, boot, saved)
    assert (status, output) == (1, "Cannot list the GPUs: Timeout\n")


def test_boot_tells_each_card_at_once(mig_machine: MigMachine, boot: Path) -> None:
    """Where the next card hangs, systemd ends the program, and what it had not told yet would be lost."""
    saved = {"layouts": mig_machine.cut("3g.20gb", gpu="all")["layouts"]}
    mig_machine.mock_driver("reboot")
    mig_machine.mock_driver("fault", "nvmlDeviceCreateGpuInstanceWithPlacement", "HANG", "--gpu", "1")
    file = boot.with_name("layouts.json")
    file.write_text(json.dumps(saved))
    command = [*ALONE, str(boot), str(file), str(mig_machine.var)]
    environment = {**mig_machine.environment, "PYTHONUNBUFFERED": ""}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        told, _, _ = select.select([process.stdout], [], [], 10)
        process.kill()
        assert told
        assert process.stdout.read().decode() == f"{UUIDS[0]}: as written down\n"


def test_boot_with_one_entry_for_several_cards(mig_machine: MigMachine, boot: Path) -> None:
    (entry, _other) = mig_machine.cut("3g.20gb", gpu="all")["layouts"]
    mig_machine.mock_driver("reboot")
    mig_machine.mock_driver("lose", "0")
    status, output = bring_back(mig_machine, boot, {"layouts": [{**entry, "gpus": list(UUIDS)}]})
    assert status == 1
    assert f"{UUIDS[1]}: as written down" in output
    assert [one.profile for one in mig_machine.instances(1)] == ["3g.20gb"]


def test_boot_destroys_nothing(mig_machine: MigMachine, boot: Path) -> None:
    saved = {"layouts": mig_machine.cut("7g.40gb")["layouts"]}
    mig_machine.cut("1g.5gb", purge=True)
    with mig_machine.untouched():
        status, output = bring_back(mig_machine, boot, saved)
    assert status == 1
    assert "purge: true would remove" in output


@pytest.mark.parametrize("saved", ["", "{", "[]", '{"layouts": 3}'])
def test_boot_with_a_file_that_cannot_be_read(mig_machine: MigMachine, boot: Path, saved: str) -> None:
    with mig_machine.untouched():
        status, output = bring_back(mig_machine, boot, saved)
    assert status == 1
    assert output.startswith(str(boot.with_name("layouts.json")))
    assert output.endswith("; move it away, and run the role mig again for all cards that it had\n")
