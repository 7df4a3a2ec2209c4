# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. How programs are run: the shape of the function that is handed in, and of its answer."""

from __future__ import annotations

import typing as t

ENDED_BY_TIMEOUT = (124, 137, -9)  # timeout(1); when it has to kill, it kills itself as well
_GRACE = 2  # seconds between SIGTERM and SIGKILL
UNHEARD = -13  # exit status of a program that ended before it was told anything (SIGPIPE): what it said is lost


class Answer(t.NamedTuple):
    """What a program left behind. ``rc`` is its exit status; NVIDIA's programs also exit 0 where they refuse."""

    rc: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """All that was printed, in one line."""
        return " ".join((self.out + " " + self.err).split())


class Run(t.Protocol):
    """Run a program in the C locale within a time limit (seconds); raise CommandTimeout when it does not end."""

    def __call__(
        self,
        argv: t.Sequence[str],
        stdin: str | None = None,
        environment: t.Mapping[str, str] | None = None,
        limit: float | None = None,
    ) -> Answer: ...


class Commands(t.NamedTuple):
    """All that the lower floors need from their caller to run programs."""

    run: Run
    which: t.Callable[[str], str | None]  # path of a program, None when it is not installed
    timeout: float  # seconds for one command


def bounded(argv: t.Sequence[str], seconds: float) -> list[str]:
    """Return the command that ends ``argv`` with all its children when time is up."""
    return ["timeout", "-k", str(_GRACE), f"{seconds:g}", *argv]
