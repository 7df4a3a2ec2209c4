# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. The front end of the MPS control daemon. The only file that runs nvidia-cuda-mps-control.

Its exit status says only whether a daemon took the words; what it prints, and what is read back, tells the rest.
"""

from __future__ import annotations

import re
import time
import typing as t

from .._command import UNHEARD, Answer, Commands
from .._errors import CommandFailed, CommandTimeout, PermissionMissing
from . import process
from .limits import Limits, read_size
from .live import Daemon, Server

PROGRAM = process.CONTROL
_ABSENT = re.compile(r"Cannot find MPS control daemon process")
_TURNED_AWAY = re.compile(r"Cannot send command to MPS control daemon process")
_REFUSED = re.compile(r"privilege|Invalid|Unknown command", re.IGNORECASE)
_PERCENTAGE = re.compile(r"^(\d+)\.(\d)\d*$")
_SEPARATOR = "get_default_active_thread_percentage"
_MOST_DEVICES = 32


class Control:
    """Talk to the daemon of one pipe directory."""

    def __init__(self, commands: Commands, pipe_directory: str) -> None:
        self._commands = commands
        self.pipe_directory = pipe_directory

    def _ask(self, lines: t.Sequence[str], limit: float | None = None, speaks: bool = False) -> Answer | None:
        """Send commands; None when no daemon answers there. ``speaks``: the answer to them cannot be empty.

        The daemon has one front end at a time and turns others away, now and then without a word (535, 550): try again.
        """
        deadline = time.monotonic() + self._commands.timeout
        while True:
            answer = self._ask_once(lines, limit)
            unheard = answer and (answer.rc == UNHEARD or _TURNED_AWAY.search(answer.text))
            if answer is None or not (unheard or (speaks and not answer.text)):
                return answer
            if time.monotonic() > deadline:
                raise CommandTimeout(self._hung(lines), pipe_directory=self.pipe_directory)
            time.sleep(0.05)  # nothing tells when the other front end goes

    def _ask_once(self, lines: t.Sequence[str], limit: float | None) -> Answer | None:
        program = self._commands.which(PROGRAM)
        if program is None:
            return None
        try:
            answer = self._commands.run(
                [program],
                stdin="\n".join(lines) + "\n",
                environment={"CUDA_MPS_PIPE_DIRECTORY": self.pipe_directory},
                limit=limit,
            )
        except CommandTimeout as exc:
            raise CommandTimeout(self._hung(lines), pipe_directory=self.pipe_directory) from exc
        return None if _ABSENT.search(answer.text) else answer

    def _hung(self, lines: t.Sequence[str]) -> str:
        pid = process.lock_holder(self.pipe_directory)
        text = (
            f"The MPS control daemon on {self.pipe_directory}"
            + (f" (pid {pid})" if pid else "")
            + f" did not answer '{lines[0]}' in time."
        )
        text += " Another front end may be connected to it, and it has one at a time."
        servers = process.children(pid) if pid else ()
        if servers:
            pids = ", ".join(map(str, servers))
            text += f" Most likely a plain 'quit' was sent to it while it has servers (pids {pids}): it waits for them to end, and all else waits for it."
        return text + " End its clients, or end the daemon."

    def _many(self, questions: t.Sequence[str]) -> list[list[str]] | None:
        """Ask several questions in one go; return the lines of each answer (some answer nothing, so a known one stands between)."""
        lines = [line for question in questions for line in (question, _SEPARATOR)]
        answer = self._ask(lines, speaks=True)
        if answer is None:
            return None
        answers: list[list[str]] = [[]]
        for line in answer.out.splitlines():
            if _PERCENTAGE.match(line.strip()):
                answers.append([])
            elif line.strip():
                answers[-1].append(line.strip())
        if len(answers) != len(questions) + 1:
            raise CommandFailed(
                f"Cannot understand what {PROGRAM} says on {self.pipe_directory}: {answer.text!r}",
                stdout=answer.out,
                stderr=answer.err,
            )
        return answers[:-1]

    def read(self) -> Daemon | None:
        """Return the daemon that answers here, with its limits, servers and clients; None when none does."""
        holder = process.lock_holder(self.pipe_directory)
        if holder is None:
            return None
        found = process.inspect(holder)
        percentage = self._ask([_SEPARATOR, "get_server_list"], speaks=True)
        if found is None or percentage is None:
            return None
        lines = [line.strip() for line in percentage.out.splitlines() if line.strip()]
        match = _PERCENTAGE.match(lines[0]) if lines else None
        if match is None:
            raise CommandFailed(
                f"Cannot understand what {PROGRAM} says on {self.pipe_directory}: {percentage.text!r}",
                stdout=percentage.out,
            )
        visible = found.environment.get("CUDA_VISIBLE_DEVICES")
        devices = tuple(part.strip() for part in visible.split(",")) if visible else None
        ordinals = range(len(devices) if devices else _MOST_DEVICES)
        memory = self._memory([f"get_default_device_pinned_mem_limit {ordinal}" for ordinal in ordinals])
        servers = tuple(self._server(int(line), ordinals) for line in lines[1:] if line.isdigit())
        return Daemon(
            pid=holder,
            started=found.started,
            uid=found.uid,
            pipe_directory=self.pipe_directory,
            log_directory=found.environment.get("CUDA_MPS_LOG_DIRECTORY"),
            devices=devices,
            limits=Limits(_tenths(match), memory),
            servers=servers,
        )

    def _memory(self, questions: t.Sequence[str]) -> tuple[tuple[int, int], ...]:
        answers = self._many(questions) or []
        sizes = [read_size(lines[0]) if lines else None for lines in answers]
        return tuple((ordinal, size) for ordinal, size in enumerate(sizes) if size is not None)

    def _server(self, pid: int, ordinals: range) -> Server:
        answer = self._ask([f"get_active_thread_percentage {pid}"])
        match = _PERCENTAGE.match(answer.out.strip()) if answer else None
        if match is None:  # still starting: it knows neither limits nor clients yet
            return Server(pid, _users([pid]), (), None, ())
        memory = self._memory([f"get_device_pinned_mem_limit {pid} {ordinal}" for ordinal in ordinals])
        clients = self._ask([f"get_client_list {pid}"])
        pids = (
            [int(line) for line in clients.out.split() if line.isdigit()]
            if clients and "not found" not in clients.out
            else []
        )
        return Server(pid, _users([pid, *pids]), tuple(sorted(pids)), _tenths(match), memory)

    def send(self, lines: t.Sequence[str]) -> None:
        """Send setters. No error means only that none was refused in words: read the values back."""
        answer = self._ask([*lines, _SEPARATOR], speaks=True)
        if answer is None:
            raise CommandFailed(f"No MPS control daemon answers on {self.pipe_directory}")
        if _REFUSED.search(answer.text):
            kind = PermissionMissing if "privilege" in answer.text else CommandFailed
            raise kind(
                f"The MPS control daemon on {self.pipe_directory} refused {', '.join(lines)}: {answer.text}",
                stdout=answer.out,
            )

    def terminate_client(self, server: int, client: int) -> None:
        """End a client the way that is safe for the server's other clients."""
        self._ask([f"terminate_client {server} {client}"])

    def quit(self, limit: int) -> None:
        """Ask the daemon to end; after ``limit`` seconds it ends its servers. Never a plain quit, which waits for ever."""
        answer = self._ask([f"quit -t {limit}"], limit=limit + self._commands.timeout)
        if answer and "privilege" in answer.text:
            raise PermissionMissing(
                f"The MPS control daemon on {self.pipe_directory} may not be ended by this user: {answer.text}"
            )

    def launch(self, environment: t.Mapping[str, str]) -> None:
        """Start a daemon in the background; it listens when this returns."""
        program = self._commands.which(PROGRAM)
        if program is None:
            raise CommandFailed(missing_program())
        answer = self._commands.run([program, "-d"], environment=environment)
        if answer.rc != 0:
            said = answer.text or "nothing (exit status only)"
            raise CommandFailed(
                f"The MPS control daemon did not start on {self.pipe_directory}: it says: {said}", rc=answer.rc
            )


def missing_program() -> str:
    """Return the message for a host without the control program."""
    return f"The command {PROGRAM} was not found on this host; install it (it comes with the NVIDIA driver; in Debian: package nvidia-cuda-mps)"


def _users(pids: t.Sequence[int]) -> tuple[int, ...]:
    found = (process.user(pid) for pid in pids)
    return tuple(sorted({user for user in found if user is not None}))


def _tenths(match: re.Match[str]) -> int:
    return int(match.group(1)) * 10 + int(match.group(2))
