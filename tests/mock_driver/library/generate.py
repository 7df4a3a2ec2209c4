# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Generate from NVIDIA's nvml.h what would be tedious and error-prone to write by hand.

functions.h   a number and the prototype of mock_NAME for every NVML function (an implementation that differs from
              nvml.h does not compile)
functions.c   the exported functions: each counts, looks for faults, calls mock_NAME if someone wrote it and answers
              NVML_ERROR_NOT_SUPPORTED if nobody did
layout.h      the state in C
nvml.json     names of functions and error codes, for the command
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from library import layout

HANDLE_TYPES = ("nvmlDevice_t", "nvmlGpuInstance_t", "nvmlComputeInstance_t")
SETTER = re.compile(r"Set|Create|Destroy|Clear|Reset|Modify|Remove|Update|Discover|Freeze")
NOT_SETTER = re.compile(r"Get|Validate|EventSet")


def find_header() -> Path:
    """nvml.h as the PyPI package nvidia-nvml-dev installs it for the running Python."""
    for folder in map(Path, sys.path):
        for pattern in ("nvidia/*/include/nvml.h", "nvidia/include/nvml.h"):
            for header in sorted(folder.glob(pattern)):
                return header
    sys.exit(
        f"nvml.h not found: install the PyPI package nvidia-nvml-dev for {sys.executable}, "
        "or give its path: make NVML_H=/path/to/nvml.h"
    )


def preprocess(header: Path) -> str:
    command = ["gcc", "-E", "-P", "-DNVML_NO_UNVERSIONED_FUNC_DEFS", str(header)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.replace("\n", " ")


def prototypes(source: str) -> dict[str, str]:
    """Function name -> parameter list, of every function that returns nvmlReturn_t."""
    found = re.finditer(r"\bnvmlReturn_t\s+(nvml\w+)\s*\(([^)]*)\)\s*;", source)
    return {match[1]: " ".join(match[2].split()) for match in found}


def error_codes(source: str) -> dict[str, int]:
    found = re.finditer(r"\bNVML_(SUCCESS|ERROR_\w+)\s*=\s*(\d+)", source)
    return {match[1].removeprefix("ERROR_"): int(match[2]) for match in found}


def profile_numbers(header: Path, kind: str) -> dict[str, int]:
    """NVML's numbers of the GPU- or compute-instance profiles, which are macros."""
    macros = subprocess.run(["gcc", "-E", "-dM", str(header)], capture_output=True, text=True, check=True).stdout
    found = re.findall(rf"#define NVML_{kind}_INSTANCE_PROFILE_(\d\w*) (\w+)", macros)
    return {name: int(number, 0) for name, number in sorted(found)}


def is_setter(name: str) -> bool:
    """Whether the function is there to change the machine, by the words that NVML uses in such names."""
    return bool(SETTER.search(name)) and not NOT_SETTER.search(name)


def parameters(text: str) -> list[tuple[str, str]]:
    if text == "void":
        return []
    pairs = (re.fullmatch(r"(.*?)(\w+)(?:\[\w*\])?", part.strip()) for part in text.split(","))
    return [(pair[1].strip(), pair[2]) for pair in pairs if pair]


def takes_gpu(name: str, text: str) -> str:
    """How a wrapper names the GPU of a call: by its handle, by its index, or not at all."""
    first = (parameters(text) or [("", "")])[0]
    if first[0] in HANDLE_TYPES:
        return f"handle_gpu({first[1]})"
    if name.startswith("nvmlDeviceGetHandleByIndex"):
        return "index"
    return "ANY"


def wrapper(name: str, text: str) -> str:
    arguments = ", ".join(pair[1] for pair in parameters(text))
    return (
        f"nvmlReturn_t {name}({text})\n{{\n"
        f"    struct call call = {{.function = F_{name}}};\n"
        f"    if (call_begin(&call, {takes_gpu(name, text)}))\n"
        f"        call.result = mock_{name} ? mock_{name}({arguments}) : NVML_ERROR_NOT_SUPPORTED;\n"
        f"    return call_end(&call);\n}}\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nvml-h", type=Path, help="default: that of the running Python's nvidia-nvml-dev")
    parser.add_argument("--find", action="store_true", help="only print where nvml.h is")
    parser.add_argument("build", type=Path, nargs="?")
    options = parser.parse_args()
    header = (options.nvml_h or find_header()).resolve()
    if options.find:
        print(header)
        return
    source = preprocess(header)
    functions = prototypes(source)
    names = sorted(functions)
    if len(names) > layout.MAX_FUNCTIONS:
        sys.exit(f"{header} has {len(names)} functions, layout.py has room for {layout.MAX_FUNCTIONS}")

    outputs = {
        "layout.h": "#include <stddef.h>\n#include <stdint.h>\n"
        + layout.c_header()
        + f"#define LAYOUT_SIGNATURE {layout.signature(names)}u\n",
        "functions.h": "enum function {\n"
        + "".join(f"    F_{name},\n" for name in names)
        + "    FUNCTION_COUNT\n};\n"
        + "".join(
            f'__attribute__((weak, visibility("hidden"))) nvmlReturn_t mock_{name}({functions[name]});\n'
            for name in names
        ),
        "functions.c": '#include "state.h"\n#include "handles.h"\n'
        + "const char *const function_names[FUNCTION_COUNT] = {\n"
        + "".join(f'    "{name}",\n' for name in names)
        + "};\n"
        + "\n".join(wrapper(name, functions[name]) for name in names),
        "nvml.json": json.dumps(
            {
                "functions": names,
                "setters": [name for name in names if is_setter(name)],
                "per_gpu": [name for name in names if takes_gpu(name, functions[name]) != "ANY"],
                "errors": error_codes(source),
                "gpu_instance_profiles": profile_numbers(header, "GPU"),
                "compute_instance_profiles": profile_numbers(header, "COMPUTE"),
            },
            indent=1,
        ),
    }
    options.build.mkdir(parents=True, exist_ok=True)
    for file, text in outputs.items():
        # In one step: another build may be reading.
        own = options.build / f"{file}.{os.getpid()}"
        own.write_text(text)
        own.replace(options.build / file)


if __name__ == "__main__":
    main()
