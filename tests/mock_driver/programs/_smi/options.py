# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The command line, read as nvidia-smi reads it; what this stand-in does not know it refuses by name."""

from __future__ import annotations

from _smi.errors import Stop

_HELP = "Please run 'nvidia-smi -h' for help.\n\n"
_SPELLINGS = {
    "-L": "list",
    "--list-gpus": "list",
    "-q": "query",
    "--query": "query",
    "-x": "xml",
    "--xml-format": "xml",
    "-d": "display",
    "--display": "display",
    "-i": "id",
    "--id": "id",
    "-c": "compute_mode",
    "--compute-mode": "compute_mode",
    "-pm": "persistence_mode",
    "--persistence-mode": "persistence_mode",
    "--query-gpu": "query_gpu",
    "--query-compute-apps": "query_compute_apps",
    "--format": "format",
}
_FLAGS = {"list", "query", "xml"}
_ACTIONS = ("compute_mode", "persistence_mode", "query_gpu", "query_compute_apps")


def parse(arguments: list[str]) -> dict[str, str]:
    """Option name -> value, and "as:" + name -> the spelling used."""
    found: dict[str, str] = {}
    rest = list(arguments)
    while rest:
        spelling, equals, value = rest.pop(0).partition("=")
        name = _SPELLINGS.get(spelling)
        if name is None:
            raise Stop(f"mock nvidia-smi: option {spelling} is not known to this stand-in\n", 2)
        if name in _FLAGS:
            value = ""
        elif not equals:
            if not rest:
                raise Stop(f"ERROR: Option {spelling} is missing its value. {_HELP}", 255)
            value = rest.pop(0)
        found[name] = value
        found["as:" + name] = spelling
    _check(found)
    return found


def _check(found: dict[str, str]) -> None:
    """The combinations that nvidia-smi refuses."""
    if "list" in found:
        for name in ("id", "query", "xml", "display", *_ACTIONS):
            if name in found:
                raise Stop(f"ERROR: Option {found['as:' + name]} is not valid for this command. {_HELP}", 2)
    if "compute_mode" in found and "persistence_mode" in found:
        raise Stop("Invalid combination of input arguments. Only one device modification may be done at a time.\n\n", 2)
    if "query_gpu" in found and "query_compute_apps" in found:
        raise Stop("Only one --query-* switch can be used at a time.\n", 2)
    if "xml" in found and "query" not in found:
        raise Stop(
            "Invalid combination of input arguments. Specify -q/--query and -x/--xml-format to run an XML query.  "
            f"{_HELP}",
            2,
        )
    if "display" in found and "query" not in found:
        raise Stop(
            "Invalid combination of input arguments. Specify -q/--query and -d/--display to run a filtered query.  "
            f"{_HELP}",
            2,
        )
    if "display" in found and "xml" in found:
        raise Stop(
            "Invalid combination of input arguments: --display/-d flags can not be combined with -x/--xml-format "
            "flags.\n",
            2,
        )
    if "query" in found and "xml" not in found and "display" not in found:
        raise Stop("mock nvidia-smi: option -q is known to this stand-in only together with -d or -x\n", 2)
    for query in ("query", "query_gpu", "query_compute_apps"):
        if query in found and ("compute_mode" in found or "persistence_mode" in found):
            asked = found["as:" + query] + (f"={found[query]}" if found[query] else "")
            raise Stop(f"ERROR: Option {asked} is not recognized. {_HELP}", 255)
    if ("query_gpu" in found or "query_compute_apps" in found) and "format" not in found:
        raise Stop(f'"--format=" switch is missing. {_HELP}', 2)


def csv_format(text: str) -> tuple[bool, bool]:
    """Whether a header and whether units are wanted."""
    modifiers = text.split(",")
    for modifier in modifiers:
        if modifier not in ("csv", "noheader", "nounits"):
            raise Stop("Format modifier is not recognized.\n", 2)
    if "csv" not in modifiers:
        raise Stop("Format modifier --format=csv is mandatory.\n", 2)
    return "noheader" not in modifiers, "nounits" not in modifiers
