# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Stand-in for ansible-test's get-pip.py: Python's bundled pip, then the pip that was asked for from PyPI."""

from __future__ import annotations

import subprocess
import sys

WANTED = [argument for argument in sys.argv[1:] if not argument.startswith("--no-")]
subprocess.check_call([sys.executable, "-m", "ensurepip"], stdout=subprocess.DEVNULL)
subprocess.check_call([sys.executable, "-m", "pip", "install", "-q", *WANTED])
