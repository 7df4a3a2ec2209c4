# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A card's MIG profiles, its GPU instances and their compute instances."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import byref, c_char, c_uint, c_ulonglong, c_void_p
from dataclasses import dataclass
from typing import Any, TypeVar

from _smi import errors
from _smi.errors import NvmlError
from _smi.nvml import Device

# NVML numbers its profiles from 0: so many were known to 535, and a newer driver has some more, far fewer than the last.
_GPU_NUMBERS, _COMPUTE_NUMBERS, _NUMBERS = 10, 8, 32
# Instances of a profile, and places where they may sit, on any card.
_MOST = 16
_VERSION = 2 << 24
_COUNTS = ("slices", "most", "sm", "ce", "dec", "enc", "jpeg", "ofa")

T = TypeVar("T")


class Profile(ctypes.Structure):
    """nvmlGpuInstanceProfileInfo_v2_t"""

    _fields_ = [
        *((name, c_uint) for name in ("version", "id", "p2p", *_COUNTS)),
        ("memory_mib", c_ulonglong),
        ("text", c_char * 96),
    ]


class ComputeProfile(ctypes.Structure):
    """nvmlComputeInstanceProfileInfo_v2_t"""

    _fields_ = [*((name, c_uint) for name in ("version", "id", *_COUNTS)), ("text", c_char * 96)]


class Placement(ctypes.Structure):
    _fields_ = [("start", c_uint), ("size", c_uint)]


class _Info(ctypes.Structure):
    """nvmlGpuInstanceInfo_t"""

    _fields_ = [("device", c_void_p), ("id", c_uint), ("profile", c_uint), ("placement", Placement)]


class _ComputeInfo(ctypes.Structure):
    """nvmlComputeInstanceInfo_t"""

    _fields_ = [("device", c_void_p), ("parent", c_void_p), *_Info._fields_[1:]]


def _supported(read: Callable[[int], T], known: int) -> list[T]:
    """What the card has of what NVML numbers."""
    found = []
    for number in range(_NUMBERS):
        try:
            found.append(read(number))
        except NvmlError as error:
            if error.code == errors.INVALID_ARGUMENT and number >= known:
                break
            if error.code != errors.NOT_SUPPORTED:
                raise
    return found


def _places(call: Callable[..., None], function: str, profile: int) -> list[Placement]:
    count, places = c_uint(_MOST), (Placement * _MOST)()
    call(function, c_uint(profile), places, byref(count))
    return list(places[: count.value])


def _capacity(call: Callable[..., None], function: str, profile: int) -> int:
    count = c_uint()
    call(function, c_uint(profile), byref(count))
    return count.value


def _handles(call: Callable[..., None], function: str, profile: int) -> list[c_void_p]:
    count, handles = c_uint(), (c_void_p * _MOST)()
    call(function, c_uint(profile), handles, byref(count))
    return [c_void_p(handle) for handle in handles[: count.value]]


def _created(call: Callable[..., None], function: str, profile: int, place: Placement | None) -> c_void_p:
    handle = c_void_p()
    if place is None:
        call(function, c_uint(profile), byref(handle))
    else:
        call(function + "WithPlacement", c_uint(profile), byref(place), byref(handle))
    return handle


@dataclass(frozen=True)
class ComputeInstance:
    parent: GpuInstance
    handle: c_void_p
    profile: ComputeProfile
    id: int
    placement: Placement

    def destroy(self) -> None:
        self.parent.device.nvml.call("nvmlComputeInstanceDestroy", self.handle)


@dataclass(frozen=True)
class GpuInstance:
    device: Device
    handle: c_void_p
    profile: Profile
    id: int
    placement: Placement

    def _call(self, function: str, *arguments: Any) -> None:
        self.device.nvml.call(f"nvmlGpuInstance{function}", self.handle, *arguments)

    def profiles(self) -> list[ComputeProfile]:
        def read(number: int) -> ComputeProfile:
            info = ComputeProfile(version=ctypes.sizeof(ComputeProfile) | _VERSION)
            self._call("GetComputeInstanceProfileInfoV", c_uint(number), c_uint(0), byref(info))
            return info

        return _supported(read, _COMPUTE_NUMBERS)

    def default(self, profiles: list[ComputeProfile]) -> ComputeProfile:
        """The one that fills the GPU instance."""
        return next(profile for profile in profiles if profile.slices == self.profile.slices)

    def capacity(self, profile: ComputeProfile) -> int:
        return _capacity(self._call, "GetComputeInstanceRemainingCapacity", profile.id)

    def places(self, profile: ComputeProfile) -> list[Placement]:
        return _places(self._call, "GetComputeInstancePossiblePlacements", profile.id)

    def instances(self) -> list[ComputeInstance]:
        return [
            self.instance(handle, profile)
            for profile in self.profiles()
            for handle in _handles(self._call, "GetComputeInstances", profile.id)
        ]

    def instance(self, handle: c_void_p, profile: ComputeProfile) -> ComputeInstance:
        info = _ComputeInfo()
        self.device.nvml.call("nvmlComputeInstanceGetInfo_v2", handle, byref(info))
        return ComputeInstance(self, handle, profile, info.id, info.placement)

    def create(self, profile: ComputeProfile, place: Placement | None) -> c_void_p:
        return _created(self._call, "CreateComputeInstance", profile.id, place)

    def destroy(self) -> None:
        self._call("Destroy")


@dataclass(frozen=True)
class Card:
    """A card in MIG mode."""

    device: Device

    def profiles(self) -> list[Profile]:
        """In the order of NVML's numbers of them."""

        def read(number: int) -> Profile:
            info = Profile(version=ctypes.sizeof(Profile) | _VERSION)
            self.device.call("GetGpuInstanceProfileInfoV", c_uint(number), byref(info))
            return info

        return _supported(read, _GPU_NUMBERS)

    def capacity(self, profile: Profile) -> int:
        return _capacity(self.device.call, "GetGpuInstanceRemainingCapacity", profile.id)

    def places(self, profile: Profile) -> list[Placement]:
        return _places(self.device.call, "GetGpuInstancePossiblePlacements_v2", profile.id)

    def instances(self) -> list[GpuInstance]:
        """By the order of their profiles, then by id."""
        return [
            self.instance(handle, profile)
            for profile in self.profiles()
            for handle in _handles(self.device.call, "GetGpuInstances", profile.id)
        ]

    def instance(self, handle: c_void_p, profile: Profile) -> GpuInstance:
        info = _Info()
        self.device.nvml.call("nvmlGpuInstanceGetInfo", handle, byref(info))
        return GpuInstance(self.device, handle, profile, info.id, info.placement)

    def create(self, profile: Profile, place: Placement | None) -> c_void_p:
        return _created(self.device.call, "CreateGpuInstance", profile.id, place)


def name(profile: Profile | ComputeProfile) -> str:
    """As the driver says it: MIG 1g.5gb."""
    return bytes(profile.text).decode()
