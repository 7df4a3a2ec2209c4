# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Wishes met with the cards that are there."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.gpuops.sharing.plugins.module_utils._errors import BadOption, DoesNotFit, GpuLost, NoGpu
from ansible_collections.gpuops.sharing.plugins.module_utils._gpu import Gpu, Mig
from ansible_collections.gpuops.sharing.plugins.module_utils._mps import resolve, wish
from ansible_collections.gpuops.sharing.plugins.module_utils._mps.record import Record
from ansible_collections.gpuops.sharing.plugins.module_utils._mps.resolve import Resolved
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils.fakes import A100, CARDS, SECOND_A100

T4 = Gpu(
    index=2,
    uuid="GPU-4",
    pci_bus_id="0000:81:00.0",
    name="Tesla T4",
    compute_capability=(7, 5),
    memory_total_mib=15360,
    compute_mode="default",
)
P40 = T4._replace(name="Tesla P40", compute_capability=(6, 1))
K10 = T4._replace(name="Tesla K10", compute_capability=(3, 0))
LOST = Gpu(index=1, error="GPU is lost")


def resolved(cards: t.Sequence[Gpu] = CARDS, record: Record | None = None, **options: t.Any) -> Resolved:
    wishes = wish.parse([{"name": "render", "gpus": ["all"], **options}])
    return resolve.resolve(wishes, cards, {"render": record} if record else {})["render"]


def remembered(**gpus: str | None) -> Record:
    return Record(
        "render",
        {name: str(uuid) for name, uuid in gpus.items()},
        "/run/nvidia-mps/render",
        "/var/log/nvidia-mps/render",
        "none",
    )


def test_cards_go_by_index_and_the_spelling_is_kept() -> None:
    found = resolved(gpus=["0000:0f:00.0", "0"])
    assert found.uuids == (A100.uuid, SECOND_A100.uuid)
    assert found.spelled == {"0000:0f:00.0": SECOND_A100.uuid, "0": A100.uuid}


@pytest.mark.parametrize(
    ("options", "tenths", "memory"),
    [
        pytest.param({}, 1000, (), id="no limits"),
        pytest.param({"active_thread_percentage": "50"}, 500, (), id="threads"),
        pytest.param({"memory_limits": [{"size": "8G"}]}, 1000, ((0, 8192), (1, 8192), (2, 8192)), id="memory of all"),
        pytest.param({"memory_limits": [{"gpu": "2", "size": "512M"}]}, 1000, ((2, 512),), id="memory of one"),
        pytest.param(
            {"gpus": ["1", "2"], "memory_limits": [{"gpu": "2", "size": "512M"}]},
            1000,
            ((1, 512),),
            id="by the daemon's own ordinals",
        ),
        pytest.param(
            {"memory_limits": [{"size": "8G"}, {"gpu": "81:00.0", "size": "1G"}]},
            1000,
            ((0, 8192), (1, 8192), (2, 1024)),
            id="one goes before all",
        ),
        pytest.param(
            {"memory_limits": [{"gpu": "GPU-4", "size": "1G"}, {"size": "8G"}]},
            1000,
            ((0, 8192), (1, 8192), (2, 1024)),
            id="one goes before all in any order",
        ),
        pytest.param(
            {"clients": "4"}, 250, ((0, 10240), (1, 10240), (2, 3072)), id="each card is shared by its own memory"
        ),
    ],
)
def test_limits(options: dict[str, t.Any], tenths: int, memory: tuple[tuple[int, int], ...]) -> None:
    found = resolved((*CARDS, T4), **options)
    assert found.limits == (tenths, memory)


def test_a_daemon_that_shall_not_run_needs_no_cards() -> None:
    wishes = wish.parse([{"name": "a", "state": "absent"}, {"name": "b", "gpus": ["7"], "state": "stopped"}])
    assert resolve.resolve(wishes, [], {}) == {}


@pytest.mark.parametrize(
    ("cards", "options", "kind", "message"),
    [
        pytest.param(
            CARDS,
            {"gpus": ["2"]},
            NoGpu,
            "daemons[0].gpus: '2': there is no such GPU on this host; there are: GPU 0",
            id="unknown",
        ),
        pytest.param(
            CARDS,
            {"gpus": ["0", "07:00.0"]},
            BadOption,
            "daemons[0].gpus: '0, 07:00.0': both name GPU 0",
            id="two spellings",
        ),
        pytest.param(
            (A100, LOST),
            {"gpus": ["1"]},
            GpuLost,
            "daemons[0].gpus: '1': GPU 1 does not answer: GPU is lost",
            id="lost",
        ),
        pytest.param(
            [A100._replace(mig=Mig(True, True, True))],
            {},
            DoesNotFit,
            f"daemons[0].gpus: {A100.label} is in MIG mode",
            id="MIG mode",
        ),
        pytest.param(
            [A100._replace(mig=Mig(True, False, True))],
            {},
            DoesNotFit,
            f"daemons[0].gpus: {A100.label} will be in MIG mode after a reset or a reboot",
            id="MIG mode pending",
        ),
        pytest.param(
            [K10],
            {},
            DoesNotFit,
            f"daemons[0].gpus: {K10.label} has compute capability 3.0; MPS needs 3.5",
            id="too old",
        ),
        pytest.param(
            [P40],
            {"active_thread_percentage": "50"},
            DoesNotFit,
            f"daemons[0]: {P40.label} is pascal",
            id="threads before Volta",
        ),
        pytest.param(
            [P40],
            {"memory_limits": [{"size": "1G"}]},
            DoesNotFit,
            f"daemons[0]: {P40.label} is pascal",
            id="memory before Volta",
        ),
        pytest.param(
            [P40], {"clients": "1"}, DoesNotFit, f"daemons[0]: {P40.label} is pascal", id="clients before Volta"
        ),
        pytest.param(
            [A100._replace(compute_mode="prohibited")],
            {"compute_mode": "unchanged"},
            DoesNotFit,
            f"daemons[0].compute_mode: unchanged, but {A100.label} is in mode prohibited",
            id="prohibited",
        ),
        pytest.param(
            [T4],
            {"memory_limits": [{"size": "16G"}]},
            DoesNotFit,
            f"daemons[0].memory_limits[0].size: 16G is more than {T4.label} has",
            id="too large",
        ),
        pytest.param(
            CARDS,
            {"gpus": ["0"], "memory_limits": [{"gpu": "1", "size": "1G"}]},
            BadOption,
            f"daemons[0].memory_limits[0].gpu: '1': is not among the GPUs of this daemon ({A100.label})",
            id="limit for another card",
        ),
        pytest.param(
            CARDS,
            {"memory_limits": [{"gpu": "0", "size": "1G"}, {"gpu": "07:00.0", "size": "2G"}]},
            BadOption,
            f"daemons[0].memory_limits[1].gpu: '07:00.0': {A100.label} has a limit already; give one",
            id="two limits for a card",
        ),
        pytest.param(
            CARDS,
            {"memory_limits": [{"size": "1G"}, {"size": "2G"}]},
            BadOption,
            "daemons[0].memory_limits: 'all': has two limits; give one",
            id="two limits for all",
        ),
        pytest.param(
            [A100._replace(memory_total_mib=None)],
            {"clients": "4"},
            DoesNotFit,
            f"daemons[0].clients: the memory of {A100.label} cannot be read",
            id="unknown memory to share",
        ),
        pytest.param(
            [T4], {"clients": "1000", "gpus": ["2", "3"]}, NoGpu, "daemons[0].gpus: '3'", id="cards before their shares"
        ),
    ],
)
def test_what_the_cards_do_not_bear(
    cards: t.Sequence[Gpu], options: dict[str, t.Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind) as failure:
        resolved(cards, **options)
    assert str(failure.value).startswith(message)


def test_cards_before_volta_are_shared_without_limits() -> None:
    assert resolved([P40]).uuids == ("GPU-4",)


@pytest.mark.parametrize("second", [["0"], ["0000:07:00.0"], ["all"]])
def test_a_card_has_one_daemon(second: list[str]) -> None:
    wishes = wish.parse(
        [{"name": "render", "gpus": ["GPU-283ac4e4-651c-54fd-a922-7809abbd0253"]}, {"name": "train", "gpus": second}]
    )
    with pytest.raises(BadOption) as failure:
        resolve.resolve(wishes, CARDS, {})
    assert (
        failure.value.message
        == f"daemons[1].gpus: '{second[0]}': {A100.label} already belongs to daemon 'render'; a card has one daemon"
    )


@pytest.mark.parametrize("name", ["0", "0000:07:00.0"])
def test_a_name_that_now_means_another_card(name: str) -> None:
    with pytest.raises(DoesNotFit) as failure:
        resolved(gpus=[name], record=remembered(**{name: SECOND_A100.uuid}))
    assert failure.value.message == (
        f"daemons[0].gpus: '{name}' meant {SECOND_A100.uuid} when daemon 'render' was set up and means {A100.uuid} now; "
        "name the card by its UUID, or run once with state: absent for this daemon"
    )


def test_another_name_may_mean_another_card() -> None:
    assert resolved(gpus=["0"], record=remembered(**{"1": SECOND_A100.uuid})).uuids == (A100.uuid,)


def test_all_keeps_a_lost_card_in_its_place() -> None:
    record = remembered(**{str(A100.uuid): A100.uuid, str(SECOND_A100.uuid): SECOND_A100.uuid, "GPU-4": "GPU-4"})
    found = resolved((A100, LOST, T4), record)
    assert found.uuids == (A100.uuid, SECOND_A100.uuid, "GPU-4")
    assert found.spelled == record.gpus


def test_all_drops_a_card_that_was_taken_out() -> None:
    record = remembered(**{str(A100.uuid): A100.uuid, str(SECOND_A100.uuid): SECOND_A100.uuid})
    assert resolved([A100], record).uuids == (A100.uuid,)


def test_all_of_a_new_daemon_leaves_a_lost_card_out() -> None:
    assert resolved((A100, LOST)).uuids == (A100.uuid,)


def test_all_takes_a_new_card_in_though_another_is_lost() -> None:
    assert resolved((A100, LOST, T4), remembered(**{str(A100.uuid): A100.uuid})).uuids == (A100.uuid, "GPU-4")
