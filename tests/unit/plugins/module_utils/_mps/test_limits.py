# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Percentages and sizes: what is taken reads back exactly, all else is refused with its remedy."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.gpuops.sharing.plugins.module_utils._errors import BadOption, DoesNotFit
from ansible_collections.gpuops.sharing.plugins.module_utils._mps import limits
from ansible_collections.gpuops.sharing.plugins.module_utils._mps.limits import Limits


def test_every_percentage_that_a_daemon_can_show_reads_back() -> None:
    for tenths in range(1, limits.FULL + 1):
        assert limits.parse_percentage(limits.show_percentage(tenths), "p") == tenths


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("50", "50.0"),
        (50, "50.0"),
        (33.3, "33.3"),
        (" 0.1 ", "0.1"),
        ("100", "100.0"),
        ("50.00", "50.0"),
        ("007", "7.0"),
    ],
)
def test_percentage(value: t.Any, shown: str) -> None:
    assert limits.show_percentage(limits.parse_percentage(value, "p")) == shown


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("0", "p: '0': is out of range; give a percentage above 0 and up to 100"),
        (0, "p: 0: is out of range"),
        ("0.0", "p: '0.0': is out of range"),
        ("101", "p: '101': is out of range"),
        ("100.1", "p: '100.1': is out of range"),
        ("abc", "p: 'abc': is no number; give a percentage above 0 and up to 100, without a sign, e.g. 50"),
        ("50%", "p: '50%': is no number"),
        ("-5", "p: '-5': is no number"),
        ("5e1", "p: '5e1': is no number"),
        (".5", "p: '.5': is no number"),
        ("50,5", "p: '50,5': is no number"),
        (True, "p: True: is no number"),
        (
            "33.33",
            "p: '33.33': has more than one decimal, and the daemon shows only one, so it could not be read back; give 33.3",
        ),
        (
            "0.05",
            "p: '0.05': has more than one decimal, and the daemon shows only one, so it could not be read back; give 0.1",
        ),
        (
            "100.05",
            "p: '100.05': has more than one decimal, and the daemon shows only one, so it could not be read back; give 100.0",
        ),
        ("101.55", "p: '101.55': is out of range"),
    ],
)
def test_bad_percentage(value: t.Any, message: str) -> None:
    with pytest.raises(BadOption) as failure:
        limits.parse_percentage(value, "p")
    assert failure.value.message.startswith(message)


def test_every_size_that_is_taken_reads_back() -> None:
    spellings = (
        [f"{mib}M" for mib in range(1, 1024)]
        + [f"{gib}G" for gib in range(1, 300)]
        + [f"{1024 * gib}M" for gib in range(1, 300)]
    )
    for spelling in spellings:
        mib = limits.parse_size(spelling, "size")
        assert limits.read_size(limits.show_size(mib)) == mib


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("512M", "512M"),
        ("8G", "8G"),
        ("8g", "8G"),
        (" 8G ", "8G"),
        ("1024M", "1G"),
        ("2048m", "2G"),
        ("1023M", "1023M"),
    ],
)
def test_size(value: str, shown: str) -> None:
    assert limits.show_size(limits.parse_size(value, "size")) == shown


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("512K", "size: '512K': is no size; give whole MiB below 1 GiB or whole GiB from there, e.g. 512M or 8G"),
        ("2.5G", "size: '2.5G': is no size"),
        ("-1G", "size: '-1G': is no size"),
        ("0", "size: '0': is no size"),
        (0, "size: 0: is no size"),
        (None, "size: None: is no size"),
        ("", "size: '': is no size"),
        ("8", "size: '8': is no size"),
        ("8GB", "size: '8GB': is no size"),
        ("8 G", "size: '8 G': is no size"),
        ("1T", "size: '1T': is no size"),
        ("0G", "size: '0G': is no limit; give a size above 0, or leave the limit out"),
        ("0M", "size: '0M': is no limit"),
        (
            "1500M",
            "size: '1500M': the daemon shows sizes from 1 GiB in whole GiB only, so it could not be read back; give 1G or 2G",
        ),
        ("1025M", "size: '1025M': the daemon shows sizes"),
    ],
)
def test_bad_size(value: t.Any, message: str) -> None:
    with pytest.raises(BadOption) as failure:
        limits.parse_size(value, "size")
    assert failure.value.message.startswith(message)


@pytest.mark.parametrize("printed", ["", "0", "Unknown command", "8"])
def test_what_is_no_size_is_no_limit(printed: str) -> None:
    assert limits.read_size(printed) is None


@pytest.mark.parametrize("value", ["4", 4, " 4 "])
def test_clients(value: t.Any) -> None:
    assert limits.parse_clients(value, "clients") == 4


@pytest.mark.parametrize("value", ["0", 0, "x", "-1", "2.5", "", True])
def test_bad_clients(value: t.Any) -> None:
    with pytest.raises(BadOption, match="^clients: .*: is no number of clients; give a whole number from 1$"):
        limits.parse_clients(value, "clients")


@pytest.mark.parametrize(
    ("clients", "threads", "memory"),
    [
        (1, "100.0", "40G"),
        (3, "33.3", "13G"),
        (4, "25.0", "10G"),
        (7, "14.2", "5G"),
        (48, "2.0", "853M"),
        (1000, "0.1", "40M"),
    ],
)
def test_shares_are_rounded_down_to_what_a_daemon_shows(clients: int, threads: str, memory: str) -> None:
    assert limits.show_percentage(limits.share_of_threads(clients, "clients")) == threads
    assert limits.show_size(limits.share_of_memory(clients, 40960, "clients")) == memory


def test_shares_never_add_up_to_more_than_the_card() -> None:
    for clients in range(1, 1001):
        assert clients * limits.share_of_threads(clients, "clients") <= limits.FULL
        share = limits.share_of_memory(clients, 40960, "clients")
        assert clients * share <= 40960
        assert limits.parse_size(limits.show_size(share), "size") == share


def test_too_many_clients() -> None:
    with pytest.raises(
        BadOption, match="^clients: 1001: is too many clients: the share of each would be under 0.1 percent$"
    ):
        limits.share_of_threads(1001, "clients")
    with pytest.raises(BadOption, match="^clients: 600: is too many clients for 512 MiB of memory$"):
        limits.share_of_memory(600, 512, "clients")


def test_a_limit_above_the_card_is_refused() -> None:
    limits.check_fits(40960, 40960, "GPU 0", "size")
    limits.check_fits(81920, None, "GPU 0", "size")
    with pytest.raises(DoesNotFit, match=r"^size: 41G is more than GPU 0 has \(40960 MiB\); give at most that$"):
        limits.check_fits(41 * 1024, 40960, "GPU 0", "size")


FULL = "set_default_active_thread_percentage 100.0"
HALF = "set_default_active_thread_percentage 50.0"


@pytest.mark.parametrize(
    ("wanted", "current", "lines"),
    [
        pytest.param(Limits(), None, [FULL], id="a fresh daemon is told even the default"),
        pytest.param(Limits(), Limits(), [], id="nothing to do"),
        pytest.param(Limits(500), Limits(), [HALF], id="threads"),
        pytest.param(Limits(), Limits(500), [FULL], id="threads without a limit again"),
        pytest.param(
            Limits(500, ((0, 512), (1, 8192))),
            None,
            [HALF, "set_default_device_pinned_mem_limit 0 512M", "set_default_device_pinned_mem_limit 1 8G"],
            id="all of a fresh daemon",
        ),
        pytest.param(
            Limits(500, ((1, 8192),)),
            Limits(500, ((0, 512), (1, 8192))),
            ["set_default_device_pinned_mem_limit 0 0"],
            id="a limit goes by the size 0",
        ),
        pytest.param(
            Limits(500, ((0, 1024),)),
            Limits(500, ((0, 512),)),
            ["set_default_device_pinned_mem_limit 0 1G"],
            id="only what differs",
        ),
    ],
)
def test_commands(wanted: Limits, current: Limits | None, lines: list[str]) -> None:
    assert limits.commands(wanted, current) == lines
