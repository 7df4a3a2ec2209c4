# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A mocked machine of its own for each test, with modules that run on it."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness import snapshot
from harness.modules import COLLECTIONS, MOCK_DRIVER, Modules, Result, library_path

PROGRAMS = MOCK_DRIVER / "programs"
PATIENCE = 30.0  # seconds for what is known to come

UUIDS = ("GPU-283ac4e4-651c-54fd-a922-7809abbd0253", "GPU-283ac3e4-651c-534a-a922-7909abbd0be0")
LABELS = tuple(
    f"GPU {index} (NVIDIA A100-SXM4-40GB, {uuid}, {pci})"
    for index, uuid, pci in zip((0, 1), UUIDS, ("0000:07:00.0", "0000:0f:00.0"))
)


class Machine:
    """A machine in a folder: its state, and the directories that tasks are told to use."""

    def __init__(self, name: str, modules: Modules) -> None:
        # A short path: the pipe directory may have 87 bytes.
        self.folder = Path(tempfile.mkdtemp(prefix="gpuops-"))
        self.folder.chmod(0o755)
        self.var = self.folder / "var"
        for part in ("bin", "run", "log"):
            (self.folder / part).mkdir()
        self._modules = modules
        inherited = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("ANSIBLE_", "CUDA_", "MOCK_", "PYTHONDONTWRITE"))
        }
        self.environment = {
            **inherited,
            "PATH": f"{self.folder / 'bin'}:{PROGRAMS}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "LD_LIBRARY_PATH": library_path(),
            "PYTHONPATH": COLLECTIONS,
            "MOCK_DRIVER_STATE": str(self.folder / "machine"),
            "MOCK_DRIVER_PYTHON": sys.executable,
        }
        self.uid = os.getuid()
        self._come_up(name)

    def _come_up(self, name: str) -> None:
        """The state is one file: it is made once for each name, since that takes as long as a test."""
        state = self.folder / "machine"
        if name not in self._modules.states:
            self.mock_driver("up", name)
            self._modules.states[name] = state.read_bytes()
        else:
            state.write_bytes(self._modules.states[name])
            state.chmod(0o666)

    # What happens to machines

    def mock_driver(self, *arguments: str) -> str:
        """Run the command mock-driver."""
        answer = self._modules.receive(self._modules.send({"mock_driver": arguments, "environment": self.environment}))
        assert answer["status"] == 0, answer
        return str(answer["out"])

    def execute(self, command: list[str], environment: dict[str, str]) -> tuple[int, str]:
        """Run a program; its exit status, and all that it printed."""
        request = {"program": ["sh", "-c", 'exec "$@" 2>&1', "sh", *command], "environment": environment}
        answer = self._modules.receive(self._modules.send(request))
        return int(answer["status"]), str(answer["out"])

    def counters(self) -> dict[str, int]:
        """NVML calls so far."""
        return snapshot.counters(self.folder / "machine")

    def compute_modes(self) -> list[str]:
        """The cards' modes, as the driver has them."""
        return snapshot.compute_modes(self.folder / "machine")

    @contextlib.contextmanager
    def untouched(self, attempts: int = 0) -> Iterator[None]:
        """Fail if the block changes anything that can be seen from outside; so many calls of setters are to be refused."""
        before = snapshot.take(self.folder)
        yield
        after = snapshot.take(self.folder)
        before["setter_calls"] += attempts
        before.pop("calls"), after.pop("calls")
        for seen in (before, after):
            seen["files"].pop("var", None)  # the lock may be the first thing in it
        assert after == before

    # Modules

    def start(
        self,
        module: str,
        check: bool = False,
        uid: int | None = None,
        environment: dict[str, str] | None = None,
        **options: Any,
    ) -> socket.socket:
        """Start a module and do not wait for it."""
        arguments = {**options, "_ansible_check_mode": check, "_ansible_diff": True}
        # The host's other daemons are asked as well: those of other tests may hang.
        arguments.setdefault(*(("timeout", 5) if module == "nvidia_gpu_info" else ("state_directory", str(self.var))))
        return self._modules.send(
            {
                "module": module,
                "arguments": arguments,
                "environment": {**self.environment, **(environment or {})},
                "uid": uid,
            }
        )

    def finish(self, started: socket.socket) -> Result:
        """Wait for the module and return its answer."""
        answer = self._modules.receive(started)
        try:
            return Result(json.loads(answer["out"]))
        except ValueError:
            raise AssertionError(f"the module crashed: {answer['out']}{answer['err']}") from None

    def run(self, module: str, **options: Any) -> Result:
        """Run a module."""
        return self.finish(self.start(module, **options))

    def compute_mode(self, mode: Any, **options: Any) -> Result:
        """Run nvidia_compute_mode."""
        return self.run("nvidia_compute_mode", mode=mode, **options)

    def daemon(self, name: str = "render", **options: Any) -> dict[str, Any]:
        """An entry of `daemons` with directories of this machine; for GPU 0 unless told otherwise."""
        entry = {
            "name": name,
            "gpus": [0],
            "pipe_directory": self.pipe(name),
            "log_directory": str(self.folder / "log" / name),
            **options,
        }
        return {key: value for key, value in entry.items() if value is not None}

    def pipe(self, name: str = "render") -> str:
        """Pipe directory of a daemon."""
        return str(self.folder / "run" / name)

    def mps(self, *daemons: dict[str, Any], **options: Any) -> Result:
        """Run nvidia_mps without systemd."""
        return self.finish(self.start_mps(*daemons, **options))

    def start_mps(self, *daemons: dict[str, Any], **options: Any) -> socket.socket:
        """Start nvidia_mps and do not wait for it."""
        return self.start(
            "nvidia_mps", daemons=copy.deepcopy(list(daemons)), **{"service": "none", "stop_timeout": 2, **options}
        )

    def mps_as_somebody(self, *daemons: dict[str, Any], **options: Any) -> Result:
        """Run nvidia_mps as a user who is not root; no daemon may come of it."""
        uid = None
        if os.getuid() == 0:
            uid = 4242
            self.only("timeout")
            self.program("nvidia-cuda-mps-control", "exit 1")  # the stand-in's way may be closed to that user
            own = self.folder / "bin" / "state"
            own.mkdir()
            for path in (own, self.folder / "run", self.folder / "log"):
                os.chown(path, uid, uid)
            options.setdefault("state_directory", str(own))
        return self.finish(self.start_mps(*daemons, uid=uid, **options))

    # Programs

    def control(self, command: str, name: str = "render") -> str:
        """Say something to a control daemon."""
        environment = {**self.environment, "CUDA_MPS_PIPE_DIRECTORY": self.pipe(name)}
        done = subprocess.run(
            ["nvidia-cuda-mps-control"],
            input=f"{command}\n",
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        return done.stdout + done.stderr

    def _log(self, name: str) -> Path:
        return self.folder / "log" / name / "control.log"

    def log(self, name: str = "render") -> str:
        """What a control daemon wrote down."""
        return self._log(name).read_text()

    def await_log(self, text: str, times: int = 1, name: str = "render") -> None:
        """Wait until a control daemon's log holds a text so many times."""
        with subprocess.Popen(
            ["tail", "-n", "+1", "-f", str(self._log(name))], stdout=subprocess.PIPE, text=True
        ) as log:
            assert log.stdout
            for line in log.stdout:
                times -= text in line
                if not times:
                    break
            log.kill()

    def launch(self, name: str = "render") -> None:
        """Start a control daemon by hand."""
        environment = {
            **self.environment,
            "CUDA_MPS_PIPE_DIRECTORY": self.pipe(name),
            "CUDA_MPS_LOG_DIRECTORY": str(self.folder / "log" / name),
        }
        subprocess.run(["nvidia-cuda-mps-control", "-d"], env=environment, check=True, timeout=PATIENCE)

    def client(self, name: str = "render", **variables: str) -> subprocess.Popen[str]:
        """Start a client; it is connected when this returns."""
        environment = {**self.environment, "CUDA_MPS_PIPE_DIRECTORY": self.pipe(name), **variables}
        process = subprocess.Popen(
            ["mps-client"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("connected"), line + process.stdout.read()
        return process

    def program(self, name: str, script: str) -> None:
        """Put a program before all others of its name."""
        path = self.folder / "bin" / name
        path.unlink(missing_ok=True)  # a link there leads to the real program, which must not be written to
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def programs(self, name: str) -> list[int]:
        """The living processes of a program."""
        return [pid for pid, _environment in snapshot.processes(self.folder) if name in snapshot.command(pid)]

    def files(self) -> dict[str, str]:
        """What lies in this machine's directories."""
        seen = snapshot.files(self.folder)
        seen.pop("var", None)  # the lock may be the first thing in it
        return seen

    def daemons(self) -> list[int]:
        """The control daemons of this machine."""
        return snapshot.daemons(self.folder)

    def only(self, *programs: str) -> None:
        """Leave no program on PATH but these."""
        for name in programs:
            found = shutil.which(name, path=self.environment["PATH"])
            assert found, name
            (self.folder / "bin" / name).symlink_to(found)
        self.environment["PATH"] = str(self.folder / "bin")

    @staticmethod
    def wait(pid: int, number: int = 0) -> None:
        """Wait until a process is gone, after a signal if one is given."""
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            return
        try:
            signal.pidfd_send_signal(handle, number)
            assert select.select([handle], [], [], PATIENCE)[0], f"process {pid} does not end"
        except ProcessLookupError:
            pass
        finally:
            os.close(handle)

    def kill(self, pid: int) -> None:
        """End a process."""
        self.wait(pid, signal.SIGKILL)

    def close(self) -> None:
        """End what was started here, and remove the folder."""
        while left := [pid for pid, _environment in snapshot.processes(self.folder)]:
            for pid in left:
                self.kill(pid)
        shutil.rmtree(self.folder)
