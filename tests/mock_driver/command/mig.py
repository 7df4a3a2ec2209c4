# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The MIG part of a model: its profiles, and how the driver numbers what it makes of them."""

from __future__ import annotations

from command.facts import Facts, text
from library import layout
from library.state import nvml

# NVML_GPU_INSTANCE_PROFILE_CAPS_GFX
GFX = 2


def instance_id(start: int, size: int, slices: int, swapped: bool) -> int:
    """The driver's number of an instance at that place: 0 is the whole card, 1 and 2 its halves, 3 to 6 its quarters, ...

    On some boards the two halves are numbered the other way round.
    """
    parts = slices // size
    if swapped and parts > 1:
        start = (start + slices // 2) % slices
    return parts - 1 + start // size


def load_profile(facts: Facts, profile: layout.Profile, model: layout.Model, slice_sm: int | None) -> None:
    name = facts.need("name")
    profile.name = text(name)
    profile.enumerator = facts.choice("nvml", nvml()["gpu_instance_profiles"])
    profile.id = facts.need("id")
    profile.compute_slices = facts.need("slices")
    profile.memory_slices = facts.need("size")
    profile.max_instances = facts.need("most")
    profile.multiprocessors = facts.take("sm", 0)
    profile.memory_mib = facts.need("memory_mib")
    profile.capabilities = GFX if facts.take("gfx") else 0
    for field, key in (
        ("copy_engines", "ce"),
        ("decoders", "dec"),
        ("encoders", "enc"),
        ("jpegs", "jpeg"),
        ("ofas", "ofa"),
    ):
        setattr(profile, field, facts.take(key, 0))
    starts = facts.need("starts")
    profile.placement_count = len(starts)
    for place, start in enumerate(starts):
        identity = instance_id(start, profile.memory_slices, model.mig_memory_slices, bool(model.mig_numbering_swapped))
        profile.placements[place] = layout.Placement(start, identity)
    compute = facts.need("compute")
    profile.compute_profile_count = len(compute)
    for place, (slices, most) in enumerate(compute.items()):
        full = slices == profile.compute_slices
        multiprocessors = profile.multiprocessors if full else 0 if slice_sm is None else slices * slice_sm
        profile.compute_profiles[place] = layout.ComputeProfile(
            nvml()["compute_instance_profiles"][f"{slices}_SLICE"],
            slices,
            most,
            multiprocessors,
            text(name if full else f"{slices}c.{name}"),
        )
    facts.end()


def load_mig(facts: Facts, model: layout.Model) -> None:
    model.mig_capable = bool(facts.facts)
    if not model.mig_capable:
        return
    model.mig_memory_slices = facts.need("memory_slices")
    model.mig_max_devices = facts.need("max_devices")
    model.mig_reset_needed = bool(facts.need("reset_needed"))
    model.mig_kept_over_reboot = bool(facts.need("kept_over_reboot"))
    model.mig_numbering_swapped = facts.choice("numbering", {"normal": 0, "swapped": 1})
    engines = facts.inner("engines")
    for field, key in (("decoders", "dec"), ("encoders", "enc"), ("jpegs", "jpeg"), ("ofas", "ofa")):
        setattr(model, f"mig_{field}", engines.number(key))
    engines.end()
    model.mig_used_mib = facts.take("device_used_mib", 0)
    slice_sm = facts.take("compute_slice_sm")
    profiles = facts.inners("profiles")
    model.profile_count = len(profiles)
    for profile, place in zip(profiles, model.profiles):
        load_profile(profile, place, model, slice_sm)
    facts.end()
