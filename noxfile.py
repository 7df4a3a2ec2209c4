# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The checks that need an environment of their own: `nox -l` lists them, `nox -Re NAME` runs one."""

from __future__ import annotations

import shutil

import antsibull_nox
import nox
from antsibull_nox.sessions.ansible_test import add_ansible_test_session

antsibull_nox.load_antsibull_nox_toml()


def drop_scratch() -> None:
    """Remove ansible-test's own scratch folder: antsibull-nox 1.10.0 cannot copy it back."""
    shutil.rmtree("tests/output/.tmp", ignore_errors=True)


# ansible-core comes from PyPI and each environment is a venv: no image, no Galaxy.
for core in ("2.19", "2.21"):
    for command, options in (("sanity", []), ("units", ["--venv"])):
        add_ansible_test_session(
            name=f"{command}-{core}",
            description=f"ansible-test {command}, ansible-core {core}",
            ansible_test_params=[command, "-v", *options],
            ansible_core_version=core,
            ansible_core_source="pypi",
            callback_after=drop_scratch,
            default=False,
        )


if __name__ == "__main__":
    nox.main()
