# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Modes that wait: who is in the way, what is reset, and what is put back."""

from __future__ import annotations

import pytest
from ansible_collections.gpuops.sharing.plugins.module_utils import _errors
from ansible_collections.gpuops.sharing.plugins.module_utils._command import Answer
from ansible_collections.gpuops.sharing.plugins.module_utils._driver.interface import PENDING
from ansible_collections.gpuops.sharing.plugins.module_utils._gpu import Gpu, Mig, Process
from ansible_collections.gpuops.sharing.plugins.module_utils._mig import holders, observation
from ansible_collections.gpuops.sharing.plugins.module_utils._mig.holders import Holder
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils._mig import machines
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils._mig.fake_driver import (
    MACHINE,
    FakeMigDriver,
    Task,
    cut,
)
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils.fakes import A100, SECOND_A100

RESET, IN_USE, NOT_HERE = PENDING[16], PENDING[19], PENDING[3]
ON, OFF = Mig(True, True, True), Mig(True, False, False)
PERSISTENT = A100._replace(persistence_mode=True)
PERSISTENCED = Holder(60, "nvidia-persiste", "nvidia-persistenced")
DCGM = Holder(70, "nv-hostengine", "nvidia-dcgm (or dcgm)")


class Users:
    """Who has cards open, beside whom the driver names."""

    def __init__(self) -> None:
        self.now: list[Holder] = []
        self.modules: list[str] = []
        self.nvswitch = False

    def find(self, gpu: Gpu, _devices: object) -> list[Holder]:
        return self.now + [Holder(process.pid, "python3", None) for process in gpu.processes]


@pytest.fixture(autouse=True)
def users(monkeypatch: pytest.MonkeyPatch) -> Users:
    made = Users()
    monkeypatch.setattr(observation.process, "daemons", list)
    monkeypatch.setattr(holders, "open_devices", dict)
    monkeypatch.setattr(holders, "find", made.find)
    monkeypatch.setattr(holders, "modules", lambda: made.modules)
    monkeypatch.setattr(holders, "nvswitch", lambda: made.nvswitch)
    return made


def test_reset_of_the_cards_that_wait_and_persistence_put_back() -> None:
    driver = FakeMigDriver([PERSISTENT, SECOND_A100], waits=RESET)
    Task(driver, cut("7g.40gb"), allow_reset=True).run()
    assert driver.journal[:5] == ["mode 0 on", "close", "reset 0", "reopen", "persistence 0 True"]
    assert driver.mig_mode(SECOND_A100) == OFF


def test_one_command_resets_all_that_wait() -> None:
    driver = FakeMigDriver([A100, SECOND_A100], waits=RESET)
    Task(driver, cut("7g.40gb", gpus="all"), allow_reset=True).run()
    assert [entry for entry in driver.journal if entry.startswith("reset")] == ["reset 0,1"]


def test_without_leave_nothing_is_reset() -> None:
    driver = FakeMigDriver([A100, SECOND_A100], waits=RESET)
    with pytest.raises(
        _errors.ChangePending, match="needs a reset of GPU 0 .*, GPU 1 .*; set allow_reset: true"
    ) as failure:
        Task(driver, cut("7g.40gb", gpus="all")).run()
    assert failure.value.details["reset_required"] and not failure.value.details["reboot_required"]
    assert driver.journal == ["mode 0 on", "mode 1 on", "mode 1 off", "mode 0 off"]
    assert [driver.mig_mode(gpu) for gpu in (A100, SECOND_A100)] == [OFF, OFF]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (Answer(3, "Resetting GPU 00000000:07:00.0 is not supported.\n", ""), _errors.ChangePending),
        (
            Answer(
                255, "The following GPUs could not be reset:\n  GPU 00000000:07:00.0: In use by another client\n", ""
            ),
            _errors.InUse,
        ),
        (
            Answer(255, "Unable to reset this GPU because it's being used by some other process\n", ""),
            _errors.CommandFailed,
        ),
    ],
)
def test_a_reset_that_is_refused(answer: Answer, kind: type[_errors.SharingError]) -> None:
    driver = FakeMigDriver([PERSISTENT], waits=RESET)
    driver.reset_answer = answer
    with pytest.raises(kind) as failure:
        Task(driver, cut("7g.40gb"), allow_reset=True).run()
    assert failure.value.details.get("reboot_required", False) == (kind is _errors.ChangePending)
    assert driver.mig_mode(A100) == OFF
    assert driver.gpus()[0].persistence_mode is True


def test_persistence_is_put_back_even_when_a_step_fails_after_the_reset() -> None:
    driver = FakeMigDriver([PERSISTENT], waits=RESET)
    driver.failures = {"create 0 7g.40gb@0"}
    with pytest.raises(_errors.CommandFailed) as failure:
        Task(driver, cut("7g.40gb"), allow_reset=True).run()
    assert failure.value.details["not_undone"] == []
    assert driver.mig_mode(A100) == OFF
    assert driver.gpus()[0].persistence_mode is True


def test_the_reset_has_the_last_word_when_persistence_fails_too() -> None:
    driver = FakeMigDriver([PERSISTENT], waits=RESET)
    driver.failures = {"persistence 0 True"}
    with pytest.raises(_errors.CommandFailed, match="it says no"):
        Task(driver, cut("7g.40gb"), allow_reset=True).run()
    assert driver.mig_mode(A100) == OFF


class Stubborn(FakeMigDriver):
    """Switches on at once, and off only after a reset."""

    def set_mig_mode(self, gpu: Gpu, on: bool) -> str | None:
        self.waits = None if on else RESET
        return super().set_mig_mode(gpu, on)


def test_a_mode_that_cannot_be_taken_back_without_a_reset_is_told() -> None:
    driver = Stubborn([A100], shy=True)
    with pytest.raises(_errors.BadOption) as failure:
        Task(driver, cut("1g.5g")).run()
    assert failure.value.details["not_undone"] == [
        "enable MIG mode of GPU 0 (taking it back failed: its MIG mode is on now, and off after a reset)"
    ]


def test_a_mode_that_somebody_left_pending_is_pending_again() -> None:
    waiting = A100._replace(mig=Mig(True, False, True))
    driver = FakeMigDriver([waiting], waits=RESET)
    with pytest.raises(_errors.ChangePending):
        Task(driver, cut("7g.40gb")).run()
    assert driver.mig_mode(waiting) == waiting.mig


def test_a_virtual_machine_is_not_reset() -> None:
    driver = FakeMigDriver([A100], waits=NOT_HERE)
    with pytest.raises(_errors.ChangePending, match="reboot the machine") as failure:
        Task(driver, cut("7g.40gb"), allow_reset=True).run()
    assert failure.value.details["reboot_required"] and not failure.value.details["reset_required"]
    assert driver.journal == ["mode 0 on", "mode 0 off"]


def test_persistenced_keeps_no_mode_from_changing(users: Users) -> None:
    users.now = [PERSISTENCED]
    Task(FakeMigDriver([A100]), cut("7g.40gb")).run()


def test_whoever_else_is_named_before_any_change(users: Users) -> None:
    users.now = [PERSISTENCED, DCGM]
    users.modules = ["nvidia_drm"]
    with pytest.raises(_errors.InUse) as failure:
        Task(FakeMigDriver([A100]), cut("7g.40gb"))
    assert (
        "in use by 70 (nv-hostengine, service nvidia-dcgm (or dcgm)); the kernel module nvidia_drm"
        in failure.value.message
    )
    assert failure.value.details == {"holders": [DCGM._asdict()], "modules": ["nvidia_drm"]}


@pytest.mark.parametrize(
    ("now", "words"),
    [
        ([PERSISTENCED], "in use by 60 (nvidia-persiste, service nvidia-persistenced)"),
        ([], "in use by somebody who does not show"),
    ],
)
def test_the_driver_says_in_use(users: Users, now: list[Holder], words: str) -> None:
    driver = FakeMigDriver([A100], waits=IN_USE)
    task = Task(driver, cut("7g.40gb"), allow_reset=True)
    users.now = now
    with pytest.raises(_errors.InUse) as failure:
        task.run()
    assert words in failure.value.message
    assert driver.journal == ["mode 0 on", "mode 0 off"]


def test_somebody_came_before_the_reset() -> None:
    driver = FakeMigDriver([A100], waits=RESET)
    task = Task(driver, cut("7g.40gb"), allow_reset=True)
    driver.update(0, processes=(Process(42, "python3", 500, "C"),))
    with pytest.raises(_errors.InUse, match=r"needs a reset, which cannot be while it is in use by 42 \(python3\)"):
        task.run()
    assert driver.journal == ["mode 0 on", "mode 0 off"]


def nvswitch(users: Users) -> FakeMigDriver:
    users.nvswitch = True
    return FakeMigDriver([A100, SECOND_A100._replace(mig=ON)], waits=RESET)


def test_nvswitches_take_idle_and_empty_peers_along(users: Users) -> None:
    driver = nvswitch(users)
    Task(driver, cut("7g.40gb"), {"gpus": "1"}, allow_reset=True).run()
    assert "reset 0,1" in driver.journal


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("not named", "GPU 1 .* is not named by this task"),
        ("in use", r"GPU 1 .* is in use by 42 \(python3\)"),
        ("instances", "GPU 1 .* has instances"),
    ],
)
def test_nvswitches_refuse_peers(users: Users, case: str, words: str) -> None:
    driver = nvswitch(users)
    if case == "in use":
        driver.update(1, processes=(Process(42, "python3", 500, "C"),))
    if case == "instances":
        driver.put(1, machines.instance(MACHINE, ("7g.40gb", 0), 1))
    others = [] if case == "not named" else [{"gpus": "1"}]
    with pytest.raises(_errors.DoesNotFit, match=words) as failure:
        Task(driver, cut("7g.40gb"), *others, allow_reset=True).run()
    assert failure.value.details["reset_required"]
    assert driver.journal == ["mode 0 on", "mode 0 off"]


def test_nvswitches_of_hopper_reset_one_card_alone(users: Users) -> None:
    driver = nvswitch(users)
    driver.update(0, compute_capability=(9, 0))
    Task(driver, cut("7g.40gb"), allow_reset=True).run()
    assert "reset 0" in driver.journal


@pytest.mark.parametrize("mode", ["exclusive_process", "exclusive_thread", "prohibited"])
def test_a_card_in_another_compute_mode(mode: str) -> None:
    driver = FakeMigDriver([A100._replace(compute_mode=mode)])
    with pytest.raises(_errors.DoesNotFit, match=f"is in compute mode {mode}; end its sharing with nvidia_mps"):
        Task(driver, cut("7g.40gb"))
    driver.update(0, mig=ON)
    switched_off_first = (
        r"switch its MIG mode off \(enabled: false\), since no driver changes it before, then end its sharing"
    )
    with pytest.raises(_errors.DoesNotFit, match=switched_off_first):
        Task(driver, cut("7g.40gb"))
    assert driver.journal == []
    Task(driver, {"gpus": "0", "enabled": False}).run()
    assert driver.mig_mode(A100) == OFF


def test_a_mode_that_was_set_although_the_call_failed() -> None:
    class Slow(FakeMigDriver):
        def set_mig_mode(self, gpu: Gpu, on: bool) -> str | None:
            super().set_mig_mode(gpu, on)
            if on:
                raise _errors.CommandTimeout("it did not end")
            return None

    driver = Slow([A100])
    with pytest.raises(_errors.CommandTimeout) as failure:
        Task(driver, cut("7g.40gb")).run()
    assert driver.journal == ["mode 0 on", "mode 0 off"]
    assert failure.value.details == {"done": [], "undone": ["enable MIG mode of GPU 0"], "not_undone": []}
