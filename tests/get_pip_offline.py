# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Stand-in for ansible-test's get-pip.py: unpacks the pip that came with Python, which is quicker than installing it."""

from __future__ import annotations

import ensurepip
import pathlib
import sysconfig
import zipfile

# Debian keeps the wheels that ensurepip installs in a folder of its own.
FOLDERS = [sysconfig.get_config_var("WHEEL_PKG_DIR"), pathlib.Path(ensurepip.__file__).parent / "_bundled"]
WHEEL = next(wheel for folder in FOLDERS if folder for wheel in pathlib.Path(folder).glob("pip-*.whl"))
with zipfile.ZipFile(WHEEL) as archive:
    archive.extractall(sysconfig.get_path("purelib"))
