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
    "-mig": "mig_mode",
    "--multi-instance-gpu": "mig_mode",
    "-r": "gpu_reset",
    "--gpu-reset": "gpu_reset",
    "--query-gpu": "query_gpu",
    "--query-compute-apps": "query_compute_apps",
    "--format": "format",
}
_FLAGS = {"list", "query", "xml", "gpu_reset"}
_MODIFIERS = ("compute_mode", "persistence_mode", "mig_mode", "gpu_reset")
_QUERIES = ("query_gpu", "query_compute_apps")


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
        for name in ("id", "query", "xml", "display", *_MODIFIERS, *_QUERIES):
            if name in found:
                raise Stop(f"ERROR: Option {found['as:' + name]} is not valid for this command. {_HELP}", 2)
    modifiers = [name for name in _MODIFIERS if name in found]
    if len(modifiers) > 1:
        raise Stop("Invalid combination of input arguments. Only one device modification may be done at a time.\n\n", 2)
    if all(query in found for query in _QUERIES):
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
    for query in ("query", *_QUERIES):
        if query in found and modifiers:
            asked = found["as:" + query] + (f"={found[query]}" if found[query] else "")
            raise Stop(f"ERROR: Option {asked} is not recognized. {_HELP}", 255)
    if any(query in found for query in _QUERIES) and "format" not in found:
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
