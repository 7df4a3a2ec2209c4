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
import typing as t
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


class Run(t.NamedTuple):
    """A run of a script."""

    seconds: float
    calls: dict[str, int]
    table: str  # the instances as it read them


def measure(name: str) -> Run:
    """Run a script."""
    mock_driver("calls", "--reset")
    begin = time.perf_counter()
    done = subprocess.run([sys.executable, plays.HERE / f"{name}.py"], check=True, stdout=subprocess.PIPE, text=True)
    return Run(time.perf_counter() - begin, json.loads(mock_driver("calls", "--json")), done.stdout)


def show(name: str, runs: t.Sequence[Run], base: float) -> None:
    ratio = min(run.seconds for run in runs) / base
    calls = runs[0].calls
    print(f"  {name:<52} {ratio:6.2f}   NVML calls {calls['calls']:5d}, of setters {calls['setter_calls']:3d}")


def report() -> int:
    """Print the figures; exit status 1 where more is changed than has to be, or the scripts read different instances."""
    runs: dict[str, list[Run]] = {"mig_plain": [], "mig_module": [], "again": []}
    for _round in range(ROUNDS):
        for name in runs:
            if name != "again":
                take_back()
            runs[name].append(measure("mig_module" if name == "again" else name))
    base = min(run.seconds for run in runs["mig_plain"])
    print(
        f"{CARDS} A100 from off to {CARDS * EACH} instances, as processes, best of {ROUNDS}; 1.00 is a plain pynvml script that does the same"
    )
    show("the plain script", runs["mig_plain"], base)
    show("nvidia_mig's own code", runs["mig_module"], base)
    show("the same once more, when nothing differs", runs["again"], base)
    print(
        f"  {LEAST} calls of setters are the least possible. Wished were a ratio of at most {WISHED_RATIO}, and at most {WISHED_CALLS} NVML calls."
    )
    print(
        f"  The latter cannot be: beside {LEAST} changing calls, each of {CARDS * EACH} MIG devices takes at least three to be read back "
        f"(handle, GPU instance, UUID),\n  which makes {LEAST + 3 * CARDS * EACH} before anything else was looked at."
    )
    with tempfile.TemporaryDirectory(prefix="gpuops-bench-") as home:
        options = {"layouts": [mig_module.WISH], "state_directory": f"{home}/state"}
        plays.steady(Path(home), {"ansible.builtin.ping": {}, "gpuops.sharing.nvidia_mig": options})
    setters = [runs[name][0].calls["setter_calls"] for name in ("mig_module", "again")]
    return 0 if setters == [LEAST, 0] and len({run.table for some in runs.values() for run in some}) == 1 else 1


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
