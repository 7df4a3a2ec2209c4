# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The one description of the machine's state: a file that the C library and the Python programs map at the same time.

generate.py turns these structures into layout.h, with assertions on every size and offset. All integers are naturally
aligned and of fixed width. A number that a model's documents do not give is UNKNOWN; the library then answers
NVML_ERROR_NOT_SUPPORTED. Whoever maps the file holds its flock(2) while reading or writing (see state.py).
"""

from __future__ import annotations

import zlib
from ctypes import Array, Structure, c_char, c_int32, c_uint32, c_uint64, sizeof
from typing import Any

MAGIC = b"MOCKGPU"
UNKNOWN = 0xFFFFFFFF
ANY = 0xFFFFFFFF

MAX_GPUS = 16
MAX_MODELS = 8
MAX_PROFILES = 16
MAX_PLACEMENTS = 8
MAX_COMPUTE_PROFILES = 8
MAX_GPU_INSTANCES = 16
MAX_COMPUTE_INSTANCES = 8
MAX_PROCESSES = 128
MAX_FAULTS = 32
MAX_FUNCTIONS = 640
MAX_TRACE = 8192

# What a fault does beside answering an NVML code (those are 0..999).
FAULT_LIE = 1000
FAULT_HANG = 1001
FAULT_HANG_IGNORING_TERM = 1002
FAULT_GARBAGE = 1003

PROCESS_COMPUTE = 1
PROCESS_GRAPHICS = 2
PROCESS_MPS_SERVER = 3
PROCESS_MPS_CLIENT = 4


class Placement(Structure):
    """A place on the card where an instance of a profile may sit, and the number that the driver gives it there."""

    _fields_ = [("start", c_uint32), ("instance_id", c_uint32)]


class ComputeProfile(Structure):
    """A compute-instance profile inside a GPU instance; `id` is NVML's enumerator, as for every known model."""

    _fields_ = [
        ("id", c_uint32),
        ("slices", c_uint32),
        ("max_instances", c_uint32),
        ("multiprocessors", c_uint32),
        ("name", c_char * 32),
    ]


class Profile(Structure):
    """A GPU-instance profile: `enumerator` is NVML's constant, `id` the number that nvidia-smi shows."""

    _fields_ = [
        ("enumerator", c_uint32),
        ("id", c_uint32),
        ("compute_slices", c_uint32),
        ("memory_slices", c_uint32),
        ("max_instances", c_uint32),
        ("multiprocessors", c_uint32),
        ("memory_mib", c_uint32),
        ("copy_engines", c_uint32),
        ("decoders", c_uint32),
        ("encoders", c_uint32),
        ("jpegs", c_uint32),
        ("ofas", c_uint32),
        ("capabilities", c_uint32),
        ("placement_count", c_uint32),
        ("compute_profile_count", c_uint32),
        ("reserved", c_uint32),
        ("placements", Placement * MAX_PLACEMENTS),
        ("compute_profiles", ComputeProfile * MAX_COMPUTE_PROFILES),
        ("name", c_char * 32),
    ]


class Model(Structure):
    """What is the same for every card of a model, from models/*.yaml."""

    _fields_ = [
        ("name", c_char * 64),
        ("vbios", c_char * 32),
        ("part_number", c_char * 32),
        ("inforom_image", c_char * 32),
        ("inforom_oem", c_char * 16),
        ("inforom_ecc", c_char * 16),
        ("brand", c_uint32),
        ("architecture", c_uint32),
        ("capability_major", c_uint32),
        ("capability_minor", c_uint32),
        ("pci_device_id", c_uint32),
        ("pci_subsystem_id", c_uint32),
        ("memory_mib", c_uint32),
        ("memory_reserved_mib", c_uint32),
        ("bar1_mib", c_uint32),
        ("ecc", c_uint32),
        ("power_limit_mw", c_uint32),
        ("power_minimum_mw", c_uint32),
        ("power_draw_mw", c_uint32),
        ("temperature_gpu", c_uint32),
        ("temperature_memory", c_uint32),
        ("temperature_thresholds", c_uint32 * 4),
        ("clocks_now", c_uint32 * 4),
        ("clocks_maximum", c_uint32 * 4),
        ("clocks_application", c_uint32 * 4),
        ("clock_graphics_minimum", c_uint32),
        ("clock_graphics_step", c_uint32),
        ("pcie_generation", c_uint32),
        ("pcie_width", c_uint32),
        ("display_mode", c_uint32),
        ("row_remapper_banks", c_uint32),
        ("gsp_firmware", c_uint32),
        ("mig_capable", c_uint32),
        ("mig_memory_slices", c_uint32),
        ("mig_max_devices", c_uint32),
        ("mig_reset_needed", c_uint32),
        ("mig_kept_over_reboot", c_uint32),
        ("mig_numbering_swapped", c_uint32),
        ("mig_decoders", c_uint32),
        ("mig_encoders", c_uint32),
        ("mig_jpegs", c_uint32),
        ("mig_ofas", c_uint32),
        ("mig_used_mib", c_uint32),
        ("profile_count", c_uint32),
        ("profiles", Profile * MAX_PROFILES),
    ]


class ComputeInstance(Structure):
    """A compute instance and the MIG device that it makes; `profile` is its place in Profile.compute_profiles."""

    _fields_ = [
        ("used", c_uint32),
        ("profile", c_uint32),
        ("start", c_uint32),
        ("size", c_uint32),
        ("generation", c_uint32),
        ("compute_mode", c_uint32),
        ("uuid", c_char * 48),
    ]


class GpuInstance(Structure):
    """A GPU instance; its id is its place in Gpu.gpu_instances, as compute instances' ids are theirs here."""

    _fields_ = [
        ("used", c_uint32),
        ("profile", c_uint32),
        ("start", c_uint32),
        ("size", c_uint32),
        ("generation", c_uint32),
        ("reserved", c_uint32),
        ("compute_instances", ComputeInstance * MAX_COMPUTE_INSTANCES),
    ]


class Process(Structure):
    """A process on the card. The entry is free when pid is 0, and counts only while that process lives."""

    _fields_ = [
        ("memory", c_uint64),
        ("pid", c_uint32),
        ("kind", c_uint32),
        ("gpu_instance", c_uint32),
        ("compute_instance", c_uint32),
    ]


class Gpu(Structure):
    """One card.

    `mig_activation` is what NVML says when a MIG mode cannot be made effective at once, SUCCESS where it can. `reset` says
    whether the card can be reset, `resets` how often it was.
    """

    _fields_ = [
        ("uuid", c_char * 48),
        ("serial", c_char * 24),
        ("model", c_uint32),
        ("pci_domain", c_uint32),
        ("pci_bus", c_uint32),
        ("pci_device", c_uint32),
        ("minor", c_uint32),
        ("lost", c_uint32),
        ("reset", c_uint32),
        ("compute_mode", c_uint32),
        ("persistence", c_uint32),
        ("accounting", c_uint32),
        ("mig_current", c_uint32),
        ("mig_pending", c_uint32),
        ("mig_activation", c_uint32),
        ("resets", c_uint32),
        ("processes", Process * MAX_PROCESSES),
        ("gpu_instances", GpuInstance * MAX_GPU_INSTANCES),
    ]


class Fault(Structure):
    """Calls number `first` to `last` of `target` (an NVML function or a program) go wrong with `code`."""

    _fields_ = [
        ("target", c_char * 96),
        ("code", c_uint32),
        ("gpu", c_uint32),
        ("first", c_uint32),
        ("last", c_uint32),
        ("seen", c_uint32),
        ("used", c_uint32),
    ]


class FunctionCount(Structure):
    """Calls of one NVML function: all, those that did not answer SUCCESS, those that changed the machine."""

    _fields_ = [("calls", c_uint64), ("failed", c_uint64), ("changes", c_uint64)]


class TraceEntry(Structure):
    _fields_ = [
        ("time_ns", c_uint64),
        ("pid", c_uint32),
        ("function", c_uint32),
        ("gpu", c_uint32),
        ("result", c_int32),
    ]


class State(Structure):
    """The whole machine. `init_result` is what nvmlInit answers; `up` falls to 0 when the machine is taken down.

    With `reset_together`, as without NVIDIA's Fabric Manager, the cards can only be reset all at once.
    """

    _fields_ = [
        ("magic", c_char * 8),
        ("layout", c_uint32),
        ("up", c_uint32),
        ("init_result", c_uint32),
        ("owner_uid", c_uint32),
        ("cuda_version", c_uint32),
        ("gpu_count", c_uint32),
        ("model_count", c_uint32),
        ("generation", c_uint32),
        ("reboots", c_uint32),
        ("tracing", c_uint32),
        ("reset_together", c_uint32),
        ("reserved", c_uint32),
        ("trace_count", c_uint64),
        ("changes", c_uint64),
        ("machine", c_char * 64),
        ("driver_version", c_char * 32),
        ("nvml_version", c_char * 32),
        ("models", Model * MAX_MODELS),
        ("gpus", Gpu * MAX_GPUS),
        ("faults", Fault * MAX_FAULTS),
        ("functions", FunctionCount * MAX_FUNCTIONS),
        ("trace", TraceEntry * MAX_TRACE),
    ]


STRUCTURES: tuple[type[Structure], ...] = (
    Placement,
    ComputeProfile,
    Profile,
    Model,
    ComputeInstance,
    GpuInstance,
    Process,
    Gpu,
    Fault,
    FunctionCount,
    TraceEntry,
    State,
)


def constants() -> dict[str, int]:
    """The numbers of this file that C needs as well."""
    return {name: value for name, value in globals().items() if name.isupper() and isinstance(value, int)}


def _snake(name: str) -> str:
    return "".join("_" + letter.lower() if letter.isupper() else letter for letter in name).lstrip("_")


_C_TYPES: dict[Any, str] = {c_char: "char", c_int32: "int32_t", c_uint32: "uint32_t", c_uint64: "uint64_t"}


def _c_field(name: str, kind: Any) -> str:
    suffix = ""
    while issubclass(kind, Array):
        suffix += f"[{kind._length_}]"
        kind = kind._type_
    return f"    {_C_TYPES.get(kind) or 'struct ' + _snake(kind.__name__)} {name}{suffix};"


def c_header() -> str:
    """layout.h: the structures in C, checked by the compiler against what ctypes made of them."""
    lines = [f'#define MAGIC "{MAGIC.decode()}"', *(f"#define {name} {value}u" for name, value in constants().items())]
    for structure in STRUCTURES:
        name = _snake(structure.__name__)
        fields = [(field[0], field[1]) for field in structure._fields_]
        lines += [f"struct {name} {{", *(_c_field(*field) for field in fields), "};"]
        lines.append(f'_Static_assert(sizeof(struct {name}) == {sizeof(structure)}, "{name}");')
        for field, _kind in fields:
            offset = getattr(structure, field).offset
            lines.append(f'_Static_assert(offsetof(struct {name}, {field}) == {offset}, "{name}.{field}");')
    return "\n".join(lines) + "\n"


def signature(functions: list[str]) -> int:
    """One number for the layout and the numbering of the functions: library and state must agree on it."""
    return zlib.crc32((c_header() + "\n".join(functions)).encode())
