# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. MIG through nvidia-smi: the tables of 470 to 555 differ in width, so lines are read by shape."""

from __future__ import annotations

import re
import typing as t

from .._command import Answer
from .._errors import CommandFailed, NotSupported
from .._gpu import Gpu, Mig
from .._instance import ComputeInstance, ComputeProfile, GpuInstance, Placement, Profile, compute_name
from .nvidia_smi_call import LOST, Ask, failed

_NONE = re.compile(r"No (GPU|compute) instances found|No MIG-(enabled|supported) devices found", re.IGNORECASE)
_PENDING = re.compile(r"^Warning: MIG mode is in pending \w+ state for GPU [0-9A-Fa-f:]+\.\d:(.+)$", re.MULTILINE)
_PROFILE = re.compile(r"\|\s+\d+\s+MIG (\S+)\s+(\d+)\s+(\d+)/(\d+)\s+([\d.]+)\s+(?:Yes|No)\s")
_PLACEMENTS = re.compile(r"Profile ID\s+(\d+) Placements?\s*:\s*\{([\d,]*)\}:(\d+)")
_GPU_INSTANCE = re.compile(r"\|\s+\d+\s+MIG (\S+)\s+(\d+)\s+(\d+)\s+(\d+):(\d+)\s+\|")
_COMPUTE_INSTANCE = re.compile(r"\|\s+\d+\s+(\d+)\s+MIG (\S+)\s+(\d+)\s+(\d+)\s+(\d+):(\d+)\s+\|")
_COMPUTE_PROFILE = re.compile(r"\|\s+\d+\s+(\d+)\s+MIG (\S+)\s+(\d+)(\*?)\s+(\d+)/(\d+)\s")
_CREATED = re.compile(r"Successfully created (?:GPU|compute) instance ID\s+(\d+)")
_DEVICE = re.compile(r"^\s+MIG \S+\s+Device\s+(\d+): \(UUID: (MIG-[^)]+)\)", re.MULTILINE)
_PLACE = r"<gpu_instance_id>(\d+)</gpu_instance_id>\s*<compute_instance_id>(\d+)</compute_instance_id>"
_NO_MODE = ("[N/A]", "N/A", "[Not Supported]", "")  # of a GPU that has no MIG
_MIB = 1024


class NvidiaSmiMig:
    """The part of the driver that cuts GPUs."""

    _ask: Ask

    def __init__(self) -> None:
        self._profiles: dict[str | None, tuple[Profile, ...]] = {}

    def mig_mode(self, gpu: Gpu) -> Mig:
        """See Driver."""
        value = self._ask.field(gpu, "mig.mode.current,mig.mode.pending")
        current, _comma, pending = value.partition(",")
        found = parse_mig(current, pending)
        if found is None:
            raise CommandFailed(f"Cannot read the MIG mode of {gpu.label}: nvidia-smi says: {value}")
        return found

    def set_mig_mode(self, gpu: Gpu, on: bool) -> str | None:
        """See Driver."""
        answer = self._ask.of(gpu, "-mig", str(int(on)))
        action = f"{'enable' if on else 'disable'} MIG mode of {gpu.label}"
        if answer.rc != 0:
            raise failed(action, answer)
        pending = _PENDING.search(answer.out)
        if pending:
            return pending.group(1).strip().lower()
        if re.search(r"not supported", answer.text, re.IGNORECASE):
            raise NotSupported(f"Cannot {action}: {answer.text}")
        return None

    def mig_profiles(self, gpu: Gpu) -> tuple[Profile, ...]:
        """See Driver. What a card offers does not change while it is driven."""
        if gpu.uuid not in self._profiles:
            self._profiles[gpu.uuid] = self._read_profiles(gpu)
        return self._profiles[gpu.uuid]

    def _read_profiles(self, gpu: Gpu) -> tuple[Profile, ...]:
        index = self._ask.index(gpu)
        profiles, placements = (self._ask("mig", *index, listing) for listing in ("-lgip", "-lgipp"))
        for answer in (profiles, placements):
            if _NONE.search(answer.text):
                raise NotSupported(f"Cannot list the MIG profiles of {gpu.label}: nvidia-smi says: {answer.text}")
            if answer.rc != 0:
                raise failed(f"list the MIG profiles of {gpu.label}", answer)
        found = parse_profiles(profiles.out, placements.out)
        if not found:
            raise NotSupported(f"Cannot list the MIG profiles of {gpu.label}: nvidia-smi says: {profiles.text}")
        return found

    def instances(self, gpu: Gpu) -> tuple[GpuInstance, ...]:
        """See Driver."""
        index = self._ask.index(gpu)
        listed = self._ask("mig", *index, "-lgi")
        if _NONE.search(listed.text):
            return ()
        compute = self._ask("mig", *index, "-lci")
        detail = self._ask(*index, "-q", "-x")
        devices = self._ask("-L")  # cannot be asked of one GPU
        for answer in (listed, detail, *([] if LOST.search(devices.text) else [devices])):
            if answer.rc != 0:
                raise failed(f"list the MIG instances of {gpu.label}", answer)
        if compute.rc != 0 and not _NONE.search(compute.text):
            raise failed(f"list the compute instances of {gpu.label}", compute)
        found = parse_instances(listed.out, compute.out, detail.out, _of_gpu(devices.out, gpu))
        # One without compute instances may have gone between the questions.
        if not all(one.compute_instances for one in found) and self._ask("mig", *index, "-lgi").out != listed.out:
            raise CommandFailed(f"The MIG instances of {gpu.label} changed while they were listed")
        if not all(part.uuid for one in found for part in one.compute_instances):
            raise CommandFailed(f"Cannot find the MIG devices of {gpu.label}: nvidia-smi says: {devices.text}")
        return found

    def compute_profiles(self, gpu: Gpu, instance: int) -> tuple[ComputeProfile, ...]:
        """See Driver."""
        answer = self._mig(gpu, "-gi", str(instance), "-lcip")
        if answer.rc != 0:
            raise failed(f"list the compute instance profiles of GPU instance {instance} of {gpu.label}", answer)
        places = self._mig(gpu, "-gi", str(instance), "-lcipp")  # not known to 470
        placements = parse_placements(places.out) if places.rc == 0 else {}
        return tuple(
            ComputeProfile(int(number), name, _compute_slices(name), int(most), placements.get(int(number), ()))
            for _gi, name, number, _star, _free, most in _COMPUTE_PROFILE.findall(answer.out)
        )

    def create_gpu_instance(self, gpu: Gpu, profile: Profile, placement: Placement) -> int:
        """See Driver."""
        answer = self._mig(gpu, "-cgi", f"{profile.id}:{placement.start}")
        return _created(
            f"create GPU instance {profile.name} at {placement.start}:{placement.size} on {gpu.label}", answer
        )

    def destroy_gpu_instance(self, gpu: Gpu, instance: int) -> None:
        """See Driver."""
        _destroyed(f"destroy GPU instance {instance} of {gpu.label}", self._mig(gpu, "-dgi", "-gi", str(instance)))

    def create_compute_instance(
        self, gpu: Gpu, instance: int, profile: ComputeProfile, placement: Placement | None
    ) -> int:
        """See Driver."""
        what = str(profile.id) if placement is None else f"{profile.id}:{placement.start}"
        answer = self._mig(gpu, "-cci", what, "-gi", str(instance))
        at = "" if placement is None else f" at {placement.start}"
        return _created(f"create compute instance {profile.name} in GPU instance {instance} of {gpu.label}{at}", answer)

    def destroy_compute_instance(self, gpu: Gpu, instance: int, compute_instance: int) -> None:
        """See Driver."""
        answer = self._mig(gpu, "-dci", "-gi", str(instance), "-ci", str(compute_instance))
        _destroyed(f"destroy compute instance {compute_instance} in GPU instance {instance} of {gpu.label}", answer)

    def _mig(self, gpu: Gpu, *arguments: str) -> Answer:
        return self._ask.of(gpu, *arguments, group=("mig",))


def parse_mig(current: str, pending: str) -> Mig | None:
    """Return the MIG mode from the fields of ``--query-gpu``; None where the driver cannot tell it of a GPU that may have one."""
    modes = {"enabled": True, "disabled": False}
    now, later = current.strip(), pending.strip()
    if now in _NO_MODE:
        return Mig(False, False, False)
    if now.lower() not in modes:
        return None
    return Mig(True, modes[now.lower()], modes.get(later.lower(), modes[now.lower()]))


def _created(action: str, answer: Answer) -> int:
    """From 550 on, creating on a GPU without MIG mode fails with exit status 0: only the printed id counts."""
    match = _CREATED.search(answer.out)
    if answer.rc != 0 or match is None:
        raise failed(action, answer)
    return int(match.group(1))


def _destroyed(action: str, answer: Answer) -> None:
    """An id that does not exist is passed over in silence."""
    if answer.rc != 0 or "Successfully destroyed" not in answer.out:
        raise failed(action, answer)


def _of_gpu(text: str, gpu: Gpu) -> dict[int, str]:
    """Return the MIG devices' UUIDs by index of one GPU from ``-L``."""
    for block in re.split(r"^(?=GPU \d+:)", text, flags=re.MULTILINE):
        if f"(UUID: {gpu.uuid})" in block:
            return {int(index): uuid for index, uuid in _DEVICE.findall(block)}
    return {}


def _slices(name: str) -> int:
    """The leading digit of 3g.20gb."""
    match = re.match(r"(\d+)g\.", name)
    if match is None:
        raise CommandFailed(f"Cannot understand the MIG profile name that nvidia-smi gives: {name!r}")
    return int(match.group(1))


def _compute_slices(name: str) -> int:
    """The leading digit of 1c.3g.20gb; the profile that fills its GPU instance has that one's name."""
    match = re.match(r"(\d+)c\.", name)
    return int(match.group(1)) if match else _slices(name)


def parse_profiles(profiles: str, placements: str) -> tuple[Profile, ...]:
    """Return the profiles of ``-lgip`` with the places of ``-lgipp``."""
    places = parse_placements(placements)
    return tuple(
        Profile(int(number), name, _slices(name), round(float(gib) * _MIB), int(most), places.get(int(number), ()))
        for name, number, _free, most, gib in _PROFILE.findall(profiles)
    )


def parse_placements(text: str) -> dict[int, tuple[Placement, ...]]:
    """Return the places of each profile by its id, of ``-lgipp`` or ``-lcipp``."""
    return {
        int(number): tuple(Placement(int(start), int(size)) for start in starts.split(",") if start)
        for number, starts, size in _PLACEMENTS.findall(text)
    }


def parse_instances(listed: str, compute: str, detail: str, uuids: t.Mapping[int, str]) -> tuple[GpuInstance, ...]:
    """Return the instances of ``-lgi`` and ``-lci`` with UUIDs by device index, and whose index that is and the processes by ``-q -x``."""
    keys, busy = _devices(detail), _processes(detail)
    parts: dict[int, list[ComputeInstance]] = {}
    for instance, name, _profile, number, start, size in _COMPUTE_INSTANCE.findall(compute):
        key = (int(instance), int(number))
        found = ComputeInstance(
            key[1],
            name,
            Placement(int(start), int(size)),
            uuids.get(keys.get(key, -1)),
            tuple(sorted(busy.get(key, ()))),
        )
        parts.setdefault(key[0], []).append(found)
    instances = [
        GpuInstance(
            int(number),
            name,
            Placement(int(start), int(size)),
            tuple(
                part._replace(profile=compute_name(part.profile, name))
                for part in sorted(parts.get(int(number), []), key=lambda part: part.id)
            ),
        )
        for name, _profile, number, start, size in _GPU_INSTANCE.findall(listed)
    ]
    return tuple(sorted(instances, key=lambda instance: instance.placement))


def _devices(detail: str) -> dict[tuple[int, int], int]:
    pattern = re.compile(rf"<mig_device>\s*<index>(\d+)</index>\s*{_PLACE}")
    return {(int(instance), int(part)): int(index) for index, instance, part in pattern.findall(detail)}


def _processes(detail: str) -> dict[tuple[int, int], list[int]]:
    found: dict[tuple[int, int], list[int]] = {}
    for instance, part, pid in re.findall(rf"<process_info>\s*{_PLACE}\s*<pid>(\d+)</pid>", detail):
        found.setdefault((int(instance), int(part)), []).append(int(pid))
    return found
