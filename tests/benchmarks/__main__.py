# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a steady state costs, as ratios within one run: machines are noisy, so no time is a test. `make bench` prints a table.

Run on the mocked driver with the stand-ins; tasks differ from run to run only in their module, and rounds alternate.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import typing as t
from pathlib import Path

import planner
import plays

MACHINE = "a100-40gb-x2"
MOST_TASKS = 6


def main() -> int:
    """Start the machine around this very script, then measure."""
    if "MOCK_DRIVER_STATE" not in os.environ:
        os.execv(plays.MOCK_DRIVER, [str(plays.MOCK_DRIVER), "run", MACHINE, "--", sys.executable, str(plays.HERE)])
    with tempfile.TemporaryDirectory(prefix="gpuops-bench-") as home:
        status = measure(Path(home))
    cut = subprocess.run([sys.executable, plays.HERE / "mig.py"], check=False).returncode
    return status or cut or planner.main()


def measure(home: Path) -> int:
    """Print the figures; exit status 1 where the role has more tasks than promised."""
    share = {
        "name": "bench",
        "gpus": [0],
        "clients": 4,
        "pipe_directory": str(home / "pipe"),
        "log_directory": str(home / "log"),
    }
    state = {"state_directory": str(home / "state")}
    tasks: dict[str, dict[str, t.Any]] = {
        "ansible.builtin.ping": {},
        "gpuops.sharing.nvidia_gpu_info": {},
        "gpuops.sharing.nvidia_compute_mode": {"gpus": [1], "mode": "default", **state},
        "gpuops.sharing.nvidia_mps": {"daemons": [share], "service": "none", **state},
    }
    plays.run(home, [("gpuops.sharing.nvidia_mps", tasks["gpuops.sharing.nvidia_mps"])])
    try:
        plays.steady(home, tasks)
        return role(home, share)
    finally:
        absent: dict[str, t.Any] = {"daemons": [{"name": "bench", "state": "absent"}], "service": "none", **state}
        plays.run(home, [("gpuops.sharing.nvidia_mps", absent)])


def role(home: Path, share: dict[str, t.Any]) -> int:
    """Count the tasks that a steady-state run of the role runs on a host."""
    variables = {
        "single_card_gpu": "0",
        "single_card_name": "bench",
        "single_card_clients": "4",
        "single_card_service": "none",
        "gpuops_become": False,
        "single_card_state_directory": str(home / "state"),
        "single_card_pipe_directory": share["pipe_directory"],
        "single_card_log_directory": share["log_directory"],
    }
    output = plays.ansible(
        "ansible-playbook", "-i", str(plays.INVENTORY), "gpuops.sharing.single_card", "-e", json.dumps(variables)
    )
    ran, changed = (int(re.search(rf"{word}=(\d+)", output).group(1)) for word in ("ok", "changed"))  # type: ignore[union-attr]
    print(f"Role single_card, steady state: {ran} tasks run (at most {MOST_TASKS}), {changed} changed")
    return 0 if ran <= MOST_TASKS and changed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
