# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The pretended client."""

from __future__ import annotations

import argparse
import os
import signal
import sys

import _machine
from _mps import channel, process
from _mps.channel import Channel, Closed
from _mps.directory import PipeDirectory


def _attach(pipe: PipeDirectory) -> tuple[Channel, int]:
    """The line to the daemon, and the server's process id."""
    try:
        daemon = Channel.connect(pipe.control)
    except OSError as error:
        raise Closed(f"no MPS control daemon answers in {pipe.path}: {error.strerror}") from error
    kind, _text = daemon.receive()
    if kind != channel.HELLO:
        raise Closed(f"the daemon in {pipe.path} is not the stand-in")
    daemon.send(channel.CLIENT)
    kind, text = daemon.receive()
    if kind != channel.READY:
        raise Closed(f"the daemon in {pipe.path} takes no clients")
    return daemon, int(text)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="mps-client", description="A pretended CUDA program that uses MPS.")
    parser.add_argument("--memory", type=int, default=256, metavar="MIB", help="device memory that it uses (256)")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        daemon, server = _attach(PipeDirectory(os.environ))
    except Closed as reason:
        print(f"mps-client: {reason}", file=sys.stderr)
        return 1
    process.look_like("mps-client")
    if not _machine.use_card_as_client(options.memory):
        print("mps-client: the card refuses this process", file=sys.stderr)
        return 1
    print(f"connected {os.getpid()} server {server}", flush=True)
    try:
        kind, _text = daemon.receive()
    except Closed:
        kind = b""
    print("terminated" if kind == channel.TERMINATE else "mps-client: the MPS server is gone", file=sys.stderr)
    return 1
