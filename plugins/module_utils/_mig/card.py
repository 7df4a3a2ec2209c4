# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. A card that can be cut: what its driver offers, what is there, what can be together. Pure functions."""

from __future__ import annotations

import functools
import re
import typing as t

from .._errors import BadOption
from .._gpu import Gpu
from .._instance import ComputeProfile, GpuInstance, Profile
from .layout import clean_profile, nearest

# Media engines (NVIDIA MIG User Guide): at most one instance with +me; +me.all takes every engine, so all others must be -me.
ONE_MEDIA, ALL_MEDIA, NO_MEDIA = "+me", "+me.all", "-me"

Counts = t.Mapping[str, int]


class Card(t.NamedTuple):
    """A card's profiles and instances. ``compute_profiles`` are known, by profile, only where a GPU instance could be asked."""

    gpu: Gpu
    profiles: tuple[Profile, ...]
    instances: tuple[GpuInstance, ...] = ()
    compute_profiles: t.Mapping[str, t.Sequence[ComputeProfile]] = {}

    @property
    def title(self) -> str:
        """The short name."""
        return f"GPU {self.gpu.index}"

    @property
    def units(self) -> int:
        """How many units placements count (memory slices)."""
        ends = [placement.end for profile in self.profiles for placement in profile.placements]
        return max(ends + [instance.placement.end for instance in self.instances], default=0)

    @property
    def slices(self) -> int:
        """How many compute slices all instances share: the largest profile has them all."""
        return max((profile.slices for profile in self.profiles), default=0)

    def profile(self, name: str) -> Profile | None:
        """Return a profile by its name in any case, with or without the word MIG."""
        return next((profile for profile in self.profiles if profile.name.lower() == clean_profile(name)), None)

    def find(self, name: str, option: str) -> Profile:
        """Return a profile by its name; fail with the names that this card's driver offers, and the nearest."""
        profile = self.profile(name)
        if profile:
            return profile
        names = [profile.name for profile in self.profiles]
        close = nearest(clean_profile(name), names) if names else None
        hint = f"did you mean {close}? It offers: {', '.join(names)}" if close else "it offers none"
        raise BadOption(option, name, f"{self.gpu.label} offers no such profile; {hint}", profiles=names)

    def profile_of(self, instance: GpuInstance) -> Profile:
        """Return an instance's profile; one that the driver no longer offers is known by what the instance shows."""
        slices = re.match(r"[0-9]+", instance.profile)
        return self.profile(instance.profile) or Profile(
            -1, instance.profile, int(slices.group()) if slices else 0, 0, len(self.instances), (instance.placement,)
        )

    def complaint(self, counts: Counts) -> str | None:
        """Return why these numbers of instances cannot be together wherever they lie, or None."""
        wanted = [(profile, counts[profile.name]) for profile in self._all_profiles() if counts.get(profile.name)]
        for profile, number in wanted:
            if not profile.placements:
                return f"the driver names no place for {profile.name}"
            if number > profile.most:
                return f"the card takes at most {profile.most} of {profile.name}"
        slices = sum(profile.slices * number for profile, number in wanted)
        if slices > self.slices:
            return f"they need {slices} compute slices, the card has {self.slices}"
        units = sum(profile.placements[0].size * number for profile, number in wanted)
        if units > self.units:
            return f"they need {units} slots, the card has {self.units}"
        return _media_complaint([(_suffixes(profile.name), number) for profile, number in wanted])

    def room(self, counts: Counts) -> list[int]:
        """Return the masks of all places where one more instance could be beside so many, were the place free."""
        return [
            placement.mask
            for profile in self.profiles
            if self.complaint({**counts, profile.name: counts.get(profile.name, 0) + 1}) is None
            for placement in profile.placements
        ]

    def _all_profiles(self) -> list[Profile]:
        known = {profile.name for profile in self.profiles}
        others = {instance.profile: instance for instance in self.instances if instance.profile not in known}
        return [*self.profiles, *(self.profile_of(instance) for instance in others.values())]


def describe(instance: GpuInstance) -> str:
    """Return how messages name a GPU instance."""
    start, size = instance.placement
    return f"GPU instance {instance.id} ({instance.profile} at {start}:{size})"


@functools.cache
def _suffixes(name: str) -> list[str]:
    return re.findall(r"[+-][a-z][a-z.]*", name.lower())


def _media_complaint(wanted: t.Sequence[tuple[list[str], int]]) -> str | None:
    if sum(number for suffixes, number in wanted if ONE_MEDIA in suffixes) > 1:
        return f"only one instance with {ONE_MEDIA} can be on a card"
    takers = sum(number for suffixes, number in wanted if ALL_MEDIA in suffixes)
    others = sum(number for suffixes, number in wanted if ALL_MEDIA not in suffixes and NO_MEDIA not in suffixes)
    if takers > 1 or (takers and others):
        return f"an instance with {ALL_MEDIA} takes every media engine, so all others must be {NO_MEDIA}"
    return None
