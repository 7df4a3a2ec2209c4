# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""`nvidia-smi mig`: instances are listed, made and destroyed, one after the other and never as a whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from _smi import errors, mig_options, mig_tables, selection
from _smi.errors import NvmlError, Stop
from _smi.instances import Card, ComputeInstance, ComputeProfile, GpuInstance, Placement, Profile, name
from _smi.mig_options import Wanted
from _smi.nvml import Nvml

Write = Callable[[str], object]
T = TypeVar("T")
P = TypeVar("P", Profile, ComputeProfile)


def _failed(what: str, code: int) -> Stop:
    return Stop(f"{what}: {errors.text(code)}\n", errors.status(code))


def _chosen(profiles: list[P], wanted: Wanted) -> P:
    for profile in profiles:
        if wanted.means(profile.id, name(profile)):
            return profile
    raise NvmlError(errors.INVALID_ARGUMENT)


def _place(places: list[Placement], wanted: Wanted) -> Placement:
    for place in places:
        if place.start == wanted.start:
            return place
    raise NvmlError(errors.INVALID_ARGUMENT)


class Mig:
    """One run of the command; with `lie` it says that all was done, and nothing stays done."""

    def __init__(self, nvml: Nvml, found: dict[str, str], write: Write, lie: bool) -> None:
        self._found = found
        self._write = write
        self._lie = lie
        self._made: list[GpuInstance | ComputeInstance] = []
        self._cards = [Card(device) for device in selection.select(nvml, found.get("id")) if device.mig_enabled()]
        if not self._cards:
            raise Stop("No MIG-enabled devices found.\n", errors.NOT_FOUND)

    def run(self) -> None:
        """The first command in nvidia-smi's order; others are left out."""
        for command in mig_options.COMMANDS:
            if command in self._found:
                getattr(self, command)()
                break
        if self._lie:
            for instance in reversed(self._made):
                instance.destroy()

    def _attempt(self, failure: str, act: Callable[[], T]) -> T:
        try:
            return act()
        except NvmlError as error:
            self._write(f"{failure}: {errors.text(error.code)}\n")
            raise

    def _show(self, what: str, table: Callable[[Write, list[T]], None], rows: list[T]) -> None:
        try:
            table(self._write, rows)
        except NvmlError as error:
            raise _failed(f"Failed to display {what}", error.code) from None

    def lgip(self) -> None:
        self._show("GPU instance profiles", mig_tables.gpu_profiles, self._cards)

    def lgipp(self) -> None:
        self._show("GPU instance placements", mig_tables.gpu_places, self._cards)

    def lgi(self) -> None:
        try:
            instances = [instance for card in self._cards for instance in card.instances()]
        except NvmlError as error:
            raise _failed("Failed to display GPU instances", error.code) from None
        if not instances:
            raise _failed("No GPU instances found", errors.NOT_FOUND)
        self._show("GPU instances", mig_tables.gpu_instances, instances)

    def _parents(self) -> list[GpuInstance]:
        """The GPU instances that -gi chooses."""
        ids = mig_options.numbers(self._found.get("gi"))
        try:
            instances = [instance for card in self._cards for instance in card.instances()]
        except NvmlError as error:
            raise _failed("No GPU instances found", error.code) from None
        chosen = [instance for instance in instances if ids is None or instance.id in ids]
        if not chosen:
            raise _failed("No GPU instances found", errors.NOT_FOUND)
        return chosen

    def lcip(self) -> None:
        self._show("compute instance profiles", mig_tables.compute_profiles, self._parents())

    def lcipp(self) -> None:
        self._show("compute instance placements", mig_tables.compute_places, self._parents())

    def _compute_instances(self, failure: str, ids: set[int] | None) -> list[ComputeInstance]:
        parents = self._parents()
        try:
            instances = [instance for parent in parents for instance in parent.instances()]
        except NvmlError as error:
            raise _failed(failure, error.code) from None
        chosen = [instance for instance in instances if ids is None or instance.id in ids]
        if not chosen:
            raise _failed("No compute instances found", errors.NOT_FOUND)
        return chosen

    def lci(self) -> None:
        instances = self._compute_instances("Failed to display compute instances", None)
        self._show("compute instances", mig_tables.compute_instances, instances)

    def cgi(self) -> None:
        try:
            for card in self._cards:
                for wanted in mig_options.wanted(self._found["cgi"]):
                    self._create_gpu_instance(card, wanted)
        except NvmlError as error:
            raise _failed("Failed to create GPU instances", error.code) from None

    def _create_gpu_instance(self, card: Card, wanted: Wanted) -> None:
        gpu = card.device.index()
        self._check(wanted, gpu)
        failure = f"Unable to create a GPU instance on GPU {gpu:2} using profile {wanted.text}"
        profile = self._attempt(failure, lambda: _chosen(card.profiles(), wanted))
        place = None
        if wanted.start is not None:
            places = card.places(profile)
            place = self._attempt(failure, lambda: _place(places, wanted))
        handle = self._attempt(failure, lambda: card.create(profile, place))
        made = self._attempt(f"Unable to query a GPU instance on GPU {gpu:2}", lambda: card.instance(handle, profile))
        self._made.append(made)
        using = f"using profile {name(profile)} (ID {profile.id:2})"
        self._write(f"Successfully created GPU instance ID {made.id:2} on GPU {gpu:2} {using}\n")
        if "default" in self._found:
            self._create_compute_instance(made, None)

    def cci(self) -> None:
        parents = self._parents()
        profiles = self._found.get("cci_profiles")
        try:
            for parent in parents:
                for wanted in [None] if profiles is None else mig_options.wanted(profiles):
                    self._create_compute_instance(parent, wanted)
        except NvmlError as error:
            raise _failed("Failed to create compute instances", error.code) from None

    def _create_compute_instance(self, parent: GpuInstance, wanted: Wanted | None) -> None:
        """What is wanted, or else the one that fills the GPU instance."""
        gpu = parent.device.index()
        if wanted:
            self._check(wanted, gpu)
        where = f"on GPU {gpu:2} GPU instance ID {parent.id:2}"
        failure = f"Unable to create a compute instance {where} using profile {wanted.text if wanted else 'default'}"
        profile = self._attempt(
            failure, lambda: _chosen(parent.profiles(), wanted) if wanted else parent.default(parent.profiles())
        )
        place = None
        if wanted and wanted.start is not None:
            places = parent.places(profile)
            place = self._attempt(failure, lambda: _place(places, wanted))
        handle = self._attempt(failure, lambda: parent.create(profile, place))
        made = self._attempt(f"Unable to query a compute instance {where}", lambda: parent.instance(handle, profile))
        self._made.append(made)
        using = f"using profile {name(profile)} (ID {profile.id:2})"
        self._write(f"Successfully created compute instance ID {made.id:2} {where} {using}\n")

    def _check(self, wanted: Wanted, gpu: int) -> None:
        if not wanted.profile:
            using = f"on GPU {gpu:2} using profile {wanted.text}"
            self._write(f"Unable to create a GPU instace {using}: invalid placement syntax\n")
            raise NvmlError(errors.INVALID_ARGUMENT)

    def dgi(self) -> None:
        try:
            for instance in self._parents():
                gpu = instance.device.index()
                self._destroy(instance, f"GPU instance ID {instance.id:2} from GPU {gpu:2}")
        except NvmlError as error:
            raise _failed("Failed to destroy GPU instances", error.code) from None

    def dci(self) -> None:
        ids = mig_options.numbers(self._found.get("ci"))
        instances = self._compute_instances("No compute instances found", ids)
        try:
            for instance in instances:
                where = f"from GPU {instance.parent.device.index():2} GPU instance ID {instance.parent.id:2}"
                self._destroy(instance, f"compute instance ID {instance.id:2} {where}")
        except NvmlError as error:
            raise _failed("Failed to destroy compute instances", error.code) from None

    def _destroy(self, instance: GpuInstance | ComputeInstance, what: str) -> None:
        if not self._lie:
            self._attempt(f"Unable to destroy {what}", instance.destroy)
        self._write(f"Successfully destroyed {what}\n")
