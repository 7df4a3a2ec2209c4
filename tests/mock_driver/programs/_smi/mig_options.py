# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The command line of `nvidia-smi mig`, which is read in another way than the rest."""

from __future__ import annotations

from dataclasses import dataclass

from _smi.errors import Stop

_SPELLINGS = {
    "-i": "id",
    "--id": "id",
    "-gi": "gi",
    "--gpu-instance-id": "gi",
    "-ci": "ci",
    "--compute-instance-id": "ci",
    "-lgip": "lgip",
    "--list-gpu-instance-profiles": "lgip",
    "-lgipp": "lgipp",
    "--list-gpu-instance-possible-placements": "lgipp",
    "-C": "default",
    "--default-compute-instance": "default",
    "-cgi": "cgi",
    "--create-gpu-instance": "cgi",
    "-dgi": "dgi",
    "--destroy-gpu-instance": "dgi",
    "-lgi": "lgi",
    "--list-gpu-instances": "lgi",
    "-lcip": "lcip",
    "--list-compute-instance-profiles": "lcip",
    "-lcipp": "lcipp",
    "--list-compute-instance-possible-placements": "lcipp",
    "-cci": "cci",
    "--create-compute-instance": "cci",
    "-dci": "dci",
    "--destroy-compute-instance": "dci",
    "-lci": "lci",
    "--list-compute-instances": "lci",
}
# As a place to begin at, to nvidia-smi this means that none is given.
_ANYWHERE = -1
_WITH_VALUE = {"id", "gi", "ci", "cgi"}
# Of several commands, the first of these is run and the others are left out.
COMMANDS = ("lgip", "lgipp", "cgi", "lgi", "dgi", "lcip", "lcipp", "cci", "lci", "dci")


def parse(arguments: list[str]) -> dict[str, str]:
    """Option name -> value; the last of an option counts."""
    rest: list[str] = []
    for argument in arguments:
        spelling, equals, value = argument.partition("=")
        rest += [spelling, value] if equals and spelling.startswith("-") else [argument]
    found: dict[str, str] = {}
    while rest:
        spelling = rest.pop(0)
        name = _SPELLINGS.get(spelling)
        if name is None:
            raise Stop(f'Option "{spelling}" is not recognized.\n', 2)
        found[name] = ""
        if name in _WITH_VALUE:
            if not rest:
                raise Stop(f'Option "{spelling}" is missing its value.\n', 2)
            found[name] = rest.pop(0)
        elif name == "cci" and rest and rest[0] not in _SPELLINGS:
            # Without a value it means the default profile, and an empty value means none at all.
            found["cci_profiles"] = rest.pop(0)
    return found


def _leading_number(text: str) -> int | None:
    """As C's strtoul reads it: what comes after the digits is not looked at."""
    text = text.lstrip()
    sign = -1 if text.startswith("-") else 1
    digits = text.lstrip("+-")[: len(text)]
    length = len(digits) - len(digits.lstrip("0123456789"))
    return sign * int(digits[:length]) if length else None


def numbers(text: str | None) -> set[int] | None:
    """The ids of -gi and -ci; None where the option was not given. A word that is no number counts as 0."""
    if text is None:
        return None
    return {_leading_number(word) or 0 for word in text.split(",") if word}


@dataclass(frozen=True)
class Wanted:
    """A profile by its name or id, as it was asked for, and where it shall begin."""

    text: str
    profile: str
    start: int | None

    def means(self, identity: int, name: str) -> bool:
        number = self.profile.strip()
        if number.isdigit():
            return int(number) % 2**32 == identity
        return self.profile in (name, name.removeprefix("MIG "))


def wanted(text: str) -> list[Wanted]:
    found = []
    for word in text.split(","):
        if word:
            profile, _colon, start = word.partition(":")
            number = _leading_number(start)
            found.append(Wanted(word, profile, None if number == _ANYWHERE else number))
    return found
