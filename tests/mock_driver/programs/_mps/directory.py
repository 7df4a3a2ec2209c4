# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The pipe directory and the log directory, and the files in them."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping

# From here on the real daemon gives up without a word (the socket's path no longer fits into sun_path).
TOO_LONG = 88


class PipeDirectory:
    """Where daemon, servers, clients and front ends meet."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.path = environment.get("CUDA_MPS_PIPE_DIRECTORY") or "/tmp/nvidia-mps"
        self.control = os.path.join(self.path, "control")
        self.control_privileged = os.path.join(self.path, "control_privileged")
        self.lock = os.path.join(self.path, "control_lock")
        self.log = os.path.join(self.path, "log")
        self.pid_file = os.path.join(self.path, "nvidia-cuda-mps-control.pid")

    def too_long(self) -> bool:
        return len(os.fsencode(self.path)) >= TOO_LONG

    def create(self) -> bool:
        """Makes the directory (only its last part, open to all); says whether it can be used."""
        try:
            os.mkdir(self.path)
            os.chmod(self.path, 0o777)
        except FileExistsError:
            pass
        except OSError:
            return False
        return os.path.isdir(self.path) and os.access(self.path, os.W_OK | os.X_OK)

    def create_log_pipe(self) -> int:
        """Makes the FIFO in which clients leave log lines, and opens it for reading."""
        try:
            if not stat.S_ISFIFO(os.lstat(self.log).st_mode):
                os.unlink(self.log)
        except FileNotFoundError:
            pass
        try:
            os.mkfifo(self.log)
            os.chmod(self.log, 0o777)
        except FileExistsError:
            pass
        # Open for writing too, so that it never reads as ended.
        return os.open(self.log, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)


class LogDirectory:
    """Where the daemon writes control.log and server.log."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.path = environment.get("CUDA_MPS_LOG_DIRECTORY") or "/var/log/nvidia-mps"

    def create(self) -> bool:
        try:
            os.mkdir(self.path, 0o700)
        except FileExistsError:
            pass
        except OSError:
            return False
        return os.path.isdir(self.path) and os.access(self.path, os.W_OK | os.X_OK)

    def open(self, name: str) -> int:
        return os.open(os.path.join(self.path, name), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
