# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The program: which question was asked, and the answer on stdout; nothing ever goes to stderr, as with the real one."""

from __future__ import annotations

import sys

import _machine
from _smi import errors, log, mig_devices, mig_options, modify, options, query, reset, selection, table, xml
from _smi.errors import NvmlError, Stop
from _smi.mig import Mig
from _smi.nvml import Nvml


def _list(nvml: Nvml) -> int:
    total = selection.count(nvml, "Unable to determine the number of available GPUs: {}\n")
    if not total:
        sys.stdout.write("No devices found.\n")
    status = 0
    for index in range(total):
        try:
            device = nvml.device(index)
        except NvmlError as error:
            reason = selection.lost_or_unknown(error.code)
            sys.stdout.write(f"Unable to determine the device handle for gpu {index}: {reason}")
            status = errors.status(error.code)
            continue
        try:
            name = device.name()
        except NvmlError as error:
            sys.stdout.write(f"Unable to determine the product name for gpu {index}: {errors.value(error.code)}\n")
            status = errors.status(error.code)
            continue
        try:
            uuid = device.uuid()
        except NvmlError as error:
            uuid = errors.value(error.code)
        sys.stdout.write(f"GPU {index}: {name} (UUID: {uuid})\n" + mig_devices.listing(device))
    return status


def _run(arguments: list[str]) -> int:
    nvml = Nvml()
    mig = arguments[:1] == ["mig"]
    found = mig_options.parse(arguments[1:]) if mig else options.parse(arguments)
    wrong = _machine.fault(_machine.SMI)
    _machine.misbehave(wrong)
    if mig:
        Mig(nvml, found, sys.stdout.write, wrong == _machine.LIE).run()
        return 0
    if "list" in found:
        return _list(nvml)
    sections = log.sections(found["display"]) if "display" in found else []
    devices = selection.select(nvml, found.get("id"))
    write = sys.stdout.write
    lie = wrong == _machine.LIE
    for name, change in {**modify.CHANGES, "gpu_reset": reset.gpu_reset}.items():
        if name in found:
            change(write, devices, found["as:" + name], found[name], lie)
            return 0
    if "query_gpu" in found:
        write(query.gpus(nvml, devices, found["query_gpu"], found["format"]))
    elif "query_compute_apps" in found:
        write(query.compute_apps(nvml, devices, found["query_compute_apps"], found["format"]))
    elif "xml" in found:
        write(xml.text(nvml, devices))
    elif "display" in found:
        write(log.text(nvml, devices, sections))
    elif "query" in found:
        raise Stop("mock nvidia-smi: option -q is known to this stand-in only together with -d or -x\n", 2)
    else:
        write(table.text(nvml, devices))
    return 0


def main(arguments: list[str]) -> int:
    try:
        return _run(arguments)
    except Stop as stop:
        sys.stdout.write(stop.text)
        return stop.status
