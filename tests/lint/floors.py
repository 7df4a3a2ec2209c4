# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Imports in plugins/module_utils point down only: a file may import its own floor or a lower one, never a higher one.

Run without arguments it checks the checkout and prints each import that breaks a rule.
"""

from __future__ import annotations

import ast
import pathlib
import sys
import typing as t

UTILS = pathlib.Path(__file__).resolve().parents[2] / "plugins" / "module_utils"
PACKAGE = "ansible_collections.gpuops.sharing.plugins.module_utils"

# A name stands for itself and all below it.
FLOORS = {
    5: ["_ansible"],
    4: [
        "_convergence",
        "_mig.holders",
        "_mig.instances",
        "_mig.modes",
        "_mig.observation",
        "_mig.reconcile",
        "_mig.saved",
        "_mps.boot",
        "_mps.control",
        "_mps.daemons",
        "_mps.directories",
        "_mps.observation",
        "_mps.process",
        "_mps.service",
    ],
    3: ["_compute_mode", "_selection"]
    + [
        "_mig.capacity",
        "_mig.card",
        "_mig.compute",
        "_mig.export",
        "_mig.layout",
        "_mig.mig_parted",
        "_mig.mig_parted_export",
        "_mig.packing",
        "_mig.picture",
        "_mig.planner",
        "_mig.search",
    ]
    + ["_mps.files", "_mps.limits", "_mps.live", "_mps.modes", "_mps.plan", "_mps.record", "_mps.resolve", "_mps.wish"],
    2: ["_driver"],
    1: ["_command", "_errors", "_gpu", "_instance"],
}
DRIVER, PURE = 2, 3
# What would be input or output on the floor of pure functions.
IMPURE = {"ctypes", "fcntl", "io", "os", "pathlib", "shutil", "signal", "socket", "subprocess", "tempfile", "time"}
# Whoever may import these, by name.
RESERVED = {"ansible": "_ansible", "pynvml": "_driver.nvml_call"}


def within(name: str, room: str) -> bool:
    return name == room or name.startswith(room + ".")


def floor_of(name: str) -> int | None:
    """The floor of a file or package by its dotted name below module_utils."""
    return next((floor for floor, rooms in FLOORS.items() if any(within(name, room) for room in rooms)), None)


def imports(tree: ast.AST, name: str, is_package: bool) -> t.Iterator[tuple[int, str, list[str]]]:
    """Yield (line, absolute dotted module, names taken from it) of each import."""
    home = f"{PACKAGE}.{name}".split(".")
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name, []
        elif isinstance(node, ast.ImportFrom):
            up = node.level - (1 if is_package else 0)
            base = home[: len(home) - up] if node.level else []
            yield node.lineno, ".".join(base + (node.module or "").split(".")).strip("."), [a.name for a in node.names]


class Floors:
    """The files below one module_utils folder, and what is wrong with their imports."""

    def __init__(self, utils: pathlib.Path) -> None:
        self.files: dict[str, pathlib.Path] = {}
        for path in sorted(utils.rglob("*.py")):
            parts = path.relative_to(utils).with_suffix("").parts
            self.files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
        self.edges: dict[str, set[str]] = {name: set() for name in self.files}

    def complaints(self) -> list[str]:
        found = [complaint for name in self.files if name for complaint in self._file(name)]
        return found + self._circles()

    def _file(self, name: str) -> t.Iterator[str]:
        path = self.files[name]
        is_package = path.name == "__init__.py"
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if is_package:
            if tree.body:
                yield f"{name}/__init__.py: is not empty"
            return
        floor = floor_of(name)
        if floor is None:
            yield f"{name}: has no floor; give it one in tests/lint/floors.py"
            return
        for line, module, names in imports(tree, name, is_package):
            place = f"{name}:{line}"
            if module == PACKAGE or module.startswith(PACKAGE + "."):
                yield from self._inside(name, floor, place, self._targets(module, names))
                continue
            top = module.split(".", maxsplit=1)[0]
            if top in RESERVED and not within(name, RESERVED[top]):
                yield f"{place}: imports {top}, which only {RESERVED[top]} may"
            if floor == PURE and top in IMPURE:
                yield f"{place}: imports {top}, but floor {PURE} is pure functions on values"

    def _targets(self, module: str, names: list[str]) -> set[str]:
        below = module[len(PACKAGE) + 1 :]
        files = {f"{below}.{name}".strip(".") for name in names}
        return {file for file in files if file in self.files} or {below}

    def _inside(self, name: str, floor: int, place: str, targets: set[str]) -> t.Iterator[str]:
        for target in sorted(targets):
            other = floor_of(target)
            if other is None:
                yield f"{place}: imports {target}, which has no floor"
            elif other > floor:
                yield f"{place}: floor {floor} imports {target} of floor {other}"
            elif floor == PURE and other == DRIVER:
                yield f"{place}: imports {target}, but floor {PURE} never touches a driver"
            elif target in self.edges:
                self.edges[name].add(target)

    def _circles(self) -> list[str]:
        done: set[str] = set()
        found: list[str] = []

        def visit(name: str, trail: list[str]) -> None:
            if name in trail:
                found.append("imports in a circle: " + " -> ".join([*trail[trail.index(name) :], name]))
            elif name not in done:
                for other in sorted(self.edges[name]):
                    visit(other, [*trail, name])
                done.add(name)

        for name in self.edges:
            visit(name, [])
        return found


def main() -> int:
    complaints = Floors(UTILS).complaints()
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
