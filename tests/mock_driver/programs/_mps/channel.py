# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Packets between the stand-ins: one sequenced packet a message, its first byte the kind.

The talk of NVIDIA's own programs has the same shape (a hello, the kind of caller, text replies, a final status),
but it is not the same talk: a stand-in cannot speak to a real daemon, and does not try.
"""

from __future__ import annotations

import os
import socket
import struct

HELLO = b"H"  # daemon: here is the stand-in daemon
UI = b"U"  # caller: I am a front end
CLIENT = b"C"  # caller: I am a client
COMMAND = b"c"  # front end: a line
END = b"e"  # front end: no more lines
TEXT = b"t"  # daemon: what a command printed
STATUS = b"s"  # daemon: the end, and the exit status
READY = b"r"  # server: ready; daemon to client: attached to the server of this pid
FINISH = b"f"  # daemon to server: end
TERMINATE = b"k"  # daemon to client: your work is ended

_SIZE = 2**17
_CREDENTIALS = struct.Struct("3i")


class Closed(Exception):
    """The other side is gone."""


class Channel:
    """One connection."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection

    @classmethod
    def connect(cls, path: str) -> Channel:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            connection.connect(path)
        except OSError:
            connection.close()
            raise
        return cls(connection)

    def send(self, kind: bytes, text: str = "") -> None:
        try:
            self.socket.sendall(kind + os.fsencode(text))
        except OSError as error:
            raise Closed(str(error)) from error

    def receive(self) -> tuple[bytes, str]:
        try:
            packet = self.socket.recv(_SIZE)
        except OSError as error:
            raise Closed(str(error)) from error
        if not packet:
            raise Closed("end of file")
        return packet[:1], os.fsdecode(packet[1:])

    def ended(self) -> bool:
        """Whether the other side has gone, with nothing left to read."""
        try:
            return not self.socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def peer(self) -> tuple[int, int]:
        """Process id and user id of the other side, as the kernel knows them."""
        data = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        pid, uid, _gid = _CREDENTIALS.unpack(data)
        return pid, uid

    def fileno(self) -> int:
        return self.socket.fileno()

    def close(self) -> None:
        self.socket.close()
