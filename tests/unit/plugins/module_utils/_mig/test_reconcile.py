# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Cards in memory are cut as wished; where a step fails, what was done is taken back in the opposite order."""

from __future__ import annotations

import pytest
from ansible_collections.gpuops.sharing.plugins.module_utils import _errors
from ansible_collections.gpuops.sharing.plugins.module_utils._gpu import Gpu, Mig, Process
from ansible_collections.gpuops.sharing.plugins.module_utils._instance import (
    ComputeInstance,
    ComputeProfile,
    Placement,
    Profile,
)
from ansible_collections.gpuops.sharing.plugins.module_utils._mig import observation
from ansible_collections.gpuops.sharing.plugins.module_utils._mps.process import Found
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils._mig import machines
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils._mig.fake_driver import (
    MACHINE,
    FakeMigDriver,
    Task,
    cut,
)
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils.fakes import A100, SECOND_A100

ON = Mig(True, True, True)


@pytest.fixture(autouse=True)
def daemons(monkeypatch: pytest.MonkeyPatch) -> list[Found]:
    """The control daemons of the host: whatever the test puts here."""
    found: list[Found] = []
    monkeypatch.setattr(observation.process, "daemons", lambda: found)
    return found


def places(driver: FakeMigDriver, gpu: Gpu = A100) -> list[str]:
    return [f"{one.profile}@{one.placement.start}" for one in driver.instances(gpu)]


def test_largest_first_each_with_its_compute_instance() -> None:
    driver = FakeMigDriver([A100])
    (after,) = Task(driver, cut("1g.5gb", "3g.20gb")).run()
    assert driver.journal[0] == "mode 0 on"
    made = [entry.split()[2] for entry in driver.journal[1:]]
    assert [entry.partition("@")[0] for entry in made] == ["3g.20gb", "1/3g.20gb", "1g.5gb", "2/1g.5gb"]
    assert after.mig == ON and after.card is not None
    assert [len(one.compute_instances) for one in after.card.instances] == [1, 1]


@pytest.mark.parametrize("step", [0, 1, 2, 3, 4, 5, 6])
def test_each_step_that_fails_takes_the_earlier_ones_back(step: int) -> None:
    wish = cut("1g.5gb", "2g.10gb", "3g.20gb")
    smooth = FakeMigDriver([A100])
    Task(smooth, wish).run()
    driver = FakeMigDriver([A100])
    driver.failures = {smooth.journal[step]}
    with pytest.raises(_errors.CommandFailed, match="^it says no") as failure:
        Task(driver, wish).run()
    assert (places(driver), driver.mig_mode(A100)) == ([], A100.mig)
    assert len(failure.value.details["done"]) == step
    assert failure.value.details["undone"] == failure.value.details["done"][::-1]
    assert driver.journal[:step] == smooth.journal[:step]
    assert len(driver.journal) == 2 * step, "each step is taken back by one call"


@pytest.mark.parametrize("step", range(8))
def test_what_was_destroyed_is_made_again(step: int) -> None:
    def driver_with_instances() -> FakeMigDriver:
        driver = FakeMigDriver([A100._replace(mig=ON)])
        driver.put(
            0,
            machines.instance(MACHINE, ("2g.10gb", 0), 3, ["1c.2g.10gb", "1c.2g.10gb"]),
            machines.instance(MACHINE, ("3g.20gb", 4), 2),
        )
        return driver

    smooth = driver_with_instances()
    Task(smooth, cut("7g.40gb"), purge=True).run()
    assert len(smooth.journal) == 3 + 2 + 2
    driver = driver_with_instances()
    if step < len(smooth.journal):
        driver.failures = {smooth.journal[step]}
        with pytest.raises(_errors.CommandFailed):
            Task(driver, cut("7g.40gb"), purge=True).run()
        before = driver_with_instances().instances(A100)
        assert [
            (one.profile, one.placement, [part.profile for part in one.compute_instances])
            for one in driver.instances(A100)
        ] == [(one.profile, one.placement, [part.profile for part in one.compute_instances]) for one in before]


def test_cards_that_match_and_cards_that_were_not_named_see_no_call() -> None:
    third = SECOND_A100._replace(index=2, uuid="GPU-3", mig=ON)
    driver = FakeMigDriver([A100._replace(mig=ON), SECOND_A100._replace(mig=ON), third])
    driver.put(0, machines.instance(MACHINE, ("3g.20gb", 4), 1))
    driver.put(2, machines.instance(MACHINE, ("7g.40gb", 0), 1))
    Task(driver, cut("3g.20gb"), cut("1g.5gb", gpus="1"), purge=True).run()
    assert {entry.split()[1] for entry in driver.journal} == {"1"}


def test_a_repair_is_taken_back() -> None:
    driver = FakeMigDriver([A100._replace(mig=ON)])
    driver.put(0, machines.instance(MACHINE, ("3g.20gb", 4), 1, ["1c.3g.20gb"] * 2))
    whole = {"profile": "3g.20gb", "compute_instances": ["3g.20gb"]}
    driver.failures = {"create 0 1/3g.20gb"}
    with pytest.raises(_errors.CommandFailed):
        Task(driver, {"gpus": "0", "instances": [whole]}, purge=True).run()
    (instance,) = driver.instances(A100)
    assert [part.profile for part in instance.compute_instances] == ["1c.3g.20gb"] * 2


def test_the_plan_is_made_after_the_mode_where_the_card_is_shy() -> None:
    driver = FakeMigDriver([A100, SECOND_A100], shy=True)
    task = Task(driver, cut("1g.5gb", "3g.20gb", gpus="all"))
    assert set(task.plans.values()) == {None}
    task.run()
    assert [len(places(driver, gpu)) for gpu in (A100, SECOND_A100)] == [2, 2]


@pytest.mark.parametrize(
    ("profiles", "kind", "words"),
    [
        (("4g.20gb", "4g.20gb"), _errors.DoesNotFit, "at most 1 of 4g.20gb"),
        (("1g.5g",), _errors.BadOption, "did you mean 1g.5gb"),
    ],
)
def test_a_layout_that_a_shy_card_cannot_have(profiles: tuple[str, ...], kind: type[Exception], words: str) -> None:
    driver = FakeMigDriver([A100, SECOND_A100], shy=True)
    with pytest.raises(kind, match=words) as failure:
        Task(driver, cut("1g.5gb"), cut(*profiles, gpus="1")).run()
    assert isinstance(failure.value, _errors.SharingError)
    assert failure.value.details["not_undone"] == []
    assert [driver.mig_mode(gpu) for gpu in (A100, SECOND_A100)] == [A100.mig, A100.mig]
    assert places(driver) == [], "the first card's instances went with it"


def test_a_step_of_a_shy_card_that_fails_is_told_once() -> None:
    driver = FakeMigDriver([A100], shy=True)
    driver.failures = {"create 0 1g.5gb@6"}
    with pytest.raises(_errors.CommandFailed) as failure:
        Task(
            driver, {"gpus": "0", "instances": [{"profile": "3g.20gb", "start": 0}, {"profile": "1g.5gb", "start": 6}]}
        ).run()
    assert failure.value.details["done"] == [
        "enable MIG mode of GPU 0",
        "create GPU instance 3g.20gb at 0:4 of GPU 0",
        "create compute instance 3g.20gb in 3g.20gb at 0:4 of GPU 0",
    ]
    assert failure.value.message == "it says no. Taken back: " + "; ".join(failure.value.details["done"][::-1])


def test_a_list_that_changes_while_it_is_read_is_read_once_more() -> None:
    driver = FakeMigDriver([A100._replace(mig=ON)])
    driver.put(0, machines.instance(MACHINE, ("7g.40gb", 0), 1))
    driver.misreadings = [_errors.CommandFailed("gone")]
    assert not any(plan is None or not plan.empty for plan in Task(driver, cut("7g.40gb")).plans.values())
    driver.misreadings = [_errors.CommandFailed("gone"), _errors.CommandFailed("gone")]
    with pytest.raises(_errors.CommandFailed):
        Task(driver, cut("7g.40gb"))
    driver.misreadings = [_errors.GpuLost("it is lost")]
    with pytest.raises(_errors.GpuLost):
        Task(driver, cut("7g.40gb"))


CREATED = [
    "create GPU instance 7g.40gb at 0:8 of GPU 0",
    "create compute instance 7g.40gb in 7g.40gb at 0:8 of GPU 0",
]


def test_somebody_else_changes_the_card_meanwhile() -> None:
    class Meddled(FakeMigDriver):
        off = False

        def create_compute_instance(
            self, gpu: Gpu, instance: int, profile: ComputeProfile, placement: Placement | None
        ) -> int:
            number = super().create_compute_instance(gpu, instance, profile, placement)
            self.there[gpu.uuid].clear()
            if self.off:
                self.set_mig_mode(gpu, False)
            return number

    driver = Meddled([A100])
    with pytest.raises(_errors.NotReadBack, match="The instances of GPU 0 .* are not as wished afterwards") as failure:
        Task(driver, cut("7g.40gb")).run()
    done = ["enable MIG mode of GPU 0", *CREATED]
    assert failure.value.details == {"done": done, "undone": [], "not_undone": done}
    driver.off = True
    with pytest.raises(_errors.NotReadBack) as failure:
        Task(driver, cut("7g.40gb")).run()
    reads = "reads disabled afterwards (disabled after a reset), not enabled. Not taken back: create GPU instance"
    assert reads in failure.value.message


class Old(FakeMigDriver):
    """As drivers of the 470 series: other names, and compute instances go where the driver wants them."""

    first = 0

    def compute_profiles(self, gpu: Gpu, instance: int) -> tuple[ComputeProfile, ...]:
        profile = self.there[gpu.uuid][instance].profile
        kinds = super().compute_profiles(gpu, instance)
        short = profile.removesuffix("+me")
        return tuple(one._replace(placements=(), name=short if one.name == profile else one.name) for one in kinds)

    def create_compute_instance(
        self, gpu: Gpu, instance: int, profile: ComputeProfile, placement: Placement | None
    ) -> int:
        assert placement is None
        taken = [one.placement for one in self.there[gpu.uuid][instance].compute_instances]
        free = (Placement(start, profile.slices) for start in range(self.first, 7))
        place = next(one for one in free if not any(one.overlaps(other) for other in taken))
        number = super().create_compute_instance(gpu, instance, profile, place)
        self.journal[-1] = self.journal[-1].partition(":")[0]
        return number


def test_drivers_that_call_the_compute_instance_without_its_suffix() -> None:
    driver = Old([A100])
    Task(driver, cut("1g.5gb+me")).run()
    assert [one.profile for one in driver.instances(A100)] == ["1g.5gb+me"]
    assert not Task(driver, cut("1g.5gb+me")).host.steps([], {})


def parts(driver: FakeMigDriver) -> list[tuple[str, int]]:
    (instance,) = driver.instances(A100)
    return sorted((one.profile, one.placement.start) for one in instance.compute_instances)


def test_drivers_that_place_compute_instances_themselves() -> None:
    wish = {"profile": "3g.20gb", "compute_instances": "1c.3g.20gb,1c.3g.20gb"}
    driver = Old([A100])
    Task(driver, {"gpus": "0", "instances": [wish]}).run()
    assert parts(driver) == [("1c.3g.20gb", 0), ("1c.3g.20gb", 1)]
    grown = {**wish, "compute_instances": "1c.3g.20gb,1c.3g.20gb,1c.3g.20gb"}
    Task(driver, {"gpus": "0", "instances": [grown]}).run()
    assert len(parts(driver)) == 3


def test_a_start_that_such_a_driver_does_not_give() -> None:
    driver = Old([A100])
    wish = {"profile": "3g.20gb", "compute_instances": "1c.3g.20gb:2"}
    with pytest.raises(_errors.NotSupported, match="does not let compute instances be placed: .* came to 0, not 2"):
        Task(driver, {"gpus": "0", "instances": [wish]}).run()
    assert driver.instances(A100) == ()


def test_places_that_such_a_driver_does_not_give_back() -> None:
    driver = Old([A100._replace(mig=ON)])
    there = machines.instance(MACHINE, ("3g.20gb", 0), 1, ["1c.3g.20gb:1", "1c.3g.20gb:2"])
    driver.put(0, there)
    driver.failures.add("create 0 7g.40gb@0")
    with pytest.raises(_errors.CommandFailed) as failure:
        Task(driver, cut("7g.40gb"), purge=True).run()
    left = failure.value.details["not_undone"]
    assert len(left) == 2 and all("does not let compute instances be placed" in text for text in left)


def test_a_card_that_was_planned_late_keeps_what_others_made_meanwhile() -> None:
    """Only what was made here is taken back."""

    class Meddled(FakeMigDriver):
        def create_gpu_instance(self, gpu: Gpu, profile: Profile, placement: Placement) -> int:
            if gpu.index == 1:
                self.there[A100.uuid][77] = machines.instance(MACHINE, ("1g.5gb", 0), 77)
                raise _errors.CommandFailed("it says no")
            return super().create_gpu_instance(gpu, profile, placement)

    driver = Meddled([A100, SECOND_A100], shy=True)
    with pytest.raises(_errors.CommandFailed) as failure:
        Task(driver, cut("3g.20gb", gpus="0,1")).run()
    assert [one.id for one in driver.instances(A100)] == [77]
    assert any(text.startswith("enable MIG mode of GPU 0") for text in failure.value.details["not_undone"])


@pytest.mark.parametrize("lies", [True, False])
def test_a_destruction_that_did_not_happen_is_not_made_good(lies: bool) -> None:
    class Lying(FakeMigDriver):
        def destroy_gpu_instance(self, gpu: Gpu, instance: int) -> None:
            if not lies:
                super().destroy_gpu_instance(gpu, instance)

    driver = Lying([A100._replace(mig=ON)])
    before = machines.instance(MACHINE, ("3g.20gb", 0), 1)
    driver.put(0, before)
    driver.failures.add("create 0 7g.40gb@0")
    with pytest.raises(_errors.CommandFailed) as failure:
        Task(driver, cut("7g.40gb"), purge=True).run()
    assert failure.value.details["not_undone"] == []
    assert [(one.profile, one.placement) for one in driver.instances(A100)] == [("3g.20gb", before.placement)]


@pytest.mark.parametrize("place", [0, 2])
def test_a_compute_instance_of_somebody_else_is_not_settled(place: int) -> None:
    """Ours was to be at 1; the call failed, and nobody knows what it did."""

    class Raced(FakeMigDriver):
        def create_compute_instance(
            self, gpu: Gpu, instance: int, profile: ComputeProfile, placement: Placement | None
        ) -> int:
            super().create_compute_instance(gpu, instance, profile, Placement(place, 1))
            raise _errors.CommandTimeout("it did not end")

    driver = Raced([A100._replace(mig=ON)])
    other = 2 - place
    driver.put(0, machines.instance(MACHINE, ("3g.20gb", 0), 1, [f"1c.3g.20gb:{other}"]))
    wish = {"profile": "3g.20gb", "compute_instances": "1c.3g.20gb:1"}
    with pytest.raises(_errors.CommandTimeout):
        Task(driver, {"gpus": "0", "instances": [wish]}).run()
    assert parts(driver) == sorted([("1c.3g.20gb", place), ("1c.3g.20gb", other)])


@pytest.mark.parametrize(
    ("visible", "refused"),
    [
        (None, True),
        ("", True),
        ("0", True),
        (str(A100.uuid), True),
        (str(A100.uuid)[:12], True),
        ("GPU-other, 1", False),
        ("MIG-1-0", False),
    ],
)
def test_a_daemon_for_the_whole_card(daemons: list[Found], visible: str | None, refused: bool) -> None:
    environment = {"HOME": "/"} if visible is None else {"HOME": "/", "CUDA_VISIBLE_DEVICES": visible}
    daemons.append(Found(77, 1, 0, environment))
    driver = FakeMigDriver([A100, SECOND_A100])
    if refused:
        with pytest.raises(_errors.InUse, match="is served by the MPS control daemon 77; end it with nvidia_mps"):
            Task(driver, cut("1g.5gb"))
    else:
        Task(driver, cut("1g.5gb")).run()


def test_why_an_instance_must_stay(daemons: list[Found]) -> None:
    driver = FakeMigDriver([A100._replace(mig=ON), SECOND_A100])
    one, two, three, four = (machines.instance(MACHINE, ("1g.5gb", start), 7 + start) for start in range(4))
    busy = ComputeInstance(0, "1g.5gb", Placement(0, 1), "MIG-7-0", (4242,))
    driver.put(0, one._replace(compute_instances=(busy,)), two, three, four)
    daemons.append(Found(77, 1, 0, {"CUDA_VISIBLE_DEVICES": "MIG-8-0"}))
    (reading,) = Task(driver, {"gpus": "0"}, protect=f"0/9 {SECOND_A100.uuid}/13").before
    assert reading.protected == {
        7: "in use by 4242 (?)",
        8: "served by the MPS control daemon 77",
        9: "protected by this task",
    }


def test_a_process_on_the_card_keeps_its_mode() -> None:
    busy = A100._replace(processes=(Process(2**22 + 1, "python3", 500, "C"),))
    with pytest.raises(_errors.InUse, match="cannot be enabled while it is in use by 4194305"):
        Task(FakeMigDriver([busy]), cut("1g.5gb"))
    Task(FakeMigDriver([busy._replace(mig=ON)]), cut("1g.5gb")).run()
