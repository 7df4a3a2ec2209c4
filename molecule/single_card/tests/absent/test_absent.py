# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Giving back what was given back changes nothing."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess

REPOSITORY = pathlib.Path(os.environ["MOLECULE_PROJECT_DIRECTORY"])


def test_absent_again_changes_nothing() -> None:
    command = ["ansible-playbook", "--inventory", "molecule/inventory.yml", "molecule/single_card/absent.yml"]
    environment = {**os.environ, "ANSIBLE_FORCE_COLOR": "0", "ANSIBLE_NOCOLOR": "1"}  # Molecule forces colours
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    recap = re.findall(r"^(gpuops-\S+)\s.*changed=(\d+).*failed=(\d+)", done.stdout, re.MULTILINE)
    assert recap == [("gpuops-deb12", "0", "0"), ("gpuops-deb13", "0", "0")], done.stdout + done.stderr
