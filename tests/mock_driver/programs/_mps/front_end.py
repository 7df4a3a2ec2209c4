# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The front end: sends the lines of stdin to the daemon and prints what it answers."""

from __future__ import annotations

import os
import sys

import _machine
from _mps import channel
from _mps.channel import Channel, Closed
from _mps.directory import PipeDirectory

_NOT_FOUND = "Cannot find MPS control daemon process"
_CANNOT_SEND = "Cannot send command to MPS control daemon process"


def _connect(pipe: PipeDirectory) -> Channel | None:
    # The privileged socket is tried first: root gets through it even when "control" was removed.
    for path in (pipe.control_privileged, pipe.control):
        try:
            connection = Channel.connect(path)
        except OSError:
            continue
        try:
            kind, _text = connection.receive()
            if kind == channel.HELLO:
                connection.send(channel.UI)
                return connection
        except Closed:
            pass
        connection.close()
    return None


class _Output:
    """Answers are held back until the end unless a person watches, as stdio does for the real one."""

    def __init__(self) -> None:
        self.direct = os.isatty(1)
        self.held: list[str] = []

    def put(self, text: str) -> None:
        self.held.append(text)
        if self.direct:
            self.flush()

    def flush(self) -> None:
        sys.stdout.buffer.write(os.fsencode("".join(self.held)))
        sys.stdout.flush()
        self.held.clear()


def _exchange(connection: Channel, output: _Output) -> int:
    for line in sys.stdin.buffer:
        connection.send(channel.COMMAND, os.fsdecode(line).rstrip("\n"))
        kind, text = connection.receive()
        if kind == channel.STATUS:
            return int(text)
        output.put(text)
    connection.send(channel.END)
    while True:
        kind, text = connection.receive()
        if kind == channel.STATUS:
            return int(text)
        output.put(text)


def main(wrong: str) -> int:
    pipe = PipeDirectory(os.environ)
    connection = None if pipe.too_long() else _connect(pipe)
    if connection is None:
        print(_NOT_FOUND, file=sys.stderr)
        return 1
    if wrong == _machine.SWALLOW:
        return 0
    output = _Output()
    try:
        status = _exchange(connection, output)
    except Closed:
        output.flush()
        print(_CANNOT_SEND, file=sys.stderr)
        return 1
    output.flush()
    return status
