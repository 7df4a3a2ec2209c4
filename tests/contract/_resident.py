# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Python programs, loaded once and forked for each run: starting Python takes ten times as long as their work."""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import os
import select
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
MOCK_DRIVER = HERE.parent / "mock_driver"
TREE = HERE.parents[1] / ".venv" / "collections"
# Longer than anything here takes on a busy machine: a test that hangs fails.
TIMEOUT = 60


def _mock_driver() -> int | None:
    return int(importlib.import_module("command.__main__").main())


def _nvidia_smi() -> int | None:
    return int(importlib.import_module("_smi.main").main(sys.argv[1:]))


def _backend() -> int | None:
    importlib.import_module("backend_driver").main()
    return None


def _text() -> int | None:
    exec(sys.argv[1], {"__name__": "__main__"})
    return None


PROGRAMS: dict[str, Callable[[], int | None]] = {
    "mock-driver": _mock_driver,
    "nvidia-smi": _nvidia_smi,
    "backend": _backend,
    "text": _text,  # a Python program as the first argument
}


class Resident:
    """The interpreter that forks."""

    def __init__(self) -> None:
        path = [HERE, MOCK_DRIVER, MOCK_DRIVER / "programs", TREE]
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            env={
                **os.environ,
                "PYTHONPATH": ":".join(map(str, path)),
                "LD_LIBRARY_PATH": str(MOCK_DRIVER / "build"),  # the loader reads it only at a start
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(
        self, program: str, arguments: Sequence[str], environment: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """Run one of PROGRAMS."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps([program, arguments, environment]) + "\n")
        self._process.stdin.flush()
        if not select.select([self._process.stdout], [], [], TIMEOUT)[0]:
            self.close()
            raise subprocess.TimeoutExpired([program, *arguments], TIMEOUT)
        return subprocess.CompletedProcess([program, *arguments], **json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()
        resident.cache_clear()


@functools.cache
def resident() -> Resident:
    """The one of this process."""
    return Resident()


def _fork(program: str, arguments: list[str], environment: dict[str, str]) -> dict[str, object]:
    """What a forked child of this process prints, and its exit status."""
    out, complaints = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out[1], 1)
        os.dup2(complaints[1], 2)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = [program, *arguments]
        status = 1
        try:
            status = PROGRAMS[program]() or 0
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 1
        except BaseException:
            traceback.print_exc()
        with contextlib.suppress(OSError):
            sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    os.close(out[1])
    os.close(complaints[1])
    with os.fdopen(out[0]) as stdout, os.fdopen(complaints[0]) as stderr:
        printed, complained = stdout.read(), stderr.read()
    return {"stdout": printed, "stderr": complained, "returncode": os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}


def _serve() -> None:
    for name in ("command.__main__", "_smi.main", "backend_driver", "pynvml"):
        importlib.import_module(name)
    for line in sys.stdin:
        print(json.dumps(_fork(*json.loads(line))), flush=True)


if __name__ == "__main__":
    _serve()
