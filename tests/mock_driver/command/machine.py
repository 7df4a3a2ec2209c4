# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Machine files: machines/NAME.yaml and models/NAME.yaml become a state.

What a file leaves out is UNKNOWN, and NVML then answers NOT_SUPPORTED. The keys are those of the shipped files.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from command.facts import Facts, read, text
from command.mig import load_mig
from library import layout
from library.state import HOME, MockDriverError, nvml, signature

MACHINES = HOME / "machines"
MODELS = HOME / "models"
BRANDS = {"unknown": 0, "quadro": 1, "tesla": 2, "geforce": 5, "titan": 6, "nvidia_rtx": 13, "nvidia": 14}
ARCHITECTURES = {"volta": 5, "turing": 6, "ampere": 7, "ada": 8, "hopper": 9, "blackwell": 10}
COMPUTE_MODES = ("default", "exclusive_thread", "prohibited", "exclusive_process")
PCI_ADDRESS = re.compile(r"([0-9a-fA-F]{4,8}):([0-9a-fA-F]{2}):([0-9a-fA-F]{2})\.0")


def names() -> list[str]:
    return sorted(path.stem for path in MACHINES.glob("*.yaml"))


def machine_file(name: str) -> Path:
    """A shipped machine by its name, or any file by its path."""
    path = Path(name) if name.endswith((".yaml", ".yml")) else MACHINES / f"{name}.yaml"
    if not path.is_file():
        raise MockDriverError(
            f"unknown machine {name!r}; known are {', '.join(names())}, or give the path of a YAML file"
        )
    return path


def fill(array: Any, values: list[Any] | None) -> None:
    for place in range(len(array)):
        known = values is not None and place < len(values) and values[place] is not None
        array[place] = int(values[place]) if known and values else layout.UNKNOWN


def load_model(name: str, numbering: str | None, model: layout.Model) -> None:
    """The card's model, with the numbering of instances that a machine asks for in place of the model's own."""
    path = MODELS / f"{name}.yaml"
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in MODELS.glob("*.yaml")))
        raise MockDriverError(f"unknown model {name!r}; known are {known}")
    facts = read(path)
    facts.take("assumed")
    model.name = text(facts.need("name"))
    model.brand = facts.choice("brand", BRANDS)
    model.architecture = facts.choice("architecture", ARCHITECTURES)
    major, minor = str(facts.need("compute_capability")).split(".")
    model.capability_major, model.capability_minor = int(major), int(minor)
    for key in ("pci_device_id", "pci_subsystem_id", "memory_mib", "memory_reserved_mib", "bar1_mib", "ecc"):
        setattr(model, key, facts.number(key))
    for key in ("display_mode", "row_remapper_banks", "gsp_firmware"):
        setattr(model, key, facts.number(key))
    for key in ("vbios", "part_number"):
        setattr(model, key, text(facts.take(key)))
    inforom = facts.inner("inforom")
    for key in ("image", "oem", "ecc"):
        setattr(model, f"inforom_{key}", text(inforom.take(key)))
    power = facts.inner("power")
    for key in ("limit_mw", "minimum_mw", "draw_mw"):
        setattr(model, f"power_{key}", power.number(key))
    temperature = facts.inner("temperature")
    model.temperature_gpu, model.temperature_memory = temperature.number("gpu"), temperature.number("memory")
    fill(model.temperature_thresholds, temperature.take("thresholds"))
    clocks = facts.inner("clocks")
    for key in ("now", "maximum", "application"):
        fill(getattr(model, f"clocks_{key}"), clocks.take(key))
    model.clock_graphics_minimum, model.clock_graphics_step = (
        clocks.number("graphics_minimum"),
        clocks.number("graphics_step"),
    )
    pcie = facts.inner("pcie")
    model.pcie_generation, model.pcie_width = pcie.number("generation"), pcie.number("width")
    mig = facts.inner("mig")
    if numbering:
        mig.facts["numbering"] = numbering
    load_mig(mig, model)
    for part in (inforom, power, temperature, clocks, pcie, facts):
        part.end()


def load_gpu(facts: Facts, gpu: layout.Gpu, minor: int, models: list[tuple[str, str | None]]) -> None:
    model = (facts.need("model"), facts.take("mig_numbering"))
    if model not in models:
        models.append(model)
    gpu.model = models.index(model)
    gpu.uuid, gpu.serial = text(facts.need("uuid")), text(facts.take("serial"))
    gpu.minor = int(facts.take("minor", minor))
    address = PCI_ADDRESS.fullmatch(str(facts.need("pci")))
    if not address:
        raise MockDriverError(f'{facts.where}: pci must look like "00000000:07:00.0"')
    gpu.pci_domain, gpu.pci_bus, gpu.pci_device = (int(part, 16) for part in address.groups())
    mode = facts.take("compute_mode", "default")
    if mode not in COMPUTE_MODES:
        raise MockDriverError(f"{facts.where}: compute_mode is {mode!r}, must be one of {', '.join(COMPUTE_MODES)}")
    gpu.compute_mode = COMPUTE_MODES.index(mode)
    gpu.persistence = bool(facts.take("persistence_mode", False))
    gpu.mig_current = gpu.mig_pending = bool(facts.take("mig_mode", False))
    gpu.reset = bool(facts.take("reset", True))
    gpu.mig_activation = error_code(facts.take("mig_activation", "SUCCESS"))
    facts.end()


def check_mig(gpu: layout.Gpu, model: layout.Model, where: str) -> None:
    """A machine may say of a card's MIG mode only what the model can have."""
    if gpu.mig_current and not model.mig_capable:
        raise MockDriverError(f"{where}: mig_mode is on, and the model has no MIG")
    if gpu.mig_activation and not model.mig_reset_needed:
        raise MockDriverError(f"{where}: mig_activation is for models whose MIG mode needs a reset")


def error_code(name: str) -> int:
    """NVML's code by name, with or without NVML_ERROR_, or by number."""
    errors = nvml()["errors"]
    short = str(name).upper().removeprefix("NVML_").removeprefix("ERROR_")
    if short in errors:
        return int(errors[short])
    if str(name).isdigit() and int(name) in errors.values():
        return int(name)
    raise MockDriverError(f"{name!r} is no NVML code; known are {', '.join(errors)}, or their numbers")


def load(name: str) -> layout.State:
    """The state of the machine as it is after boot."""
    path = machine_file(name)
    facts = read(path)
    facts.take("description")
    state = layout.State(magic=layout.MAGIC, layout=signature(), up=1, owner_uid=os.getuid(), machine=text(path.stem))
    state.init_result = error_code(facts.take("init", "SUCCESS"))
    driver = facts.inner("driver")
    state.driver_version, state.nvml_version = text(driver.need("version")), text(driver.need("nvml"))
    major, minor = str(driver.need("cuda")).split(".")
    state.cuda_version = int(major) * 1000 + int(minor) * 10
    driver.end()
    state.reset_together = bool(facts.take("reset_together", False))
    gpus = facts.inners("gpus")
    if len(gpus) > layout.MAX_GPUS:
        raise MockDriverError(f"{path.name}: {len(gpus)} gpus, at most {layout.MAX_GPUS}")
    state.gpu_count = len(gpus)
    models: list[tuple[str, str | None]] = []
    for index, gpu in enumerate(gpus):
        load_gpu(gpu, state.gpus[index], index, models)
    facts.end()
    state.model_count = len(models)
    for place, (model, numbering) in enumerate(models):
        load_model(model, numbering, state.models[place])
    for index in range(state.gpu_count):
        check_mig(state.gpus[index], state.models[state.gpus[index].model], f"{path.name}: gpus {index}")
    return state
