# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the tests of all scenarios ask a host, and how they play a playbook."""

from __future__ import annotations

import os
import pathlib
import re
import shlex
import subprocess
import time
import typing as t

from testinfra.host import Host

REPOSITORY = pathlib.Path(os.environ["MOLECULE_PROJECT_DIRECTORY"])
INVENTORY = REPOSITORY / "molecule" / "inventory.yml"


class System:
    """A host. All answers come from NVIDIA's real programs and from systemd."""

    service = ""  # the unit that the scenario is about

    def __init__(self, host: Host) -> None:
        self.host = host
        self.name = host.backend.get_hostname()

    def unit(self, name: str) -> str:
        """A property of the unit."""
        return self.host.run(f"systemctl show --property={name} --value {self.service}").stdout.strip()

    def journal(self, since: str = "-1h") -> str:
        return self.host.run(
            f"journalctl --unit={self.service} --since={shlex.quote(since)} --no-pager --lines=40"
        ).stdout

    def started(self, unit: str) -> int:
        """When a unit's program started, in microseconds of the host's clock."""
        return self._moment(unit, "ExecMainStartTimestampMonotonic")

    def ready(self, unit: str) -> int:
        """When a unit was up, so that those that wait for it could start."""
        return self._moment(unit, "ActiveEnterTimestampMonotonic")

    def _moment(self, unit: str, name: str) -> int:
        moment = int(self.host.check_output(f"systemctl show --property={name} --value {unit}"))
        assert moment > 0, f"{unit} did not start"
        return moment

    def failed_units(self) -> str:
        return self.host.check_output("systemctl --failed --no-legend")

    def seen(self, moment: str) -> str:
        """What nvidia-smi showed of the cards at a moment of the boot, or when a unit started (molecule/common/driver.yml)."""
        return self.host.file(f"/run/seen/{moment}").content_string

    def look(self) -> str:
        """The same as it is now."""
        self.host.check_output("look now")
        return self.seen("now")


def await_true(condition: t.Callable[[], bool], seconds: float = 20) -> bool:
    """Ask until it holds, at most so long."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


class Played(t.NamedTuple):
    """What a playbook did: for each host how many tasks changed something and how many failed or did not reach it, and all that it said."""

    recap: dict[str, tuple[int, int]]
    output: str


def play(playbook: str, *options: str) -> Played:
    """Play a playbook of the repository on all hosts."""
    command = ["ansible-playbook", "--inventory", str(INVENTORY), playbook, *options]
    environment = {**os.environ, "ANSIBLE_FORCE_COLOR": "0", "ANSIBLE_NOCOLOR": "1"}  # Molecule forces colours
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    found = re.findall(r"^(gpuops-\S+)\s.*changed=(\d+)\s+unreachable=(\d+)\s+failed=(\d+)", done.stdout, re.MULTILINE)
    recap = {host: (int(changed), int(unreachable) + int(failed)) for host, changed, unreachable, failed in found}
    return Played(recap, done.stdout + done.stderr)


NOTHING_CHANGED = {"gpuops-deb12": (0, 0), "gpuops-deb13": (0, 0)}
