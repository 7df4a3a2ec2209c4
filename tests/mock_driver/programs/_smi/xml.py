# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""-q -x: the part of the XML that a program would read; elements that are there are as the real one writes them."""

from __future__ import annotations

from html import escape

from _smi import mig_devices, reading
from _smi.errors import NvmlError
from _smi.mig_devices import MigDevice
from _smi.nvml import Device, Nvml


class _Tree:
    """Indented elements."""

    def __init__(self) -> None:
        self.text = ""
        self._depth = 0

    def line(self, text: str) -> None:
        self.text += "\t" * self._depth + text + "\n"

    def leaf(self, name: str, value: str) -> None:
        self.line(f"<{name}>{escape(value, quote=False)}</{name}>")

    def open(self, name: str, attributes: str = "") -> None:
        self.line(f"<{name}{attributes}>")
        self._depth += 1

    def close(self, name: str) -> None:
        self._depth -= 1
        self.line(f"</{name}>")


def _mig(tree: _Tree, device: Device) -> None:
    tree.open("mig_mode")
    tree.leaf("current_mig", reading.or_reason(lambda: reading.enabled(device.mig_mode()[0])))
    tree.leaf("pending_mig", reading.or_reason(lambda: reading.enabled(device.mig_mode()[1])))
    tree.close("mig_mode")


def _mig_device(tree: _Tree, device: MigDevice) -> None:
    had = device.attributes
    tree.open("mig_device")
    tree.leaf("index", str(device.index))
    tree.leaf("gpu_instance_id", str(device.gpu_instance))
    tree.leaf("compute_instance_id", str(device.compute_instance))
    tree.open("device_attributes")
    tree.open("shared")
    tree.leaf("multiprocessor_count", str(had.sm))
    tree.leaf("copy_engine_count", str(had.ce))
    tree.leaf("encoder_count", str(had.enc))
    tree.leaf("decoder_count", str(had.dec))
    tree.leaf("ofa_count", str(had.ofa))
    tree.leaf("jpg_count", str(had.jpeg))
    tree.close("shared")
    tree.close("device_attributes")
    tree.open("ecc_error_count")
    tree.open("volatile_count")
    tree.leaf("sram_uncorrectable", str(device.ecc_errors))
    tree.close("volatile_count")
    tree.close("ecc_error_count")
    tree.open("fb_memory_usage")
    for name in ("total", "reserved", "used", "free"):
        tree.leaf(name, f"{getattr(device.memory, name)} MiB")
    tree.close("fb_memory_usage")
    tree.open("bar1_memory_usage")
    for name in ("total", "used", "free"):
        tree.leaf(name, f"{getattr(device.bar1, name)} MiB")
    tree.close("bar1_memory_usage")
    tree.close("mig_device")


def _mig_devices(tree: _Tree, device: Device) -> None:
    """The real one does not indent what is in this element."""
    found = mig_devices.read(device) if device.mig_enabled() else []
    tree.line("<mig_devices>")
    if not found:
        tree.line("\tNone")
    for mig_device in found:
        _mig_device(tree, mig_device)
    tree.line("</mig_devices>")


def _pci(tree: _Tree, device: Device) -> None:
    tree.open("pci")
    try:
        info = device.pci()
    except NvmlError:
        tree.leaf("pci_bus_id", reading.or_reason(device.bus_id))
    else:
        tree.leaf("pci_bus", f"{info.bus:02X}")
        tree.leaf("pci_device", f"{info.device:02X}")
        tree.leaf("pci_domain", f"{info.domain:04X}")
        tree.leaf("pci_device_id", f"{info.pciDeviceId:08X}")
        tree.leaf("pci_bus_id", info.busId.decode())
        tree.leaf("pci_sub_system_id", f"{info.pciSubSystemId:08X}")
    tree.close("pci")


def _memory(tree: _Tree, device: Device) -> None:
    tree.open("fb_memory_usage")
    tree.leaf("total", reading.mebibytes(lambda: device.memory().total))
    tree.leaf("reserved", reading.mebibytes(lambda: device.memory().reserved))
    tree.leaf("used", reading.mebibytes(lambda: device.memory().used))
    tree.leaf("free", reading.mebibytes(lambda: device.memory().free))
    tree.close("fb_memory_usage")


def _processes(tree: _Tree, nvml: Nvml, device: Device) -> None:
    tree.open("processes")
    for process in reading.by_pid(device):
        tree.open("process_info")
        gpu_instance, compute_instance = reading.instances(process)
        tree.leaf("gpu_instance_id", gpu_instance)
        tree.leaf("compute_instance_id", compute_instance)
        tree.leaf("pid", str(process.pid))
        tree.leaf("type", process.kind)
        tree.leaf("process_name", reading.program(nvml, process.pid))
        tree.leaf("used_memory", reading.used_memory(process))
        tree.close("process_info")
    tree.close("processes")


def _gpu(tree: _Tree, nvml: Nvml, device: Device) -> None:
    tree.open("gpu", f' id="{reading.or_reason(device.bus_id)}"')
    tree.leaf("product_name", reading.or_reason(device.name))
    tree.leaf("persistence_mode", reading.or_reason(lambda: reading.enabled(device.persistence_mode())))
    _mig(tree, device)
    _mig_devices(tree, device)
    tree.leaf("serial", reading.or_reason(device.serial))
    tree.leaf("uuid", reading.or_reason(device.uuid))
    tree.leaf("minor_number", reading.or_reason(lambda: device.number("GetMinorNumber")))
    _pci(tree, device)
    _memory(tree, device)
    tree.leaf("compute_mode", reading.or_reason(lambda: reading.compute_mode(device)))
    _processes(tree, nvml, device)
    tree.close("gpu")
    tree.text += "\n"


def text(nvml: Nvml, devices: list[Device]) -> str:
    tree = _Tree()
    tree.line('<?xml version="1.0" ?>')
    tree.line('<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">')
    tree.open("nvidia_smi_log")
    tree.leaf("timestamp", reading.timestamp())
    tree.leaf("driver_version", reading.or_reason(nvml.driver_version))
    tree.leaf("cuda_version", reading.or_reason(nvml.cuda_version))
    tree.leaf("attached_gpus", reading.or_reason(nvml.count))
    for device in devices:
        _gpu(tree, nvml, device)
    tree.close("nvidia_smi_log")
    return tree.text
