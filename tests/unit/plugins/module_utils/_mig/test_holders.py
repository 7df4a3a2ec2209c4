# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Who holds a card, by a /proc of files."""

from __future__ import annotations

import os
import pathlib

import pytest
from ansible_collections.gpuops.sharing.plugins.module_utils._gpu import Process
from ansible_collections.gpuops.sharing.plugins.module_utils._mig import holders
from ansible_collections.gpuops.sharing.plugins.module_utils._mig.holders import Holder
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils.fakes import A100, SECOND_A100


class Proc:
    """A /proc in a folder."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.path = str(folder)
        self._folder = folder

    def file(self, name: str, content: str) -> None:
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)

    def process(self, pid: int, name: str, *opened: str) -> None:
        self.file(f"{pid}/comm", f"{name}\n")
        (self._folder / str(pid) / "fd").mkdir()
        for number, target in enumerate(opened):
            (self._folder / str(pid) / "fd" / str(number)).symlink_to(target)

    def minor(self, address: str, minor: int) -> None:
        text = f"Model: \t\t NVIDIA A100-SXM4-40GB\nIRQ:   \t\t 186\nBus Location: \t {address}\nDevice Minor: \t {minor}\n"
        self.file(f"driver/nvidia/gpus/{address}/information", text)


@pytest.fixture
def proc(tmp_path: pathlib.Path) -> Proc:
    """A host whose device files are numbered the other way than its cards."""
    made = Proc(tmp_path)
    made.minor("0000:07:00.0", 1)
    made.minor("0000:0f:00.0", 0)
    return made


def test_whoever_has_the_device_file_open(proc: Proc) -> None:
    proc.process(70, "nv-hostengine", "/dev/null", "/dev/nvidiactl", "/dev/nvidia1")
    proc.process(60, "nvidia-persiste", "/dev/nvidia1", "/dev/nvidia0")
    proc.process(50, "bash", "/dev/pts/0", "/dev/nvidia10", "/dev/nvidiactl")
    opened = holders.open_devices(proc.path)
    assert opened == {
        "/dev/nvidia0": {60},
        "/dev/nvidia1": {60, 70},
        "/dev/nvidia10": {50},
        "/dev/nvidiactl": {50, 70},
    }
    assert holders.find(A100, opened, proc.path) == [
        Holder(60, "nvidia-persiste", "nvidia-persistenced"),
        Holder(70, "nv-hostengine", "nvidia-dcgm (or dcgm)"),
    ]
    assert holders.find(SECOND_A100, opened, proc.path) == [Holder(60, "nvidia-persiste", "nvidia-persistenced")]


def test_whom_the_driver_names(proc: Proc) -> None:
    proc.process(80, "python3")
    job = A100._replace(processes=(Process(80, "/usr/bin/python3", 500, "C"), Process(81, None, None, "G")))
    assert holders.find(job, {}, proc.path) == [Holder(80, "python3", None), Holder(81, "?", None)]


def test_this_process_is_no_holder(proc: Proc) -> None:
    """It asks the driver itself, and has the device file open for that."""
    proc.process(os.getpid(), "python3", "/dev/nvidia1")
    assert holders.find(A100, holders.open_devices(proc.path), proc.path) == []


def test_a_host_without_the_drivers_files(tmp_path: pathlib.Path) -> None:
    assert holders.open_devices(str(tmp_path)) == {}
    assert holders.find(A100, {"/dev/nvidia0": {7}}, str(tmp_path)) == []
    assert holders.modules(str(tmp_path)) == []
    assert not holders.nvswitch(str(tmp_path))


def test_how_messages_name_a_holder() -> None:
    assert (
        str(Holder(70, "nv-hostengine", "nvidia-dcgm (or dcgm)")) == "70 (nv-hostengine, service nvidia-dcgm (or dcgm))"
    )
    assert str(Holder(80, "python3", None)) == "80 (python3)"


@pytest.mark.parametrize(("users", "found"), [(0, []), (2, ["nvidia_drm"])])
def test_modules_that_are_used(proc: Proc, users: int, found: list[str]) -> None:
    proc.file(
        "modules",
        f"nvidia_drm 77824 {users} - Live 0x0000000000000000 (POE)\nnvidia 56713216 19 nvidia_drm, Live 0x0 (POE)\nloop 32768 0 - Live 0x0\n",
    )
    assert holders.modules(proc.path) == found


def test_nvswitches(proc: Proc) -> None:
    assert not holders.nvswitch(proc.path)
    proc.file("driver/nvidia-nvswitch/devices/0000:c4:00.0", "")
    assert holders.nvswitch(proc.path)
