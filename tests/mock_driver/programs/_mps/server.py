# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The stand-in server: is on the cards as a process, tells the daemon that it is ready, and waits for the end."""

from __future__ import annotations

import os
import signal
import socket
import stat

import _machine
from _mps import channel, process
from _mps.channel import Channel, Closed


def _daemon() -> Channel | None:
    """The line to a stand-in daemon; NVIDIA's own gives its first server /dev/null instead, and the later ones nothing."""
    try:
        if not stat.S_ISSOCK(os.fstat(0).st_mode):
            return None
    except OSError:
        return None
    return Channel(socket.socket(fileno=os.dup(0)))


def _wait(daemon: Channel) -> int | None:
    """Waits for the daemon's word; None when the daemon is gone, which a server survives."""
    try:
        while daemon.receive()[0] != channel.FINISH:
            pass
    except Closed:
        return None
    return 0


def main() -> int:
    daemon = _daemon()
    # NVIDIA's daemon hands down its descriptors, among them a front end's stdout: keeping it would make its reader wait.
    process.detach_output()
    process.close_inherited(keep=(daemon.fileno(),) if daemon else ())
    process.look_like(_machine.SERVER)
    _machine.hang(_machine.fault(_machine.SERVER))
    if not _machine.use_cards_as_server():
        return 1
    if daemon is not None:
        try:
            daemon.send(channel.READY)
        except Closed:
            pass
        status = _wait(daemon)
        if status is not None:
            return status
    while True:
        signal.pause()
