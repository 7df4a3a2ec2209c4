# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The checks that need an environment of their own: `nox -l` lists them, `nox -Re NAME` runs one."""

from __future__ import annotations

import pathlib
import shutil

import antsibull_nox
import nox
from antsibull_nox.sessions.ansible_test import add_ansible_test_session

# Where the Makefile links the collection under the name by which Ansible imports it.
TREE = str(pathlib.Path(__file__).parent / ".venv" / "collections")
ENVIRONMENT = {"PYTHONPATH": TREE, "ANSIBLE_COLLECTIONS_PATH": TREE}

antsibull_nox.load_antsibull_nox_toml()


def drop_scratch() -> None:
    """Remove ansible-test's own scratch folder: antsibull-nox 1.10.0 cannot copy it back."""
    shutil.rmtree("tests/output/.tmp", ignore_errors=True)


# ansible-core comes from PyPI and each environment is a venv: no image, no Galaxy.
# Sanity's rules (Python 3.9, no python3 in a shebang) are for what is shipped, and tests are not.
COMMANDS = {"sanity": ["--exclude", "tests/"], "units": ["--venv"]}
for core in ("2.19", "2.21"):
    for command, options in COMMANDS.items():
        add_ansible_test_session(
            name=f"ansible-test-{command}-{core}",
            description=f"ansible-test {command}, ansible-core {core}",
            ansible_test_params=[command, *options],
            ansible_core_version=core,
            ansible_core_source="pypi",
            callback_after=drop_scratch,
            default=False,
        )


@nox.session(python=["3.9", "3.10", "3.11", "3.12", "3.13"], default=False)
def units(session: nox.Session) -> None:
    """Run the unit tests on one Python, without Ansible: what modules are made of runs wherever a module may."""
    session.install("-q", "-r", "tests/requirements/units.txt")
    session.run("pytest", "-q", "tests/unit/plugins/module_utils", *session.posargs, env=ENVIRONMENT)


@nox.session(python=["3.11", "3.12", "3.13"], default=False)
def integration(session: nox.Session) -> None:
    """Run the integration tests that play playbooks, with the newest ansible-core for one Python."""
    session.install("-q", "-r", "tests/requirements/demo.txt", "-r", "tests/requirements/units.txt")
    chosen = session.posargs or ["-k", "steps or single_card or role or gpu_info"]
    session.run("pytest", "-q", "-n", "auto", "--dist", "worksteal", "tests/integration", *chosen, env=ENVIRONMENT)


if __name__ == "__main__":
    nox.main()
