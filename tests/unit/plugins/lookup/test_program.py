# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The packed program: always the same bytes, and it runs under any plain Python."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
import typing as t
import zipfile

import pytest
from ansible.errors import AnsibleError
from ansible_collections.gpuops.sharing.plugins.lookup import program

BOOT = pathlib.Path(program.__file__).parents[2] / "roles" / "single_card" / "files" / "boot.py"


def runs(path: str) -> bool:
    return subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0


def pythons() -> list[str]:
    """This Python, and each other from 3.9 that is there: in pyenv's own folder, or a command that really runs."""
    versions = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv")) / "versions"
    found = [sys.executable]
    for minor in range(9, 15):
        name = f"python3.{minor}"
        own = sorted(map(str, versions.glob(f"3.{minor}.*/bin/{name}")))
        path = own[-1] if own else shutil.which(name)
        if minor != sys.version_info[1] and path and runs(path):
            found.append(path)
    return found


@pytest.fixture
def lookup(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> program.LookupModule:
    """The lookup as a play would have it, with a temporary folder of its own."""
    monkeypatch.setattr(program.constants, "DEFAULT_LOCAL_TMP", str(tmp_path))
    plugin = program.LookupModule()
    monkeypatch.setattr(plugin, "set_options", lambda **options: None)
    monkeypatch.setattr(plugin, "get_option", {"interpreter": "/usr/bin/python3"}.__getitem__)
    return plugin


def test_the_same_code_gives_the_same_file(lookup: program.LookupModule, tmp_path: pathlib.Path) -> None:
    first = lookup.run([str(BOOT)])
    content = pathlib.Path(first[0]).read_bytes()
    pathlib.Path(first[0]).unlink()
    assert lookup.run([str(BOOT)]) == first
    assert pathlib.Path(first[0]).read_bytes() == content
    assert content.startswith(b"#!/usr/bin/python3\n")
    assert os.listdir(tmp_path) == [os.path.basename(first[0])]


def test_other_code_or_another_interpreter_give_another_file() -> None:
    packed = {
        program.pack("1", "/usr/bin/python3"),
        program.pack("2", "/usr/bin/python3"),
        program.pack("1", "/opt/python3"),
    }
    assert len(packed) == 3


def test_nothing_that_needs_ansible_is_packed(lookup: program.LookupModule) -> None:
    with zipfile.ZipFile(lookup.run([str(BOOT)])[0]) as archive:
        names = archive.namelist()
        assert {"sharing/module_utils/_mps/boot.py", "sharing/plugin_utils/_standalone.py"} <= set(names)
        assert not [name for name in names if "_ansible" in name]
        assert not [name for name in names if "import ansible" in archive.read(name).decode()]


def test_an_entry_that_is_not_there(lookup: program.LookupModule, tmp_path: pathlib.Path) -> None:
    with pytest.raises(AnsibleError, match=f"Cannot pack {tmp_path}/none.py: .*No such file"):
        lookup.run([f"{tmp_path}/none.py"])


@pytest.fixture
def boot(lookup: program.LookupModule, tmp_path: pathlib.Path) -> t.Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the packed boot program under a Python without its site-packages, so without pynvml."""
    packed = lookup.run([str(BOOT)])[0]

    def run(python: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [python, "-I", "-S", packed, *arguments]
        return subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)

    return run


@pytest.mark.parametrize("python", pythons(), ids=os.path.basename)
def test_it_runs_under_plain_python(
    boot: t.Callable[..., subprocess.CompletedProcess[str]], tmp_path: pathlib.Path, python: str
) -> None:
    (tmp_path / "nvidia-smi").touch(mode=0o755)
    done = boot(python, "never-set-up")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "Daemon 'never-set-up' cannot start: /etc/nvidia-mps/never-set-up.env is missing: daemon 'never-set-up' was never set up here\n"
    )


def test_it_says_that_there_is_no_driver(boot: t.Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = boot(sys.executable, "render")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(
        "Daemon 'render' cannot start: No usable NVIDIA driver: there is neither the command nvidia-smi nor"
    )


def test_it_says_how_it_is_used(boot: t.Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = boot(sys.executable)
    assert (done.returncode, done.stderr) == (2, "usage: boot NAME\n")
