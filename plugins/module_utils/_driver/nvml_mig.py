# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. MIG through NVML."""

from __future__ import annotations

import ctypes
import functools
import typing as t

from .._errors import CommandFailed, NotSupported, SharingError
from .._gpu import Gpu, Mig
from .._instance import ComputeInstance, ComputeProfile, GpuInstance, Placement, Profile, compute_name
from .interface import PENDING, refusal
from .nvml_call import NO_SUCH_FUNCTION, call, code, kind, optional, pynvml

_MOST_PLACEMENTS = 32
_NO_SUCH = (2, 3)  # invalid argument, not supported: this GPU does not offer it
_NO_DEVICE = (2, 6)  # invalid argument, not found: no MIG device has this index

Uuids = t.Mapping[tuple[int, int], str]  # by GPU instance and compute instance
Busy = t.Mapping[tuple[int, int], t.Sequence[int]]


class NvmlMig:
    """The part of the driver that cuts GPUs."""

    def __init__(self) -> None:
        self._handles: dict[str | None, t.Any] = {}
        self._created: dict[tuple[str | None, int], t.Any] = {}  # handles of GPU instances that were made here
        self._profiles: dict[str | None, tuple[Profile, ...]] = {}
        self._compute_profiles: dict[tuple[str | None, str], tuple[ComputeProfile, ...]] = {}

    def _handle(self, gpu: Gpu) -> t.Any:
        if gpu.uuid not in self._handles:
            self._handles[gpu.uuid] = call(f"find {gpu.label}", lambda: pynvml.nvmlDeviceGetHandleByUUID(gpu.uuid))
        return self._handles[gpu.uuid]

    def mig_mode(self, gpu: Gpu) -> Mig:
        """See Driver."""
        return call(f"read the MIG mode of {gpu.label}", lambda: read_mode(self._handle(gpu)))

    def set_mig_mode(self, gpu: Gpu, on: bool) -> str | None:
        """See Driver."""
        action = f"{'enable' if on else 'disable'} MIG mode of {gpu.label}"
        status = call(action, lambda: pynvml.nvmlDeviceSetMigMode(self._handle(gpu), int(on)))
        return None if status == 0 else PENDING.get(status, str(pynvml.NVMLError(status)).lower())

    def mig_profiles(self, gpu: Gpu) -> tuple[Profile, ...]:
        """See Driver. What a card offers does not change while it is driven."""
        if gpu.uuid not in self._profiles:
            handle = self._handle(gpu)
            infos = _offered(
                lambda number: pynvml.nvmlDeviceGetGpuInstanceProfileInfo(handle, number),
                pynvml.NVML_GPU_INSTANCE_PROFILE_COUNT,
            )
            if not infos:
                raise NotSupported(f"The driver offers no MIG profile for {gpu.label}")
            self._profiles[gpu.uuid] = tuple(_profile(info, handle, gpu) for info in infos)
        return self._profiles[gpu.uuid]

    def instances(self, gpu: Gpu) -> tuple[GpuInstance, ...]:
        """See Driver."""
        if not self.mig_mode(gpu).current:
            return ()
        handle = self._handle(gpu)
        uuids = call(f"list the MIG devices of {gpu.label}", lambda: _mig_devices(handle))
        busy = call(f"list the processes in MIG devices of {gpu.label}", lambda: _busy(handle))
        found = []
        for profile in self.mig_profiles(gpu):
            for instance in _listed(
                pynvml.nvmlDeviceGetGpuInstances, pynvml.c_nvmlGpuInstance_t, handle, profile.id, profile.most, gpu
            ):
                found.append(self._read_instance(gpu, instance, profile.name, uuids, busy))
        return tuple(sorted(found, key=lambda instance: instance.placement))

    def _read_instance(self, gpu: Gpu, handle: t.Any, profile: str, uuids: Uuids, busy: Busy) -> GpuInstance:
        info = call(f"read a GPU instance of {gpu.label}", lambda: pynvml.nvmlGpuInstanceGetInfo(handle))
        parts = []
        for offered in self._offered_compute(gpu, handle, profile):
            for part in _listed(
                pynvml.nvmlGpuInstanceGetComputeInstances,
                pynvml.c_nvmlComputeInstance_t,
                handle,
                offered.id,
                offered.most,
                gpu,
            ):
                read = functools.partial(pynvml.nvmlComputeInstanceGetInfo_v2, part)
                found = call(f"read a compute instance of {gpu.label}", read)
                key = (info.id, found.id)
                if key not in uuids:  # it was made or destroyed while the card was read
                    raise CommandFailed(
                        f"Cannot find the MIG device of compute instance {found.id} in GPU instance {info.id} of {gpu.label}"
                    )
                place = Placement(found.placement.start, found.placement.size)
                parts.append(
                    ComputeInstance(found.id, offered.name, place, uuids[key], tuple(sorted(busy.get(key, ()))))
                )
        place = Placement(info.placement.start, info.placement.size)
        return GpuInstance(info.id, profile, place, tuple(sorted(parts, key=lambda part: part.id)))

    def _offered_compute(self, gpu: Gpu, handle: t.Any, profile: str) -> tuple[ComputeProfile, ...]:
        key = (gpu.uuid, profile)
        if key not in self._compute_profiles:
            shared = pynvml.NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED
            infos = _offered(
                lambda number: pynvml.nvmlGpuInstanceGetComputeInstanceProfileInfo(handle, number, shared),
                pynvml.NVML_COMPUTE_INSTANCE_PROFILE_COUNT,
            )
            self._compute_profiles[key] = tuple(
                ComputeProfile(info.id, compute_name(_name(info.name), profile), info.sliceCount, info.instanceCount)
                for info in infos
            )
        return self._compute_profiles[key]

    def compute_profiles(self, gpu: Gpu, instance: int) -> tuple[ComputeProfile, ...]:
        """See Driver."""
        parent = self._gpu_instance(gpu, instance)
        info = call(f"read GPU instance {instance} of {gpu.label}", lambda: pynvml.nvmlGpuInstanceGetInfo(parent))
        profile = next((profile.name for profile in self.mig_profiles(gpu) if profile.id == info.profileId), "")
        offered = self._offered_compute(gpu, parent, profile)
        return tuple(one._replace(placements=_compute_placements(parent, one, gpu)) for one in offered)

    def create_gpu_instance(self, gpu: Gpu, profile: Profile, placement: Placement) -> int:
        """See Driver."""
        place = pynvml.c_nvmlGpuInstancePlacement_t(placement.start, placement.size)
        action = f"create GPU instance {profile.name} at {placement.start}:{placement.size} on {gpu.label}"
        created = call(
            action,
            lambda: pynvml.nvmlDeviceCreateGpuInstanceWithPlacement(self._handle(gpu), profile.id, ctypes.byref(place)),
        )
        number = _id_of(f"read the new GPU instance of {gpu.label}", pynvml.nvmlGpuInstanceGetInfo, created)
        self._created[gpu.uuid, number] = created
        return number

    def destroy_gpu_instance(self, gpu: Gpu, instance: int) -> None:
        """See Driver."""
        call(
            f"destroy GPU instance {instance} of {gpu.label}",
            lambda: pynvml.nvmlGpuInstanceDestroy(self._gpu_instance(gpu, instance)),
        )
        self._created.pop((gpu.uuid, instance), None)

    def create_compute_instance(
        self, gpu: Gpu, instance: int, profile: ComputeProfile, placement: Placement | None
    ) -> int:
        """See Driver."""
        action = f"create compute instance {profile.name} in GPU instance {instance} of {gpu.label}"
        parent = self._gpu_instance(gpu, instance)
        if placement is None:
            created = call(action, lambda: pynvml.nvmlGpuInstanceCreateComputeInstance(parent, profile.id))
        else:
            place = pynvml.c_nvmlComputeInstancePlacement_t(placement.start, placement.size)
            reference = ctypes.byref(place)
            create = pynvml.nvmlGpuInstanceCreateComputeInstanceWithPlacement
            created = call(f"{action} at {placement.start}", lambda: create(parent, profile.id, reference))
        return _id_of(f"read the new compute instance of {gpu.label}", pynvml.nvmlComputeInstanceGetInfo_v2, created)

    def destroy_compute_instance(self, gpu: Gpu, instance: int, compute_instance: int) -> None:
        """See Driver."""

        def destroy() -> None:
            handle = pynvml.nvmlGpuInstanceGetComputeInstanceById(self._gpu_instance(gpu, instance), compute_instance)
            pynvml.nvmlComputeInstanceDestroy(handle)

        call(f"destroy compute instance {compute_instance} in GPU instance {instance} of {gpu.label}", destroy)

    def _gpu_instance(self, gpu: Gpu, instance: int) -> t.Any:
        if (gpu.uuid, instance) in self._created:
            return self._created[gpu.uuid, instance]
        action = f"find GPU instance {instance} of {gpu.label}"
        return call(action, lambda: pynvml.nvmlDeviceGetGpuInstanceById(self._handle(gpu), instance))


def _id_of(action: str, read: t.Callable[[t.Any], t.Any], created: t.Any) -> int:
    """Return the id of what was just made; where that cannot be read, it is there nevertheless."""
    try:
        return int(call(action, lambda: read(created)).id)
    except SharingError as exc:
        exc.certain = False
        raise


def read_mode(handle: t.Any) -> Mig:
    """Return the MIG mode of a device handle. Raises NVML's error where a GPU that may have one cannot tell."""
    try:
        current, pending = pynvml.nvmlDeviceGetMigMode(handle)
    except pynvml.NVMLError as exc:
        if code(exc) in NO_SUCH_FUNCTION:
            return Mig(False, False, False)
        raise
    return Mig(True, bool(current), bool(pending))


def _name(value: t.Any) -> str:
    text = value.decode() if isinstance(value, bytes) else str(value)
    return text[4:] if text.startswith("MIG ") else text


def _offered(read: t.Callable[[int], t.Any], count: int) -> list[t.Any]:
    """Return what ``read`` tells of each of NVML's profile numbers that is offered here."""
    infos = []
    for number in range(count):
        try:
            infos.append(read(number))
        except pynvml.NVMLError as exc:
            if code(exc) not in _NO_SUCH:
                raise refusal(kind(code(exc)), f"Cannot read MIG profile {number}: {exc}") from exc
    return infos


def _profile(info: t.Any, handle: t.Any, gpu: Gpu) -> Profile:
    return Profile(
        info.id,
        _name(info.name),
        info.sliceCount,
        info.memorySizeMB,
        info.instanceCount,
        _placements(handle, info.id, gpu),
    )


def _placements(handle: t.Any, profile: int, gpu: Gpu) -> tuple[Placement, ...]:
    count = ctypes.c_uint(_MOST_PLACEMENTS)
    places = (pynvml.c_nvmlGpuInstancePlacement_t * count.value)()
    call(
        f"read the placements of MIG profile {profile} of {gpu.label}",
        lambda: pynvml.nvmlDeviceGetGpuInstancePossiblePlacements(handle, profile, places, ctypes.byref(count)),
    )
    return tuple(sorted(Placement(place.start, place.size) for place in places[: count.value]))


def _compute_placements(parent: t.Any, profile: ComputeProfile, gpu: Gpu) -> tuple[Placement, ...]:
    read = getattr(pynvml, "nvmlGpuInstanceGetComputeInstancePossiblePlacements", None)
    if read is None:  # nvidia-ml-py before 11.525
        return ()
    count = ctypes.c_uint(_MOST_PLACEMENTS)
    places = (pynvml.c_nvmlComputeInstancePlacement_t * count.value)()
    try:
        read(parent, profile.id, places, ctypes.byref(count))
    except pynvml.NVMLError as exc:
        if code(exc) in NO_SUCH_FUNCTION:
            return ()
        raise refusal(kind(code(exc)), f"Cannot read the placements of {profile.name} of {gpu.label}: {exc}") from exc
    return tuple(sorted(Placement(place.start, place.size) for place in places[: count.value]))


def _listed(
    function: t.Callable[..., t.Any], kind: t.Any, parent: t.Any, profile: int, most: int, gpu: Gpu
) -> list[t.Any]:
    handles = (kind * most)()
    count = ctypes.c_uint(most)
    call(f"list the instances of {gpu.label}", lambda: function(parent, profile, handles, ctypes.byref(count)))
    return list(handles[: count.value])


def _mig_devices(handle: t.Any) -> dict[tuple[int, int], str]:
    """Return the UUID of each MIG device by GPU instance and compute instance."""
    uuids = {}
    for number in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
        try:
            device = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, number)
        except pynvml.NVMLError as exc:
            if code(exc) in _NO_DEVICE:
                continue
            raise
        key = (pynvml.nvmlDeviceGetGpuInstanceId(device), pynvml.nvmlDeviceGetComputeInstanceId(device))
        uuids[key] = pynvml.nvmlDeviceGetUUID(device)
    return uuids


def _busy(handle: t.Any) -> dict[tuple[int, int], list[int]]:
    """Return the processes of each MIG device by GPU instance and compute instance."""
    found: dict[tuple[int, int], list[int]] = {}
    for function in (
        pynvml.nvmlDeviceGetComputeRunningProcesses,
        pynvml.nvmlDeviceGetGraphicsRunningProcesses,
        pynvml.nvmlDeviceGetMPSComputeRunningProcesses,
    ):
        for entry in optional(function, handle) or []:
            found.setdefault((entry.gpuInstanceId, entry.computeInstanceId), []).append(entry.pid)
    return found
