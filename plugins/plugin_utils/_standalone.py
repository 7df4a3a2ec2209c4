# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. How the programs that run at boot, without Ansible, run commands."""

from __future__ import annotations

import os
import shutil
import subprocess
import typing as t

from ..module_utils._command import ENDED_BY_TIMEOUT, Answer, Commands, bounded
from ..module_utils._errors import CommandTimeout


def commands(timeout: float) -> Commands:
    """Return what runs commands as the modules do, each for so many seconds at the most."""

    def execute(
        argv: t.Sequence[str],
        stdin: str | None = None,
        environment: t.Mapping[str, str] | None = None,
        limit: float | None = None,
    ) -> Answer:
        bound = limit or timeout
        variables = {**os.environ, "LC_ALL": "C", **(environment or {})}
        done = subprocess.run(
            bounded(argv, bound), input=stdin, env=variables, capture_output=True, text=True, check=False
        )
        if done.returncode in ENDED_BY_TIMEOUT:
            raise CommandTimeout(f"'{' '.join(argv)}' did not end within {bound:g} s")
        return Answer(done.returncode, done.stdout, done.stderr)

    return Commands(execute, shutil.which, timeout)
