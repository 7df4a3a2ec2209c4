# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. Who starts and stops a daemon: this process itself, or systemd through nvidia-mps@NAME.service."""

from __future__ import annotations

import os
import re
import time
import typing as t

from .._command import Answer, Commands
from .._errors import CommandFailed, DoesNotFit
from .plan import Unit

TEMPLATE = "nvidia-mps@.service"
SYSTEMD_CONFIGURATION = "/etc/nvidia-mps"
_PROPERTIES = (
    "Id",
    "LoadState",
    "ActiveState",
    "MainPID",
    "UnitFileState",
    "NeedDaemonReload",
    "FragmentPath",
    "ExecMainStartTimestampMonotonic",
)


def unit_name(daemon: str) -> str:
    """Return the unit instance of a daemon."""
    return f"nvidia-mps@{daemon}.service"


class Systemd:
    """systemctl for our units."""

    def __init__(self, commands: Commands) -> None:
        self._commands = commands

    def units(self, daemons: t.Sequence[str]) -> dict[str, Unit]:
        """Return what systemd knows of the daemons' units."""
        if not daemons:
            return {}
        answer = self._run("show", f"--property={','.join(_PROPERTIES)}", *(unit_name(name) for name in daemons))
        blocks = [dict(re.findall(r"^(\w+)=(.*)$", block, re.MULTILINE)) for block in answer.out.strip().split("\n\n")]
        return {name: _unit(block) for name, block in zip(daemons, blocks)}

    def reload(self) -> None:
        """Let systemd read its unit files again."""
        self._must("daemon-reload")

    def start(self, daemon: str) -> None:
        """Start the unit afresh, also after it failed."""
        unit = unit_name(daemon)
        if self.units([daemon])[daemon].active == "failed":
            self._must("reset-failed", unit)
        self._must("restart", unit)

    def stop(self, daemon: str) -> None:
        """Stop the unit."""
        self._must("stop", unit_name(daemon))

    def enable(self, daemon: str) -> None:
        """Let the unit start at boot."""
        self._must("enable", unit_name(daemon))

    def disable(self, daemon: str) -> None:
        """Let the unit no longer start at boot."""
        self._must("disable", unit_name(daemon))

    def forget_failure(self, daemon: str) -> None:
        """Clear the failed state of a unit that is no longer wanted."""
        if self.units([daemon])[daemon].active == "failed":
            self._must("reset-failed", unit_name(daemon))

    def require_template(self, unit: Unit) -> None:
        """Refuse to go on without the unit template, which a role installs."""
        if not unit.loaded:
            raise DoesNotFit(
                f"The unit template {TEMPLATE} is not installed on this host; the role gpuops.sharing.single_card installs it, or use service: none"
            )

    def _must(self, *arguments: str) -> None:
        answer = self._run(*arguments)
        if answer.rc != 0:
            journal = self._journal(arguments[-1]) if arguments[-1].endswith(".service") else ""
            raise CommandFailed(f"systemctl {' '.join(arguments)} failed: {answer.text}{journal}", rc=answer.rc)

    def _run(self, *arguments: str) -> Answer:
        return self._commands.run(["systemctl", *arguments], limit=max(self._commands.timeout, 60))

    def _journal(self, unit: str) -> str:
        answer = self._commands.run(["journalctl", "--unit", unit, "--lines=10", "--output=cat", "--no-pager"])
        lines = " | ".join(line.strip() for line in answer.out.splitlines() if line.strip())
        return f" The unit's last words: {lines}" if answer.rc == 0 and lines else ""


def _unit(block: t.Mapping[str, str]) -> Unit:
    pid = int(block.get("MainPID") or 0)
    path = block.get("FragmentPath", "")
    return Unit(
        loaded=block.get("LoadState") == "loaded",
        active=block.get("ActiveState", "inactive"),
        main_pid=pid,
        enabled=block.get("UnitFileState") == "enabled",
        needs_reload=block.get("NeedDaemonReload") == "yes",
        restart_pending=bool(pid) and _newer(path, int(block.get("ExecMainStartTimestampMonotonic") or 0)),
    )


def _newer(path: str, started_us: int) -> bool:
    """Whether a unit file was changed after its process started (microseconds on the monotonic clock)."""
    try:
        changed = os.stat(path).st_mtime
        with open("/proc/uptime", encoding="ascii") as handle:
            uptime = float(handle.read().split()[0])
    except (OSError, ValueError):
        return False
    return changed > time.time() - uptime + started_us / 1e6 + 1
