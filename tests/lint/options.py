# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Every option of a module and every variable of a role is named in a test. (That specs and documentation agree, sanity says.)

Run without arguments it checks the checkout and prints each name that no test has.
"""

from __future__ import annotations

import ast
import pathlib
import re
import sys
import typing as t

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
TESTS = ("tests/unit", "tests/integration", "molecule")


def names(options: dict[str, t.Any] | None) -> t.Iterator[str]:
    """The names of options and suboptions."""
    for name, option in (options or {}).items():
        yield name
        yield from names(option.get("suboptions") or option.get("options"))


def documented(module: pathlib.Path) -> t.Iterator[str]:
    for node in ast.parse(module.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "DOCUMENTATION":
            yield from names(yaml.safe_load(ast.literal_eval(node.value)).get("options"))


def words(root: pathlib.Path) -> set[str]:
    """All that the tests below a checkout say, as words."""
    files = [path for folder in TESTS for path in (root / folder).rglob("*") if path.suffix in (".py", ".yml", ".yaml")]
    return {word for path in files for word in re.findall(r"\w+", path.read_text(encoding="utf-8"))}


def complaints(root: pathlib.Path) -> t.Iterator[str]:
    tested = words(root)
    for module in sorted((root / "plugins" / "modules").glob("*.py")):
        for name in documented(module):
            if name not in tested:
                yield f"{module.stem}: no test names the option {name}"
    for specs in sorted((root / "roles").glob("*/meta/argument_specs.yml")):
        entries = yaml.safe_load(specs.read_text(encoding="utf-8"))["argument_specs"]
        for name in (name for entry in entries.values() for name in names(entry.get("options"))):
            if name not in tested:
                yield f"{specs.parents[1].name}: no test names the variable {name}"


def main() -> int:
    found = list(complaints(ROOT))
    for complaint in found:
        print(complaint)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
