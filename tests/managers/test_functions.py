from __future__ import annotations

import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gm_chat.managers.functions import _SHORTEST_RUN, _SqliteMedian


def median(values: list[float | None]) -> float | None:
    aggregate = _SqliteMedian()
    for value in values:
        aggregate.step(value)
    return aggregate.finalize()


@given(st.lists(st.none() | st.floats(-1e9, 1e9)))
def test_the_median_is_the_middle_and_nulls_do_not_count(values: list[float | None]) -> None:
    known = [value for value in values if value is not None]
    assert median(values) == (statistics.median(known) if known else None)


@pytest.mark.parametrize("number", [1, 2, 3, 7])
@pytest.mark.parametrize("more", [-1, 0, 1])
def test_the_median_of_many_runs(number: int, more: int) -> None:
    random_ = random.Random(number)  # noqa: S311 - reproducible
    values: list[float | None] = [random_.random() for _ in range(number * _SHORTEST_RUN + more)]
    assert median(values) == statistics.median(value for value in values if value is not None)
