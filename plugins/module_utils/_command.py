# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. How programs are run: the shape of the function that is handed in, and of its answer."""

from __future__ import annotations

import typing as t

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
