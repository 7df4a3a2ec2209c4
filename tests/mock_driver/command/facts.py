# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A mapping out of a YAML file whose every key has to be asked for, so that a slip of the pen is an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from library import layout
from library.state import MockDriverError


class Facts:
    def __init__(self, facts: Any, where: str) -> None:
        if not isinstance(facts, dict):
            raise MockDriverError(f"{where}: expected a mapping, got {facts!r}")
        self.facts = dict(facts)
        self.where = where

    def take(self, key: str, default: Any = None) -> Any:
        return self.facts.pop(key, default)

    def need(self, key: str) -> Any:
        if key not in self.facts:
            raise MockDriverError(f"{self.where}: {key} is missing")
        return self.facts.pop(key)

    def number(self, key: str) -> int:
        """What is left out is not known."""
        value = self.facts.pop(key, None)
        return layout.UNKNOWN if value is None else int(value)

    def choice(self, key: str, choices: dict[str, int]) -> int:
        value = self.need(key)
        if value not in choices:
            raise MockDriverError(f"{self.where}: {key} is {value!r}, must be one of {', '.join(choices)}")
        return choices[value]

    def inner(self, key: str) -> Facts:
        return Facts(self.facts.pop(key, None) or {}, f"{self.where}: {key}")

    def inners(self, key: str) -> list[Facts]:
        entries = self.facts.pop(key, None) or []
        return [Facts(entry, f"{self.where}: {key} {place}") for place, entry in enumerate(entries)]

    def end(self) -> None:
        if self.facts:
            raise MockDriverError(f"{self.where}: unknown key {', '.join(map(repr, self.facts))}")


def read(path: Path) -> Facts:
    try:
        import yaml
    except ImportError as error:
        raise MockDriverError("PyYAML is missing for this Python; it is needed to read machine files") from error
    try:
        return Facts(yaml.safe_load(path.read_text()), path.name)
    except yaml.YAMLError as error:
        raise MockDriverError(f"{path.name} is not valid YAML: {error}") from error


def text(value: Any) -> bytes:
    return str(value).encode() if value is not None else b""
