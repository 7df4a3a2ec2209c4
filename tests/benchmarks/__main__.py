# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a steady state costs, as ratios within one run: machines are noisy, so no time is a test. `make bench` prints a table.

Run on the mocked driver with the stand-ins; tasks differ from run to run only in their module, and rounds alternate.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import typing as t
from pathlib import Path

HERE = Path(__file__).resolve().parent
MOCK_DRIVER = HERE.parent / "mock_driver" / "mock-driver"
INVENTORY = HERE.parent / "demo" / "inventory.yml"
MACHINE = "a100-40gb-x2"
TASKS, ROUNDS = 10, 3
MOST_TASKS = 6


def main() -> int:
    """Start the machine around this very script, then measure."""
    if "MOCK_DRIVER_STATE" not in os.environ:
        os.execv(MOCK_DRIVER, [str(MOCK_DRIVER), "run", MACHINE, "--", sys.executable, str(HERE)])
    home = Path(tempfile.mkdtemp(prefix="gpuops-bench-"))
    try:
        return measure(home)
    finally:
        shutil.rmtree(home)


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
    run(home, [("gpuops.sharing.nvidia_mps", tasks["gpuops.sharing.nvidia_mps"])])
    try:
        empty = min(seconds(home, []) for _round in range(ROUNDS))
        times: dict[str, list[float]] = {module: [] for module in tasks}
        for _round in range(ROUNDS):
            for module, options in tasks.items():
                times[module].append(seconds(home, [(module, options)] * TASKS))
        ping = min(times["ansible.builtin.ping"]) - empty
        print(
            f"Steady state, {TASKS} tasks a run, best of {ROUNDS}, the cost of an empty play taken off; 1.00 is ansible.builtin.ping"
        )
        for module in tasks:
            calls = count_calls(home, module, tasks[module])
            print(
                f"  {module:<36} {(min(times[module]) - empty) / ping:5.2f}   NVML calls {calls['calls']:3d}, of setters {calls['setter_calls']}"
            )
        return role(home, share)
    finally:
        absent: dict[str, t.Any] = {"daemons": [{"name": "bench", "state": "absent"}], "service": "none", **state}
        run(home, [("gpuops.sharing.nvidia_mps", absent)])


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
    output = ansible(
        "ansible-playbook", "-i", str(INVENTORY), "gpuops.sharing.single_card", "-e", json.dumps(variables)
    )
    ran, changed = (int(re.search(rf"{word}=(\d+)", output).group(1)) for word in ("ok", "changed"))  # type: ignore[union-attr]
    print(f"Role single_card, steady state: {ran} tasks run (at most {MOST_TASKS}), {changed} changed")
    return 0 if ran <= MOST_TASKS and changed == 0 else 1


def count_calls(home: Path, module: str, options: dict[str, t.Any]) -> dict[str, t.Any]:
    """Return how many NVML calls one task makes."""
    ansible(str(MOCK_DRIVER), "calls", "--reset")
    run(home, [(module, options)])
    return json.loads(ansible(str(MOCK_DRIVER), "calls", "--json"))


def seconds(home: Path, tasks: list[tuple[str, dict[str, t.Any]]]) -> float:
    """Return how long a play with these tasks takes."""
    begin = time.monotonic()
    run(home, tasks)
    return time.monotonic() - begin


def run(home: Path, tasks: list[tuple[str, dict[str, t.Any]]]) -> None:
    """Run a play of these tasks."""
    play = {"hosts": "gpu", "gather_facts": False, "tasks": [{module: options} for module, options in tasks]}
    path = home / "play.yml"
    path.write_text(json.dumps([play]), encoding="utf-8")
    ansible("ansible-playbook", "-i", str(INVENTORY), str(path))


def ansible(*command: str) -> str:
    """Run a command, stop with its output when it fails."""
    done = subprocess.run(
        command,
        env={**os.environ, "ANSIBLE_NOCOLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(done.stdout)
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
