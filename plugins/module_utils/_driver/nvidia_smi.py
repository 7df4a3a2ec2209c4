# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. Backend ``nvidia_smi``: the driver's own command. The only file that runs or reads nvidia-smi."""

from __future__ import annotations

import re
import typing as t

from .._command import Answer, Commands
from .._errors import CommandFailed, NotSupported
from .._gpu import Capability, Gpu, Process, System, kernel_pci
from .interface import MigDriver
from .nvidia_smi_call import LOST, Ask, failed
from .nvidia_smi_mig import NvidiaSmiMig, parse_mig

FIELDS = (
    "index",
    "uuid",
    "pci.bus_id",
    "name",
    "compute_cap",
    "memory.total",
    "compute_mode",
    "persistence_mode",
    "mig.mode.current",
    "mig.mode.pending",
)
# What drivers print where they cannot tell.
UNKNOWN = (
    "[N/A]",
    "N/A",
    "[Not Supported]",
    "ERR!",
    "[Unknown Error]",
    "[GPU requires reset]",
    "[Insufficient Permissions]",
    "",
)
_NO_DEVICES = re.compile(r"No devices (were )?found", re.IGNORECASE)
# Of an index that there is not, when some GPU is lost: it then looks among names for it, and meets the lost one (535).
_NO_SUCH_INDEX = re.compile(rf"^Problem with GPU|{_NO_DEVICES.pattern}", re.IGNORECASE)
_HIGHEST_INDEX = 63


class NvidiaSmiDriver(NvidiaSmiMig, MigDriver):
    """nvidia-smi, run once a question."""

    backend = "nvidia_smi"

    def __init__(self, commands: Commands, program: str) -> None:
        super().__init__()
        self._ask = Ask(commands, program)

    def close(self) -> None:
        """Nothing is held between two commands."""

    def reopen(self) -> None:
        """Nothing is held between two commands."""

    def system(self) -> System:
        answer = self._ask("-q", "-d", "COMPUTE")
        return System(
            driver_version=_labelled(answer.out, "Driver Version"),
            nvml_version=None,
            cuda_version=_labelled(answer.out, "CUDA Version"),
        )

    def gpus(self) -> list[Gpu]:
        answer = self._query()
        if answer.rc == 0:
            gpus = [parse_gpu(line) for line in answer.out.splitlines() if line.strip()]
        elif _NO_DEVICES.search(answer.text):
            return []
        elif LOST.search(answer.text):
            gpus = self._one_by_one()
        else:
            raise failed("list the GPUs", answer)
        if all(gpu.error for gpu in gpus):
            return gpus
        processes = self._processes([gpu.index for gpu in gpus if not gpu.error])
        return [gpu._replace(processes=processes.get(gpu.pci_bus_id or "", ())) for gpu in gpus]

    def _query(self, *selection: str) -> Answer:
        return self._ask(*selection, f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader,nounits")

    def _one_by_one(self) -> list[Gpu]:
        """One lost GPU makes nvidia-smi refuse to list any: ask for each."""
        gpus: list[Gpu] = []
        for index in range(_HIGHEST_INDEX + 1):
            answer = self._query("-i", str(index))
            if answer.rc == 0:
                gpus.append(parse_gpu(answer.out.strip().splitlines()[0]))
            elif _NO_SUCH_INDEX.search(answer.text):
                break
            elif LOST.search(answer.text):
                gpus.append(Gpu(index=index, error=answer.text))
            else:
                raise failed(f"read GPU {index}", answer)
        return gpus

    def _processes(self, indices: t.Sequence[int]) -> dict[str, tuple[Process, ...]]:
        answer = self._ask("-i", ",".join(map(str, indices)), "-q", "-d", "PIDS")
        if answer.rc != 0:
            raise failed("list the processes", answer)
        return parse_processes(answer.out)

    def compute_mode(self, gpu: Gpu) -> str:
        value = self._ask.field(gpu, "compute_mode")
        return parse_compute_mode(value) or value

    def set_compute_mode(self, gpu: Gpu, mode: str) -> None:
        _check(f"set the compute mode of {gpu.label} to {mode}", self._ask.of(gpu, "-c", mode.upper()))

    def set_persistence_mode(self, gpu: Gpu, on: bool) -> None:
        _check(f"set the persistence mode of {gpu.label}", self._ask.of(gpu, "-pm", str(int(on))))


def _check(action: str, answer: Answer) -> None:
    """What a GPU does not support is a warning with exit status 0."""
    if answer.rc != 0:
        raise failed(action, answer)
    if re.search(r"not supported", answer.text, re.IGNORECASE):
        raise NotSupported(f"Cannot {action}: {answer.text}")


def _labelled(text: str, label: str) -> str | None:
    match = re.search(rf"^\s*{re.escape(label)}\s*:\s*(\S+)", text, re.MULTILINE)
    return match.group(1) if match else None


def _known(value: str) -> str | None:
    return None if value in UNKNOWN or value.startswith("[") else value


def parse_gpu(line: str) -> Gpu:
    """Return the GPU that a line of ``--query-gpu`` with ``FIELDS`` describes."""
    values = [value.strip() for value in line.split(",")]
    if len(values) != len(FIELDS) or not values[0].isdigit():
        raise CommandFailed(f"Cannot understand what nvidia-smi says of a GPU: {line!r}")
    row = dict(zip(FIELDS, values))
    uuid = _known(row["uuid"])
    pci = _known(row["pci.bus_id"])
    address = kernel_pci(pci) if pci else None
    lost = LOST.search(line)  # it stands in single fields, and nvidia-smi exits 0
    if lost:
        return Gpu(index=int(row["index"]), uuid=uuid, pci_bus_id=address, error=lost.group(0))
    return Gpu(
        index=int(row["index"]),
        uuid=uuid,
        pci_bus_id=address,
        name=_known(row["name"]),
        compute_capability=_capability(row["compute_cap"]),
        memory_total_mib=_integer(row["memory.total"]),
        compute_mode=parse_compute_mode(row["compute_mode"]),
        persistence_mode=_enabled(row["persistence_mode"]),
        mig=parse_mig(row["mig.mode.current"], row["mig.mode.pending"]),
        error=None if uuid else f"nvidia-smi gives no UUID for it: {row['uuid']}",
    )


def parse_compute_mode(value: str) -> str | None:
    """Return the name of a compute mode in any spelling that drivers print (Exclusive_Process, E. Process, EXCLUSIVE_PROCESS)."""
    folded = re.sub(r"[\s_.]+", "_", value.strip().lower())
    names = {"e_process": "exclusive_process", "e_thread": "exclusive_thread", "exclusive": "exclusive_process"}
    name = names.get(folded, folded)
    return name if name in ("default", "exclusive_thread", "exclusive_process", "prohibited") else None


def _capability(value: str) -> Capability | None:
    match = re.match(r"^(\d+)\.(\d+)$", value)
    return (int(match.group(1)), int(match.group(2))) if match else None


def _integer(value: str) -> int | None:
    return int(value) if value.isdigit() else None


def _enabled(value: str) -> bool | None:
    return {"enabled": True, "disabled": False}.get(value.lower())


def parse_processes(text: str) -> dict[str, tuple[Process, ...]]:
    """Return the processes of each GPU, by its PCI address, from ``-q -d PIDS``."""
    found: dict[str, list[Process]] = {}
    pci = ""
    for line in text.splitlines():
        heading = re.match(r"^GPU ([0-9A-Fa-f:.]+)\s*$", line)
        if heading:
            pci = kernel_pci(heading.group(1))
        label, _colon, value = (part.strip() for part in line.partition(": "))
        if label == "Process ID" and value.isdigit():
            found.setdefault(pci, []).append(Process(int(value), None, None, "C"))
        elif found.get(pci) and label == "Type":
            found[pci][-1] = found[pci][-1]._replace(type=value)
        elif found.get(pci) and label == "Name":
            found[pci][-1] = found[pci][-1]._replace(name=_known(value))
        elif found.get(pci) and label == "Used GPU Memory":
            found[pci][-1] = found[pci][-1]._replace(memory_mib=_integer(value.split(" ")[0]))
    return {key: tuple(sorted(value, key=lambda process: process.pid)) for key, value in found.items()}
