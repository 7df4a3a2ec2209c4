# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What it costs to cut eight A100 from off to 56 instances, beside a plain pynvml script that does the same, and what a matching state costs.

Each is run as a process of its own on the mocked driver, in rounds that alternate; times are of this computer, so only their ratio tells
something. The mock answers at once: on a card, whose driver takes its time for each change, what is between the calls counts for less.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import mig_module
import plays
import pynvml

MACHINE, CARDS, EACH = "dgx-a100", 8, 7
LEAST = CARDS + 2 * CARDS * EACH  # one call for each mode, GPU instance and compute instance
WISHED_CALLS, WISHED_RATIO = 250, 1.5
ROUNDS = 7


def take_back() -> None:
    """Whole cards again."""
    mock_driver("reboot")
    pynvml.nvmlInit()
    for index in range(CARDS):
        pynvml.nvmlDeviceSetMigMode(pynvml.nvmlDeviceGetHandleByIndex(index), 0)
    pynvml.nvmlShutdown()


def mock_driver(*arguments: str) -> str:
    return subprocess.run([plays.MOCK_DRIVER, *arguments], check=True, capture_output=True, text=True).stdout


def measure(name: str) -> tuple[float, dict[str, int]]:
    """Run a script; return its seconds, and the NVML calls that it makes."""
    mock_driver("calls", "--reset")
    begin = time.perf_counter()
    subprocess.run([sys.executable, plays.HERE / f"{name}.py"], check=True)
    seconds = time.perf_counter() - begin
    return seconds, json.loads(mock_driver("calls", "--json"))


def show(name: str, calls: dict[str, int], ratio: float) -> None:
    print(f"  {name:<52} {ratio:6.2f}   NVML calls {calls['calls']:5d}, of setters {calls['setter_calls']:3d}")


def report() -> int:
    """Print the figures; exit status 1 where more is changed than has to be."""
    times: dict[str, list[float]] = {"mig_plain": [], "mig_module": [], "again": []}
    calls: dict[str, dict[str, int]] = {}
    for _round in range(ROUNDS):
        for name in times:
            if name != "again":
                take_back()
            seconds, calls[name] = measure("mig_module" if name == "again" else name)
            times[name].append(seconds)
    base = min(times["mig_plain"])
    print(
        f"{CARDS} A100 from off to {CARDS * EACH} instances, as processes, best of {ROUNDS}; 1.00 is a plain pynvml script that does the same"
    )
    show("the plain script", calls["mig_plain"], 1.0)
    show("nvidia_mig's own code", calls["mig_module"], min(times["mig_module"]) / base)
    show("the same once more, when nothing differs", calls["again"], min(times["again"]) / base)
    print(
        f"  {LEAST} calls of setters are the least possible. Wished were a ratio of at most {WISHED_RATIO}, and at most {WISHED_CALLS} NVML calls."
    )
    print(
        f"  The latter cannot be: beside {LEAST} changing calls, each of {CARDS * EACH} instances takes at least three to be read back "
        f"(place, compute instance, UUID),\n  which makes {LEAST + 3 * CARDS * EACH} before anything was looked at."
    )
    with tempfile.TemporaryDirectory(prefix="gpuops-bench-") as home:
        options = {"layouts": [mig_module.WISH], "state_directory": f"{home}/state"}
        plays.steady(Path(home), {"ansible.builtin.ping": {}, "gpuops.sharing.nvidia_mig": options})
    return 0 if (calls["mig_module"]["setter_calls"], calls["again"]["setter_calls"]) == (LEAST, 0) else 1


def main() -> int:
    """Start the machine around this very script, where no other test's MPS daemons are seen, then measure."""
    if os.environ.get("GPUOPS_BENCH") != MACHINE:
        user = [] if os.getuid() == 0 else ["--user", "--map-root-user"]
        alone = ["unshare", *user, "--pid", "--fork", "--kill-child", "--mount-proc"]
        command = [str(plays.MOCK_DRIVER), "run", MACHINE, "--", sys.executable, str(Path(__file__).resolve())]
        return subprocess.run([*alone, *command], env={**os.environ, "GPUOPS_BENCH": MACHINE}, check=False).returncode
    return report()


if __name__ == "__main__":
    sys.exit(main())
