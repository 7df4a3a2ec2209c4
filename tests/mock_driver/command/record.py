# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What was asked of the library: counters of calls, and the trace of single ones."""

from __future__ import annotations

import json
import time
from argparse import Namespace
from ctypes import addressof, memset, sizeof
from typing import Any

from command.show import table
from library import layout
from library.state import nvml, open_state


def counts(state: layout.State) -> dict[str, Any]:
    """Calls of each function that was called; those whose `setter` is true are there to change the machine."""
    setters = set(nvml()["setters"])
    functions = {
        name: {"calls": count.calls, "failed": count.failed, "changes": count.changes, "setter": name in setters}
        for name, count in zip(nvml()["functions"], state.functions)
        if count.calls
    }
    return {
        "calls": sum(count["calls"] for count in functions.values()),
        "setter_calls": sum(count["calls"] for count in functions.values() if count["setter"]),
        "changes": sum(count["changes"] for count in functions.values()),
        "resets": sum(state.gpus[index].resets for index in range(state.gpu_count)),
        "functions": functions,
    }


def calls(options: Namespace) -> int:
    with open_state(options.state) as state:
        found = counts(state)
        if options.reset:
            memset(addressof(state.functions), 0, sizeof(state.functions))
            for gpu in state.gpus:
                gpu.resets = 0
            return 0
    if options.json:
        print(json.dumps(found, indent=1))
        return 0
    rows = [["CALLS", "FAILED", "CHANGES", "", "FUNCTION"]]
    for name, count in found["functions"].items():
        mark = "setter" if count["setter"] else ""
        rows.append([str(count["calls"]), str(count["failed"]), str(count["changes"]), mark, name])
    print(table(rows))
    print(f"{found['calls']} calls, {found['setter_calls']} of setters, {found['changes']} changed the machine")
    if found["resets"]:
        print(f"{found['resets']} resets of cards")
    return 0


def trace(options: Namespace) -> int:
    with open_state(options.state) as state:
        if options.verb == "show":
            lines = list(trace_lines(state))
        else:
            state.tracing = options.verb == "on"
            if options.verb == "on":
                state.trace_count = 0
            lines = []
    print(*lines, sep="\n", end="\n" if lines else "")
    return 0


def trace_lines(state: layout.State) -> list[str]:
    functions, errors = nvml()["functions"], {code: name for name, code in nvml()["errors"].items()}
    first = max(0, state.trace_count - layout.MAX_TRACE)
    lines = [f"({first} older calls are no longer kept)"] if first else []
    for number in range(first, state.trace_count):
        entry = state.trace[number % layout.MAX_TRACE]
        seconds, rest = divmod(entry.time_ns, 10**9)
        clock = time.strftime("%H:%M:%S", time.localtime(seconds)) + f".{rest // 1000:06d}"
        gpu = "" if entry.gpu == layout.ANY else f" GPU {entry.gpu}"
        lines.append(f"{clock} {entry.pid} {functions[entry.function]}{gpu} = {errors.get(entry.result, entry.result)}")
    return lines
