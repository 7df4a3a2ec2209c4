# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A role's defaults/main.yml and the main entry of its meta/argument_specs.yml say the same.

Run without arguments it checks the checkout and prints each variable on which they differ.
"""

from __future__ import annotations

import pathlib
import sys
import typing as t

import yaml

ROLES = pathlib.Path(__file__).resolve().parents[2] / "roles"


def load(path: pathlib.Path) -> dict[str, t.Any]:
    return (yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else None) or {}


def complaints(role: pathlib.Path) -> t.Iterator[str]:
    """Yield what one role's two files disagree on."""
    specs = role / "meta" / "argument_specs.yml"
    if not specs.exists():
        yield f"{role.name}: has no meta/argument_specs.yml"
        return
    options: dict[str, dict[str, t.Any]] = load(specs)["argument_specs"]["main"].get("options", {})
    defaults = load(role / "defaults" / "main.yml")
    for name in sorted({*options, *defaults}):
        if not name.startswith(f"{role.name}_"):
            yield f"{role.name}: {name} does not begin with {role.name}_"
        if name not in options:
            yield f"{role.name}: {name} has a default but no argument spec"
        elif "default" in options[name]:
            if name not in defaults:
                yield f"{role.name}: {name} has a default in the argument spec only"
            elif defaults[name] != options[name]["default"]:
                yield f"{role.name}: {name} is {defaults[name]!r} by default, {options[name]['default']!r} in the spec"
        elif name in defaults:
            yield f"{role.name}: {name} has a default that the argument spec does not tell"


def main() -> int:
    found = [complaint for role in sorted(ROLES.glob("*/")) for complaint in complaints(role)]
    for complaint in found:
        print(complaint)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
