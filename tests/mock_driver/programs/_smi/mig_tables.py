# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The tables of `nvidia-smi mig`, written as far as they get before a call fails.

The widths are those of 535: other versions have others.
"""

from __future__ import annotations

from collections.abc import Callable

from _smi.instances import Card, ComputeInstance, GpuInstance, Placement, name

_GPU_PROFILES = """\
+-----------------------------------------------------------------------------+
| GPU instance profiles:                                                      |
| GPU   Name             ID    Instances   Memory     P2P    SM    DEC   ENC  |
|                              Free/Total   GiB              CE    JPEG  OFA  |
|=============================================================================|
"""
_GPU_INSTANCES = """\
+-------------------------------------------------------+
| GPU instances:                                        |
| GPU   Name             Profile  Instance   Placement  |
|                          ID       ID       Start:Size |
|=======================================================|
"""
_COMPUTE_PROFILES = """\
+--------------------------------------------------------------------------------------+
| Compute instance profiles:                                                           |
| GPU     GPU       Name             Profile  Instances   Exclusive       Shared       |
|       Instance                       ID     Free/Total     SM       DEC   ENC   OFA  |
|         ID                                                          CE    JPEG       |
|======================================================================================|
"""
_COMPUTE_INSTANCES = """\
+--------------------------------------------------------------------+
| Compute instances:                                                 |
| GPU     GPU       Name             Profile   Instance   Placement  |
|       Instance                       ID        ID       Start:Size |
|         ID                                                         |
|====================================================================|
"""
_MIB_PER_GIB = 1024

Write = Callable[[str], object]


def _rule(table: str) -> str:
    return table.partition("\n")[0] + "\n"


def gpu_profiles(write: Write, cards: list[Card]) -> None:
    write(_GPU_PROFILES)
    for card in cards:
        gpu = card.device.index()
        for profile in sorted(card.profiles(), key=lambda profile: profile.slices):
            free = f"{card.capacity(profile)}/{profile.most}"
            memory = f"{profile.memory_mib / _MIB_PER_GIB:.2f}"
            peers = "Yes" if profile.p2p else "No"
            write(
                f"|{gpu:>4}  {name(profile):<17}{profile.id:>3}     {free:<11}{memory:<11}{peers:<7}"
                f"{f'{profile.sm:>2}':<6}{profile.dec:>2}{profile.enc:>6}   |\n"
                f"|{' ' * 60}{profile.ce:>2}{profile.jpeg:>6}{profile.ofa:>6}   |\n" + _rule(_GPU_PROFILES)
            )


def _places(places: list[Placement]) -> str:
    word = "Placement " if len(places) == 1 else "Placements"
    return f"{word}: {{{','.join(str(place.start) for place in places)}}}:{places[0].size}"


def gpu_places(write: Write, cards: list[Card]) -> None:
    for card in cards:
        for profile in sorted(card.profiles(), key=lambda profile: profile.slices):
            write(f"GPU {card.device.index():2} Profile ID {profile.id:2} {_places(card.places(profile))}\n")


def gpu_instances(write: Write, instances: list[GpuInstance]) -> None:
    write(_GPU_INSTANCES)
    for instance in instances:
        place = f"{instance.placement.start}:{instance.placement.size}"
        write(
            f"|{instance.device.index():>4}  {name(instance.profile):<19}{instance.profile.id:>3}{instance.id:>9}"
            f"{place:>13}     |\n" + _rule(_GPU_INSTANCES)
        )


def compute_profiles(write: Write, parents: list[GpuInstance]) -> None:
    write(_COMPUTE_PROFILES)
    for parent in parents:
        profiles = parent.profiles()
        for profile in profiles:
            free = f"{parent.capacity(profile)}/{profile.most}"
            mark = "*" if profile.id == parent.default(profiles).id else ""
            write(
                f"|{parent.device.index():>4}{parent.id:>7}       {name(profile):<18}{profile.id:>4}{mark:<6}{free:<14}"
                f"{f'{profile.sm:>2}':<9}{profile.dec:>2}{profile.enc:>6}{profile.ofa:>6}   |\n"
                f"|{profile.ce:>71}{profile.jpeg:>6}         |\n" + _rule(_COMPUTE_PROFILES)
            )


def compute_places(write: Write, parents: list[GpuInstance]) -> None:
    for parent in parents:
        for profile in parent.profiles():
            where = f"GPU {parent.device.index():2} GI {parent.id:2}"
            write(f"{where} Profile ID {profile.id:2} {_places(parent.places(profile))}\n")


def compute_instances(write: Write, instances: list[ComputeInstance]) -> None:
    write(_COMPUTE_INSTANCES)
    for instance in instances:
        parent = instance.parent
        place = f"{instance.placement.start}:{instance.placement.size}"
        write(
            f"|{parent.device.index():>4}{parent.id:>7}       {name(instance.profile):<18}{instance.profile.id:>4}"
            f"{instance.id:>10}{place:>13}     |\n" + _rule(_COMPUTE_INSTANCES)
        )
