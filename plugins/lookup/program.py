# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
name: program
short_description: Pack a program for a managed host from this collection's own code
version_added: 0.1.0
author:
  - gpuops.sharing contributors (@gpuops)
description:
  - Packs an entry script with the private code of this collection that does not need Ansible into one executable file (a Python zipapp), on the controller.
  - So what runs at boot is the very code that the modules run. Used by the roles of this collection.
  - The same code gives the same file, byte for byte.
options:
  _terms:
    description: Path of the entry script.
    required: true
  interpreter:
    description: The Python interpreter on the managed host.
    type: str
    default: /usr/bin/python3
"""

EXAMPLES = r"""
- name: Install a program
  ansible.builtin.copy:
    src: "{{ lookup('gpuops.sharing.program', role_path ~ '/files/boot.py') }}"
    dest: /usr/local/sbin/gpuops-sharing-boot
    mode: "0755"
"""

RETURN = r"""
_raw:
  description: Path of the packed file on the controller; it goes when the playbook ends.
  type: list
  elements: path
"""

import hashlib
import io
import os
import pathlib
import tempfile
import typing as t
import zipfile

from ansible import constants
from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

PLUGINS = pathlib.Path(__file__).resolve().parent.parent
PACKED = ("module_utils", "plugin_utils")
PACKAGE = "sharing"
NEEDS_ANSIBLE = "module_utils/_ansible/"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the oldest date of a zip file: contents alone shall decide


def pack(entry: str, interpreter: str) -> bytes:
    """Return the zipapp of an entry script's text with the collection's code in package ``sharing``."""
    buffer = io.BytesIO(f"#!{interpreter}\n".encode())
    buffer.seek(0, os.SEEK_END)
    with zipfile.ZipFile(buffer, "a", zipfile.ZIP_DEFLATED) as archive:
        _add(archive, "__main__.py", entry)
        _add(archive, f"{PACKAGE}/__init__.py", "")
        for folder in PACKED:
            _add(archive, f"{PACKAGE}/{folder}/__init__.py", "")
            for path in sorted((PLUGINS / folder).rglob("*.py")):
                name = path.relative_to(PLUGINS).as_posix()
                if not name.startswith(NEEDS_ANSIBLE):
                    _add(archive, f"{PACKAGE}/{name}", path.read_text(encoding="utf-8"))
    return buffer.getvalue()


def _add(archive: zipfile.ZipFile, name: str, text: str) -> None:
    archive.writestr(zipfile.ZipInfo(name, _EPOCH), text, zipfile.ZIP_DEFLATED)


class LookupModule(LookupBase):
    """Packs programs."""

    def run(self, terms: list[str], variables: dict[str, t.Any] | None = None, **kwargs: t.Any) -> list[str]:
        """Return one path a term."""
        self.set_options(var_options=variables, direct=kwargs)
        return [self._packed(term, self.get_option("interpreter")) for term in terms]

    @staticmethod
    def _packed(term: str, interpreter: str) -> str:
        try:
            content = pack(pathlib.Path(term).read_text(encoding="utf-8"), interpreter)
        except OSError as exc:
            raise AnsibleError(f"Cannot pack {term}: {exc}") from exc
        folder = pathlib.Path(constants.DEFAULT_LOCAL_TMP)  # type: ignore[attr-defined]  # set at run time
        path = folder / f"gpuops-sharing-{hashlib.sha256(content).hexdigest()[:16]}.pyz"
        if not path.exists():
            handle, beside = tempfile.mkstemp(dir=path.parent)
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.replace(beside, path)  # other forks may pack the same
        return str(path)
