# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""MPS control programs in a test's hands: the stand-in and, where they are installed, NVIDIA's own."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

STAND_INS = Path(__file__).resolve().parents[1] / "mock_driver" / "programs"
CONTROL = "nvidia-cuda-mps-control"
SERVER = "nvidia-cuda-mps-server"
ABSENT = "Cannot find MPS control daemon process"
CANNOT_SEND = "Cannot send command to MPS control daemon process"
# Longer than anything here takes on a busy machine: a test that hangs fails.
TIMEOUT = 60
# How long a program has to be silent to count as hung.
SILENCE = 1.0
# struct flock on 64-bit Linux: type, whence, start, length, pid
_FLOCK = "hhqqi4x"
# A user that owns nothing here.
STRANGER = 1234


@dataclass(frozen=True)
class ControlProgram:
    """One nvidia-cuda-mps-control."""

    name: str
    version: int
    path: Path
    package: str = ""

    def __str__(self) -> str:
        return self.name

    @property
    def real(self) -> bool:
        return bool(self.package)


PROGRAMS = (
    ControlProgram("stand-in-535", 535, STAND_INS / CONTROL),
    ControlProgram("stand-in-550", 550, STAND_INS / CONTROL),
    ControlProgram("real-535", 535, Path("/usr/bin") / CONTROL, "Debian 12's package nvidia-cuda-mps (non-free)"),
    ControlProgram(
        "real-550",
        550,
        Path(os.environ.get("NVIDIA_MPS_550", "")),
        "$NVIDIA_MPS_550, the program out of Debian 13's package nvidia-cuda-mps",
    ),
)


def require(there: bool, missing: str) -> None:
    """Skip the test, or fail where nothing may be skipped."""
    if not there:
        if os.environ.get("GPUOPS_REQUIRE_REAL") == "1":
            pytest.fail(missing)
        pytest.skip(missing)


def alive(pid: int) -> bool:
    """Neither gone nor a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def ignores_sigterm(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    ignored = next(line for line in status.splitlines() if line.startswith("SigIgn:"))
    return bool(int(ignored.split()[1], 16) & 1 << (signal.SIGTERM - 1))


def children(parent: int) -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and alive(int(folder.name)):
            try:
                if int((folder / "stat").read_text().rpartition(")")[2].split()[1]) == parent:
                    found.append(int(folder.name))
            except OSError:
                pass
    return sorted(found)


def eventually(happened: Callable[[], object], what: str) -> None:
    """Wait for something that no event tells of; `what` is what was waited for in vain."""
    deadline = time.monotonic() + TIMEOUT
    while not happened():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


@dataclass(frozen=True)
class Answer:
    """What a program printed, and its exit status: None where it hung and was killed."""

    printed: list[str]
    complaints: str
    status: int | None


@dataclass
class Mps:
    """A control program with directories of its own. The server that daemons find on PATH is always the stand-in."""

    program: ControlProgram
    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    started: list[subprocess.Popen[str]] = field(default_factory=list)
    known: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        commands = self.folder / "bin"
        commands.mkdir()
        (commands / CONTROL).symlink_to(self.program.path)
        (commands / SERVER).symlink_to(STAND_INS / SERVER)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("CUDA_", "MOCK_"))}
        self.environment = {
            **kept,
            "LC_ALL": "C",
            "PATH": f"{commands}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "CUDA_MPS_PIPE_DIRECTORY": str(self.pipe),
            "CUDA_MPS_LOG_DIRECTORY": str(self.logs),
            "MOCK_DRIVER_STATE": str(self.folder / "no-machine"),
            "MOCK_MPS_VERSION": str(self.program.version),
            **self.environment,
        }

    def share(self) -> None:
        """Make the programs such that any user can run them, wherever the checkout and its Python lie."""
        programs = self.folder / "programs"
        shutil.copytree(STAND_INS, programs, ignore=shutil.ignore_patterns("__pycache__"))
        if self.program.real:
            shutil.copy(self.program.path, programs / CONTROL)
        commands = self.folder / "bin"
        for name in (CONTROL, SERVER):
            (commands / name).unlink()
            (commands / name).symlink_to(programs / name)
        self.environment["PATH"] = f"{commands}:/usr/bin:/bin"

    @property
    def pipe(self) -> Path:
        return self.folder / "p"

    @property
    def logs(self) -> Path:
        return self.folder / "l"

    def log(self) -> list[str]:
        """The messages in control.log, without their heads."""
        text = (self.logs / "control.log").read_bytes().decode()
        return [line.split("] ", 1)[-1] for line in text.split("\n")[:-1]]

    def _command(self, user: int | None, *arguments: str) -> list[str]:
        change = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user is not None else []
        return [*change, str(self.folder / "bin" / CONTROL), *arguments]

    def run(
        self, *arguments: str, text: str = "", user: int | None = None, timeout: float = TIMEOUT, **variables: str
    ) -> Answer:
        """Run the program once."""
        environment = {**self.environment, **variables}
        try:
            ran = subprocess.run(
                self._command(user, *arguments),
                input=text,
                env=environment,
                capture_output=True,
                text=True,
                timeout=timeout,
            )
        except subprocess.TimeoutExpired:
            return Answer([], "", None)
        finally:
            self._remember()
        return Answer(ran.stdout.splitlines(), ran.stderr.strip(), ran.returncode)

    def start(self, user: int | None = None, **variables: str) -> int:
        """Start a daemon in the background, which has to work; its process id."""
        answer = self.run("-d", user=user, timeout=TIMEOUT, **variables)
        assert (answer.complaints, answer.status) == ("", 0), answer
        pid = self.daemon()
        assert pid is not None
        return pid

    def begin(self, *arguments: str, **variables: str) -> subprocess.Popen[str]:
        """Start the program beside the test."""
        process = subprocess.Popen(
            self._command(None, *arguments),
            env={**self.environment, **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def ask(self, *lines: str, user: int | None = None, timeout: float = TIMEOUT) -> Answer:
        """Send lines through a front end; again where the daemon did not take them.

        It serves one front end at a time, and anybody on the host may be at it: a test of another worker that looks for
        all daemons, or the front end before, which the daemon has not left yet.
        """
        deadline = time.monotonic() + TIMEOUT
        while True:
            taken = self._commands(lines[0])
            answer = self.run(text="".join(f"{line}\n" for line in lines), user=user, timeout=timeout)
            swallowed = answer == Answer([], "", 0) and taken is not None and not self._arrives(lines[0], taken)
            if answer.complaints != CANNOT_SEND and not swallowed:
                return answer
            assert time.monotonic() < deadline, answer

    def _arrives(self, line: str, before: int) -> bool:
        """Whether the daemon got this line once more; of `quit` it may tell after the front end has ended."""
        deadline = time.monotonic() + SILENCE
        while self._commands(line) == before and time.monotonic() < deadline:
            time.sleep(0.01)
        return self._commands(line) != before

    def _commands(self, line: str) -> int | None:
        """How often the daemon got this line; None where it keeps no log."""
        return self.log().count(f"Cmd:{line}") if (self.logs / "control.log").exists() else None

    def hangs(self, line: str) -> bool:
        """Whether a front end that sends this line waits for ever; it is killed then."""
        before = self._commands(line)
        while True:
            front_end = self.begin()
            assert front_end.stdin is not None
            front_end.stdin.write(f"{line}\n")
            front_end.stdin.close()
            try:
                front_end.wait(SILENCE)
            except subprocess.TimeoutExpired:
                eventually(lambda: self._commands(line) != before, f"{line} does not arrive")
                front_end.kill()
                front_end.wait()
                return True
            if self._commands(line) != before:
                return False

    def daemon(self) -> int | None:
        """The process that holds the lock of the pipe directory."""
        try:
            with open(self.pipe / "control_lock", "rb") as file:
                question = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
                kind, *_where, pid = struct.unpack(_FLOCK, fcntl.fcntl(file, fcntl.F_GETLK, question))
        except OSError:
            return None
        return None if kind == fcntl.F_UNLCK else int(pid)

    def start_server(self, user: int = 0) -> int:
        """Have the daemon start a server; its process id."""
        assert self.ask(f"start_server -uid {user}") == Answer([], "", 0)
        (pid,) = self.ask("get_server_list").printed
        return int(pid)

    def _remember(self) -> None:
        daemon = self.daemon()
        if daemon is not None:
            self.known |= {daemon, *children(daemon)}

    def close(self) -> None:
        """End everything that was started, by its process id."""
        self._remember()
        for process in self.started:
            if process.poll() is None:
                self.known |= {process.pid, *children(process.pid)}
        for pid in self.known:
            if self._ours(pid):
                os.kill(pid, signal.SIGKILL)
        for process in self.started:
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _ours(self, pid: int) -> bool:
        """Still the process that was started here, not another one that got its number."""
        try:
            return alive(pid) and os.fsencode(self.folder) in Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            return False


def open_mps(program: ControlProgram, **environment: str) -> Mps:
    """A control program with directories of its own, in a place with a short name: paths of sockets are limited."""
    if program.real:
        require(program.path.is_file(), f"{CONTROL} {program.version} is not there: {program.package}")
    folder = Path(tempfile.mkdtemp(prefix="mps-"))
    folder.chmod(0o755)
    return Mps(program, folder, environment)
