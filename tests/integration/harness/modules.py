# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The other side of server.py: starts it, hands it requests, and reads what modules answer."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
MOCK_DRIVER = ROOT / "tests" / "mock_driver"
COLLECTIONS = os.environ.get("ANSIBLE_COLLECTIONS_PATH") or str(ROOT / ".venv" / "collections")


def library_path() -> str:
    """LD_LIBRARY_PATH with the mocked library first."""
    return f"{MOCK_DRIVER / 'build'}:{os.environ.get('LD_LIBRARY_PATH', '')}".rstrip(":")


class Result(dict[str, Any]):
    """What a module answered."""

    @property
    def changed(self) -> bool:
        return bool(self["changed"])

    @property
    def failed(self) -> bool:
        return bool(self.get("failed"))

    @property
    def message(self) -> str:
        assert self.failed, self
        return str(self["msg"])

    @property
    def warnings(self) -> str:
        """In whichever shape this ansible-core hands them on."""
        return json.dumps(self.get("warnings", []))


class Modules:
    """The server that runs modules."""

    def __init__(self, python_path: str = COLLECTIONS, within: Sequence[str] = ()) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="gpuops-"))
        self._socket = str(self._folder / "socket")
        environment = {**os.environ, "PYTHONPATH": python_path, "LD_LIBRARY_PATH": library_path()}
        command = [*within, sys.executable, str(Path(__file__).with_name("server.py")), self._socket]
        self._process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"
        self.states: dict[str, bytes] = {}

    def send(self, request: dict[str, Any]) -> socket.socket:
        """Start what is asked for."""
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(self._socket)
        connection.sendall(json.dumps(request).encode())
        connection.shutdown(socket.SHUT_WR)
        return connection

    @staticmethod
    def receive(connection: socket.socket) -> dict[str, Any]:
        """Wait for the answer."""
        with connection, connection.makefile("rb") as file:
            answer: dict[str, Any] = json.loads(file.read())
        return answer

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()
        shutil.rmtree(self._folder)
