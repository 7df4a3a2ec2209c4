# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a test does to the machine from outside: processes, faults, lost cards, reboots."""

from __future__ import annotations

from argparse import Namespace
from ctypes import addressof, memset, sizeof

from command.machine import error_code
from library import layout
from library.faults import SPECIAL, SPECIAL_NAMES, add_fault, clear_faults
from library.processes import KIND_NAMES, MIB, add_process, find_gpu, living, remove_process
from library.reset import restart_gpu
from library.state import HOME, MockDriverError, nvml, open_state


def process(options: Namespace) -> int:
    with open_state(options.state) as state:
        if options.verb == "add":
            add_process(state, options.gpu, options.pid, options.kind, options.memory, options.gi, options.ci)
        elif options.verb == "remove":
            remove_process(state, options.gpu, options.pid)
        else:
            for index in range(state.gpu_count):
                for entry in living(state.gpus[index]):
                    at = "" if entry.gpu_instance == layout.ANY else f" {entry.gpu_instance}/{entry.compute_instance}"
                    print(f"GPU {index}{at}  pid {entry.pid}  {KIND_NAMES[entry.kind]}  {entry.memory // MIB} MiB")
    return 0


def programs() -> list[str]:
    return sorted(path.name for path in (HOME / "programs").glob("*") if path.is_file() and "." not in path.name)


def fault_number(target: str, code: str) -> int:
    special = SPECIAL.get(code.upper())
    if target in programs():
        if special is None:
            raise MockDriverError(f"{code!r} cannot happen to a program; possible are {', '.join(SPECIAL)}")
        return special
    if target not in nvml()["functions"]:
        raise MockDriverError(f"{target!r} is neither a function of nvml.h nor one of {', '.join(programs())}")
    if special == layout.FAULT_LIE and target not in nvml()["setters"]:
        raise MockDriverError(f"LIE is for functions that change something; {target} only reads")
    if special in (layout.FAULT_LIE, layout.FAULT_HANG):
        return special
    if special:
        raise MockDriverError(f"{code} is for programs; an NVML function can HANG, LIE or answer a code")
    return error_code(code)


def fault_gpu(state: layout.State, target: str, name: str | None) -> int:
    if name is None:
        return layout.ANY
    if target not in nvml()["per_gpu"]:
        raise MockDriverError(f"--gpu: {target} is not called for one card")
    wanted = bytes(find_gpu(state, name).uuid)
    return next(index for index in range(state.gpu_count) if state.gpus[index].uuid == wanted)


def describe(fault: layout.Fault) -> str:
    code = SPECIAL_NAMES.get(fault.code) or next(name for name, code in nvml()["errors"].items() if code == fault.code)
    calls = f"calls {fault.first} to {fault.last}" if fault.last != layout.ANY else f"calls from {fault.first} on"
    where = "" if fault.gpu == layout.ANY else f" for GPU {fault.gpu}"
    return f"{fault.target.decode()}{where}: {code}, {calls}, {fault.seen} seen"


def fault(options: Namespace) -> int:
    with open_state(options.state) as state:
        if options.target == "clear":
            clear_faults(state)
        elif options.target == "list":
            for entry in state.faults:
                if entry.used:
                    print(describe(entry))
        elif options.code is None:
            raise MockDriverError("give what goes wrong: an NVML code by name or number, or " + ", ".join(SPECIAL))
        else:
            number = fault_number(options.target, options.code)
            first, last = options.first or options.only or 1, options.only or layout.ANY
            add_fault(state, options.target, number, first, last, fault_gpu(state, options.target, options.gpu))
    return 0


def lose(options: Namespace) -> int:
    with open_state(options.state) as state:
        find_gpu(state, options.gpu).lost = options.lost
    return 0


def reboot(options: Namespace) -> int:
    """What lives in the driver's memory is lost; a MIG mode only where the generation keeps it on the card."""
    with open_state(options.state) as state:
        state.reboots += 1
        for index in range(state.gpu_count):
            gpu = state.gpus[index]
            if not state.models[gpu.model].mig_kept_over_reboot:
                gpu.mig_pending = 0
            gpu.lost = gpu.compute_mode = gpu.accounting = 0
            memset(addressof(gpu.processes), 0, sizeof(gpu.processes))
            restart_gpu(gpu)
    return 0
