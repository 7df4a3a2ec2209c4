# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The stand-in for nvidia-smi, loaded once and forked for each run: starting Python takes ten times as long as its work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import TracebackType

from _programs import STAND_INS
from mocked_machine import MockedMachine

Main = Callable[[list[str]], int]


def _run(main: Main, arguments: list[str], variables: dict[str, str]) -> dict[str, object]:
    """What a forked child of this process prints as nvidia-smi, and its exit status."""
    out, complaints = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        os.dup2(out[1], 1)
        os.dup2(complaints[1], 2)
        os.environ.update(variables)
        try:
            status = main(arguments)
        except BaseException:
            traceback.print_exc()
            status = 1
        sys.stdout.flush()
        os._exit(status)
    os.close(out[1])
    os.close(complaints[1])
    with os.fdopen(out[0]) as stdout, os.fdopen(complaints[0]) as stderr:
        printed, complained = stdout.read(), stderr.read()
    return {"stdout": printed, "stderr": complained, "returncode": os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}


def _serve() -> None:
    sys.path.insert(0, str(STAND_INS))
    main = import_module("_smi.main").main
    for line in sys.stdin:
        print(json.dumps(_run(main, *json.loads(line))), flush=True)


class ResidentSmi:
    """The stand-in on one machine; a context manager, and in the place of a program for MockedMachine.run."""

    def __init__(self, machine: MockedMachine) -> None:
        self._process = subprocess.Popen(
            [sys.executable, Path(__file__)],
            env={**machine.environment, "PYTHONPATH": str(Path(__file__).parent)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps([arguments, variables]) + "\n")
        self._process.stdin.flush()
        return subprocess.CompletedProcess(arguments, **json.loads(self._process.stdout.readline()))

    def __enter__(self) -> ResidentSmi:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()


if __name__ == "__main__":
    _serve()
