# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Bad days that the unit meets alone: what it can it brings back, what it cannot it tells, and it destroys nothing."""

from __future__ import annotations

import typing as t

import pytest
from instances import SAVED, Machine


@pytest.fixture
def intact(machine: Machine) -> t.Iterator[str]:
    """The devices as they were; after the test, with the trouble gone, the unit brings them all back."""
    before = machine.devices()
    yield before
    machine.host.check_output(f"systemctl reset-failed {machine.service}")
    assert machine.restart(), machine.said()
    assert machine.devices() == before


def test_destroyed_instance_comes_back(machine: Machine, intact: str) -> None:
    for card in (machine.layouts.changed, machine.layouts.other):
        machine.destroy_one(card)
    assert machine.restart()
    assert machine.devices() == intact


def failed_with_the_other_card_back(machine: Machine) -> str:
    """Restart the unit with one more card to do; what it said of the other."""
    lost = machine.destroy_one(machine.layouts.other)
    other = machine.card(machine.layouts.other)
    assert not machine.restart()
    assert machine.unit("ActiveState") == "failed"
    said = machine.said()
    assert f"{other}: as written down" in said
    assert lost in machine.instances()[machine.layouts.other]
    return said


@pytest.fixture
def cut_otherwise(machine: Machine, intact: str) -> t.Iterator[str]:
    """Somebody cut a card in another way; the UUID of what is on it now."""
    card = machine.layouts.changed
    machine.destroy(card)
    machine.host.check_output(f"nvidia-smi mig -i {card} -cgi 0 -C")
    (whole,) = machine.instances()[card]
    yield whole.uuid
    assert whole.uuid in machine.mig_uuids()
    machine.destroy(card)


def test_card_that_is_cut_otherwise_is_told_and_left(machine: Machine, cut_otherwise: str) -> None:
    said = failed_with_the_other_card_back(machine)
    assert machine.card(machine.layouts.changed) in said
    assert "purge: true would remove" in said


@pytest.fixture
def lost_card(machine: Machine, intact: str) -> t.Iterator[str]:
    """A card that fell off the bus; its UUID."""
    card = machine.layouts.changed
    uuid = machine.card(card)
    machine.host.check_output(f"mock-driver lose {card}")
    yield uuid
    machine.host.check_output(f"mock-driver find {card}")


def test_lost_card_is_told(machine: Machine, lost_card: str) -> None:
    assert lost_card in failed_with_the_other_card_back(machine)


@pytest.fixture
def saved(machine: Machine, intact: str) -> t.Iterator[str]:
    """The file that the unit reads, put back afterwards; its path."""
    machine.host.check_output(f"cp -a {SAVED} {SAVED}.before")
    yield SAVED
    machine.host.check_output(f"mv {SAVED}.before {SAVED}")


def test_card_that_is_gone_is_told(machine: Machine, saved: str) -> None:
    gone = "GPU-00000000-651c-54fd-a922-7809abbd0253"
    machine.host.check_output(f"sed -i s/{machine.card(machine.layouts.changed)}/{gone}/ {saved}")
    assert f"'{gone}': there is no such GPU" in failed_with_the_other_card_back(machine)


def test_corrupt_file_is_told(machine: Machine, saved: str, intact: str) -> None:
    machine.host.check_output(f"truncate --size=100 {saved}")
    assert not machine.restart()
    assert f"{saved} is corrupt" in machine.said()
    assert machine.devices() == intact


def test_without_the_file_there_is_nothing_to_do(machine: Machine, saved: str, intact: str) -> None:
    machine.host.check_output(f"rm {saved}")
    assert machine.restart()
    assert (machine.unit("ActiveState"), machine.unit("ConditionResult")) == ("inactive", "no")
    assert machine.devices() == intact
