# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Servers and clients of the stand-in daemon on the mocked cards; what NVIDIA's do follows the manual page."""

from __future__ import annotations

import os
import signal
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator

import pytest

from _programs import PROGRAMS, SILENCE, STAND_INS, Answer, Mps, alive, eventually, ignores_sigterm, open_mps, require
from mocked_machine import MockedMachine

FIRST = "GPU-283ac4e4-651c-54fd-a922-7809abbd0253"
HUNG = Answer([], "", None)
STAND_IN, REAL = PROGRAMS[0], PROGRAMS[2]


@pytest.fixture
def mps(machine: MockedMachine) -> Iterator[Mps]:
    """The stand-in on a machine, its daemon for the first card."""
    opened = on_machine(machine)
    yield opened
    opened.close()


def on_machine(machine: MockedMachine, **variables: str) -> Mps:
    names = ("MOCK_DRIVER_STATE", "LD_LIBRARY_PATH")
    kept = {name: machine.environment[name] for name in names}
    return open_mps(STAND_IN, CUDA_VISIBLE_DEVICES=FIRST, **{**kept, **variables})


class Client:
    """A pretended CUDA program."""

    def __init__(self, mps: Mps, *options: str, attached: bool = True) -> None:
        self.process = subprocess.Popen(
            [STAND_INS / "mps-client", *options],
            env=mps.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        mps.started.append(self.process)
        self.pid = self.process.pid
        if attached:
            assert self.process.stdout is not None
            words = self.process.stdout.readline().split()
            assert words[:3] == ["connected", str(self.pid), "server"]
            self.server = int(words[3])
            mps.known.add(self.server)

    def end(self) -> tuple[str, int]:
        """What it complains of, and its exit status, once it has ended."""
        return self.process.communicate()[1].strip(), self.process.returncode


def on_cards(machine: MockedMachine) -> list[dict[int, str]]:
    """The processes on each card and their types, as nvidia-smi shows them."""
    root = ElementTree.fromstring(machine.run(STAND_INS / "nvidia-smi", "-q", "-x").stdout)
    return [
        {int(info.findtext("pid", "")): info.findtext("type", "") for info in gpu.iter("process_info")}
        for gpu in root.iter("gpu")
    ]


def test_first_client_has_a_server_started(mps: Mps, machine: MockedMachine) -> None:
    mps.start()
    assert mps.ask("get_server_list").printed == []
    client = Client(mps)
    assert mps.ask("get_server_list").printed == [str(client.server)]
    assert mps.ask(f"get_client_list {client.server}").printed == [str(client.pid)]
    assert on_cards(machine) == [{client.server: "C", client.pid: "M+C"}, {}]


def test_clients_share_a_server(mps: Mps, machine: MockedMachine) -> None:
    machine.run(STAND_INS / "nvidia-smi", "-c", "EXCLUSIVE_PROCESS")
    mps.start()
    first, second = Client(mps), Client(mps, "--memory", "1000")
    assert first.server == second.server
    assert mps.ask(f"get_client_list {first.server}").printed == [str(first.pid), str(second.pid)]
    used = machine.run(
        STAND_INS / "nvidia-smi", "-i", "0", "--query-compute-apps=pid,used_memory", "--format=csv,noheader"
    )
    assert f"{second.pid}, 1000 MiB" in used.stdout.splitlines()


def test_ps(mps: Mps) -> None:
    mps.start()
    client = Client(mps)
    header, row = mps.ask("ps").printed
    assert header.split() == ["PID", "ID", "SERVER", "DEVICE", "NAMESPACE", "COMMAND"]
    assert row.split()[:4] == [str(client.pid), "0", str(client.server), FIRST[:22]]
    assert mps.ask(f"ps -p {client.server}").printed == [header, row]
    assert str(client.pid) in mps.ask("get_device_client_list").printed


def test_a_killed_client_is_gone(mps: Mps, machine: MockedMachine) -> None:
    mps.start()
    client = Client(mps)
    client.process.kill()
    client.process.wait()
    eventually(lambda: mps.ask(f"get_client_list {client.server}").printed == [], "the daemon does not notice")
    assert on_cards(machine)[0] == {client.server: "C"}


def test_terminated_client(mps: Mps) -> None:
    mps.start()
    client, other = Client(mps), Client(mps)
    assert mps.ask(f"terminate_client {client.server} 1").printed == ["1"]
    assert mps.ask(f"terminate_client {client.server} {client.pid}").printed == ["0"]
    assert client.end() == ("terminated", 1)
    assert mps.ask(f"get_client_list {other.server}").printed == [str(other.pid)]


def test_limits_of_a_server(mps: Mps) -> None:
    """A server keeps the limits that were the default when it started."""
    mps.start()
    mps.ask("set_default_active_thread_percentage 25", "set_default_device_pinned_mem_limit 0 2G")
    server = Client(mps).server
    mps.ask("set_default_active_thread_percentage 50", "set_default_device_pinned_mem_limit 0 4G")
    read = [f"get_active_thread_percentage {server}", f"get_device_pinned_mem_limit {server} 0"]
    assert mps.ask(*read).printed == ["25.0", "2G"]
    assert mps.ask(f"set_active_thread_percentage {server} 30").printed == ["30.0"]
    mps.ask(f"set_device_pinned_mem_limit {server} 0 3G")
    assert mps.ask(*read).printed == ["30.0", "3G"]
    assert mps.ask("get_default_active_thread_percentage").printed == ["50.0"]


def test_quit_waits_for_clients(mps: Mps) -> None:
    daemon = mps.start()
    client = Client(mps)
    assert mps.hangs("quit")
    assert mps.hangs("get_server_list")
    late = Client(mps, attached=False)
    assert late.end()[1] == 1
    client.process.kill()
    eventually(lambda: not alive(daemon) and not alive(client.server), "daemon or server live on")


def test_quit_with_a_time_limit_ends_clients(mps: Mps, machine: MockedMachine) -> None:
    daemon = mps.start()
    client = Client(mps)
    assert mps.ask("quit -t 1").status == 0
    assert client.end() == ("mps-client: the MPS server is gone", 1)
    eventually(lambda: not alive(daemon), "the daemon lives on")
    assert on_cards(machine) == [{}, {}]


def test_quit_and_shutdown_end_an_idle_server(mps: Mps) -> None:
    daemon = mps.start()
    server = mps.start_server(os.getuid())
    eventually(lambda: f"NEW SERVER {server}: Ready" in mps.log(), "the server is not ready")
    assert mps.ask(f"shutdown_server {server}") == Answer([], "", 0)
    eventually(lambda: mps.ask("get_server_list").printed == [], "the server lives on")
    mps.start_server(os.getuid())
    assert mps.ask("quit") == Answer([], "", 0)
    eventually(lambda: not alive(daemon), "the daemon lives on")


def test_clients_lose_a_daemon_that_dies(mps: Mps) -> None:
    daemon = mps.start()
    client = Client(mps)
    os.kill(daemon, signal.SIGKILL)
    assert client.end() == ("mps-client: the MPS server is gone", 1)
    assert alive(client.server)


@pytest.mark.parametrize("trouble", ["prohibited", "taken", "lost", "no card"])
def test_a_card_that_cannot_be_used(mps: Mps, machine: MockedMachine, trouble: str) -> None:
    smi = STAND_INS / "nvidia-smi"
    if trouble == "prohibited":
        machine.run(smi, "-c", "PROHIBITED")
    elif trouble == "taken":
        machine.run(smi, "-c", "EXCLUSIVE_PROCESS")
        machine.mock_driver("process", "add", 0, os.getpid(), "--kind", "compute")
    elif trouble == "lost":
        machine.mock_driver("lose", 0)
    else:
        mps.environment["CUDA_VISIBLE_DEVICES"] = "GPU-nope"
    mps.start()
    client = Client(mps, attached=False)
    assert client.end()[1] == 1
    assert mps.ask("get_server_list").printed == []
    assert any(message.endswith("exited with status 1") for message in mps.log())


def test_a_client_without_a_daemon(mps: Mps) -> None:
    complaint, status = Client(mps, attached=False).end()
    assert complaint.startswith(f"mps-client: no MPS control daemon answers in {mps.pipe}")
    assert status == 1


def test_stand_in_server_under_nvidias_daemon(machine: MockedMachine) -> None:
    """It is on the card and dies when told, though it cannot report that it is ready."""
    require(REAL.path.is_file(), f"{REAL.path.name} 535 is not there: {REAL.package}")
    kept = {name: machine.environment[name] for name in ("MOCK_DRIVER_STATE", "LD_LIBRARY_PATH")}
    mps = open_mps(REAL, CUDA_VISIBLE_DEVICES=FIRST, **kept)
    try:
        mps.start()
        server = mps.start_server(os.getuid())
        eventually(lambda: on_cards(machine) == [{server: "C"}, {}], "the server is not on its card")
        assert mps.ask(f"get_active_thread_percentage {server}").printed == []
        mps.ask("quit -t 0")
        eventually(lambda: on_cards(machine) == [{}, {}], "the server lives on")
    finally:
        mps.close()


def test_settings_that_lie(mps: Mps, machine: MockedMachine) -> None:
    mps.start()
    machine.mock_driver("fault", "nvidia-cuda-mps-control", "LIE")
    assert mps.ask("set_default_active_thread_percentage 50").printed == ["50.0"]
    assert mps.ask("set_default_device_pinned_mem_limit 0 1G") == Answer([], "", 0)
    read = ["get_default_active_thread_percentage", "get_default_device_pinned_mem_limit 0"]
    assert mps.ask(*read).printed == ["100.0"]
    machine.mock_driver("fault", "clear")
    assert mps.ask("set_default_active_thread_percentage 50").printed == ["50.0"]
    assert mps.ask(*read).printed == ["50.0"]


def test_front_end_that_hangs(mps: Mps, machine: MockedMachine) -> None:
    mps.start()
    machine.mock_driver("fault", "nvidia-cuda-mps-control", "HANG", "--only", 1)
    assert mps.ask("get_server_list", timeout=SILENCE) == HUNG
    assert mps.ask("get_server_list") == Answer([], "", 0)


def test_front_end_that_hangs_and_is_deaf_to_sigterm(mps: Mps, machine: MockedMachine) -> None:
    mps.start()
    machine.mock_driver("fault", "nvidia-cuda-mps-control", "HANG_IGNORING_TERM")
    front_end = mps.begin()
    eventually(lambda: ignores_sigterm(front_end.pid), "SIGTERM is not ignored")
    front_end.terminate()
    with pytest.raises(subprocess.TimeoutExpired):
        front_end.wait(SILENCE)


def test_front_end_that_says_nothing(mps: Mps) -> None:
    """As NVIDIA's does now and then while another front end is open."""
    mps.start()
    swallowed = mps.run(text="get_default_active_thread_percentage\n", MOCK_MPS_FAULT="SWALLOW")
    assert swallowed == Answer([], "", 0)


def test_server_that_never_becomes_ready(mps: Mps, machine: MockedMachine) -> None:
    machine.mock_driver("fault", "nvidia-cuda-mps-server", "HANG")
    mps.start()
    client = Client(mps, attached=False)
    eventually(lambda: mps.ask("get_server_list").printed, "no server is started")
    (server,) = mps.ask("get_server_list").printed
    assert mps.ask(f"get_active_thread_percentage {server}").printed == []
    assert client.process.poll() is None
