# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Runs modules, the command mock-driver and programs in forks of one warm interpreter: python server.py SOCKET.

A module's start costs a third of a second, nearly all of it imports. Here they are done once. Each request is served by a
fork with an environment of its own, so that no run sees anything of another.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import signal
import socketserver
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

from ansible.module_utils import testing

MOCK_DRIVER = Path(__file__).resolve().parents[2] / "mock_driver"
PR_SET_PDEATHSIG = 1  # prctl(2)
MODULES = "ansible_collections.gpuops.sharing.plugins.modules"


def run(request: dict[str, Any]) -> int:
    """Do what was asked; the exit status."""
    try:
        if "mock_driver" in request:
            sys.argv = ["mock-driver", *request["mock_driver"]]
            return int(importlib.import_module("command.__main__").main())
        if "program" in request:
            return subprocess.run(request["program"], stdin=subprocess.DEVNULL, check=False).returncode
        if "job" in request:
            print(subprocess.Popen(request["job"], start_new_session=True, stdout=subprocess.DEVNULL).pid)
            return 0
        with testing.patch_module_args(request["arguments"]):
            importlib.import_module(f"{MODULES}.{request['module']}").main()
    except SystemExit as end:
        return int(end.code or 0)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


class Handler(socketserver.StreamRequestHandler):
    """One request, in a fork."""

    def handle(self) -> None:
        request = json.loads(self.rfile.read())
        os.environ.clear()
        os.environ.update(request["environment"])
        if request.get("uid") is not None:
            os.setgroups([])
            os.setresgid(request["uid"], request["uid"], request["uid"])
            os.setresuid(request["uid"], request["uid"], request["uid"])
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            for descriptor, file in ((1, out), (2, err)):
                os.dup2(file.fileno(), descriptor)
            status = run(request)
            sys.stdout.flush()
            sys.stderr.flush()
            reply: dict[str, Any] = {"status": status}
            for name, file in (("out", out), ("err", err)):
                file.seek(0)
                reply[name] = file.read().decode()
        self.wfile.write(json.dumps(reply).encode())


class Server(socketserver.ForkingMixIn, socketserver.UnixStreamServer):
    """Forks for every request; several may run at once."""

    max_children = 100


def main() -> None:
    """Import all that requests need, then serve until the starter goes away."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    ctypes.CDLL("libnvidia-ml.so.1")  # so that a run as another user needs no way to the file
    sys.path.insert(0, str(MOCK_DRIVER))
    importlib.import_module("command.__main__")
    for name in ("nvidia_compute_mode", "nvidia_gpu_info", "nvidia_mig", "nvidia_mps"):
        importlib.import_module(f"{MODULES}.{name}")
    with Server(sys.argv[1], Handler) as server:
        print("ready", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
