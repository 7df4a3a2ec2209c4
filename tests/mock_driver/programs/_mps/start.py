# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Starting the control daemon: in the foreground, or detached with a parent that waits until it listens."""

from __future__ import annotations

import fcntl
import os
import signal
import sys

from _mps import process
from _mps.daemon import Daemon
from _mps.directory import LogDirectory, PipeDirectory
from _mps.log import Log

_NAME = "nvidia-cuda-mps-control"


class CannotStart(Exception):
    """The reason is what the real daemon prints, and may be empty."""


def _lock(pipe: PipeDirectory) -> int:
    """Takes the lock that makes this daemon the only one on its directory.

    The descriptor stays open for the life of the process: closing it would drop the lock.
    """
    old = os.umask(0)
    try:
        descriptor = os.open(pipe.lock, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise CannotStart(f"Cannot access CUDA_MPS_PIPE_DIRECTORY={pipe.path}") from error
    finally:
        os.umask(old)
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise CannotStart("An instance of this daemon is already running") from error
    return descriptor


def _prepare(foreground: bool, logs: LogDirectory | None) -> Daemon:
    process.look_like(_NAME, "-f" if foreground else "-d")
    pipe = PipeDirectory(os.environ)
    if not pipe.create():
        raise CannotStart(f"Cannot access CUDA_MPS_PIPE_DIRECTORY={pipe.path}")
    _lock(pipe)
    # In the foreground all goes to stdout, and the log directory stays empty.
    control_log = server_log = 1 if foreground else None
    if logs is not None and not foreground:
        control_log = logs.open("control.log")
        server_log = logs.open("server.log")
    log = Log(control_log)
    log_pipe = pipe.create_log_pipe()
    if pipe.too_long():
        raise CannotStart()
    daemon = Daemon(pipe, log, server_log, log_pipe)
    if daemon.version >= 550:
        with open(pipe.pid_file, "w", encoding="ascii") as file:
            file.write(str(os.getpid()))
        os.chmod(pipe.pid_file, 0o666)
    log(f"Starting control daemon using socket {pipe.control}")
    log(f"To connect CUDA applications to this daemon, set env CUDA_MPS_PIPE_DIRECTORY={pipe.path}")
    return daemon


def _log_directory() -> LogDirectory | None:
    logs = LogDirectory(os.environ)
    if logs.create():
        return logs
    print(f"Warning: Failed writing log files to directory [{logs.path}]. No logs will be available.", flush=True)
    return None


def foreground() -> int:
    """Runs the daemon in this process; signals end it as they end the real one."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        daemon = _prepare(True, _log_directory())
    except CannotStart as reason:
        if str(reason):
            print(reason)
        return 1
    return daemon.serve()


def detached() -> int:
    """Starts the daemon behind this process; returns once it listens, or says why not."""
    logs = _log_directory()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        if os.fork():
            os._exit(0)
        _daemon(writer, logs)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader, encoding="utf-8", errors="surrogateescape") as report:
        status, _newline, reason = report.read().partition("\n")
    if reason:
        sys.stdout.write(reason + "\n")
    return int(status or 1)


def _daemon(report: int, logs: LogDirectory | None) -> None:
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    process.detach_output()
    process.close_inherited(keep=(report,))
    try:
        daemon = _prepare(False, logs)
    except CannotStart as reason:
        os.write(report, os.fsencode(f"1\n{reason}"))
        os._exit(1)
    os.write(report, b"0\n")
    os.close(report)
    os._exit(daemon.serve())
