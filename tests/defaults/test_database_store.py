"""The store ``database``: its windows, its clock, and what it costs. On each server: GM_CHAT_TEST_SERVER=postgres."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from gm_chat.defaults.database_store import DatabaseRateLimitStore
from gm_chat.models import ChatRateCount
from gm_chat.persistence import rate_counts
from gm_chat.persistence.rate_counts import prune_counts
from gm_chat.plugin import Charge, Tally

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.django_db(transaction=True)

WINDOW = 60
START = 1_000_000_020.0  # the first second of a window
END = START + WINDOW
TRANSACTION = {"BEGIN", "START", "COMMIT", "SAVEPOINT", "RELEASE"}


def take(*charges: Charge, now: float = START) -> Tally:
    return rate_counts.take(charges, WINDOW, now)


def used(tally: Tally) -> list[int]:
    return [standing.used for standing in tally.standings]


def test_a_window_ends_and_another_begins_in_one_row() -> None:
    assert used(take(Charge("a", 5, 9))) == [5]
    last = take(Charge("a", 4, 9), now=END - 1)
    assert (used(last), last.standings[0].wait_seconds) == ([9], 1)
    assert not take(Charge("a", 1, 9), now=END - 1).granted
    assert used(take(Charge("a", 2, 9), now=END)) == [2]
    assert ChatRateCount.objects.count() == 1


def test_a_clock_that_steps_back_counts_on_in_the_newest_window() -> None:
    take(Charge("a", 9, 9), now=END)
    back = take(Charge("a", 1, 9), now=START)
    assert (back.granted, used(back)) == (False, [9])
    assert take(Charge("a", 1, 12), now=START).granted
    assert used(take(Charge("a", 0, 12), now=END)) == [10]


def test_a_correction_belongs_to_the_window_of_its_charge() -> None:
    at = take(Charge("a", 50, 100)).at
    assert used(rate_counts.correct([Charge("a", -20, 100)], WINDOW, START + 1, at)) == [30]
    take(Charge("a", 5, 100), now=END)
    assert used(rate_counts.correct([Charge("a", -20, 100)], WINDOW, END, at)) == [5]


def test_windows_of_different_lengths_are_different_budgets() -> None:
    take(Charge("a", 5, 9))
    assert used(rate_counts.take([Charge("a", 1, 9)], 2 * WINDOW, START)) == [1]


@pytest.mark.parametrize(
    ("charges", "statements"),
    [
        ([Charge("a", 1, 9)], ["UPDATE", "SELECT"]),
        ([Charge("a", 1, 9), Charge("b", 0, 9)], ["UPDATE", "SELECT"]),
        ([Charge("a", 1, 9), Charge("b", 1, 9)], ["UPDATE", "UPDATE", "SELECT"]),
        ([Charge("a", 0, 9), Charge("b", 0, 9)], ["SELECT"]),
    ],
)
def test_what_it_costs(charges: Sequence[Charge], statements: list[str]) -> None:
    take(Charge("a", 1, 9), Charge("b", 1, 9))
    with CaptureQueriesContext(connection) as queries:
        assert take(*charges).granted
    sent = [query["sql"].split()[0] for query in queries]
    assert [word for word in sent if word not in TRANSACTION] == statements


def test_a_request_is_not_counted_where_another_budget_is_used_up() -> None:
    take(Charge("full", 9, 9))
    refused = take(Charge("a", 1, 9), Charge("full", 0, 9))
    assert (refused.granted, used(refused)) == (False, [0, 9])


async def test_forty_at_once_that_wait_for_each_other_s_rows() -> None:
    """Each charges the same two budgets, in turns the one first and the other."""
    store = DatabaseRateLimitStore()
    pair = [Charge("a", 1, 25), Charge("b", 1, 1000)]
    asked: list[Any] = [store.take(pair[:: 1 if n % 2 else -1], window_seconds=10**9) for n in range(40)]
    assert sum(tally.granted for tally in await asyncio.gather(*asked)) == 25
    asked = [store.take([Charge("b", 0, 1000)], window_seconds=10**9)]
    assert used((await asyncio.gather(*asked))[0]) == [25]


def test_what_is_over_is_deleted() -> None:
    take(Charge("a", 1, 9))
    take(Charge("b", 1, 9), now=END)
    assert prune_counts(END) == 1
    assert list(ChatRateCount.objects.values_list("key", flat=True)) == ["60:b"]
