from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from django.utils import timezone
from hypothesis import example, given
from hypothesis import strategies as st

from gm_chat.managers.periods import Period, period_of

if TYPE_CHECKING:
    from collections.abc import Iterator

NOW = datetime(2026, 11, 29, 23, 30, tzinfo=UTC)  # a Sunday; in Berlin it is Monday the 30th, half past midnight


@pytest.fixture(autouse=True)
def berlin() -> Iterator[None]:
    with timezone.override("Europe/Berlin"):
        yield


def days(text: str) -> tuple[str, str]:
    period = period_of(text, now=NOW)
    assert period is not None, text
    first, last = period.days
    return first.isoformat(), last.isoformat()


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("today", "2026-11-30", "2026-11-30"),
        ("Yesterday", "2026-11-29", "2026-11-29"),
        ("tomorrow", "2026-12-01", "2026-12-01"),
        ("-30 days", "2026-10-31", "2026-10-31"),
        ("+1 week", "2026-12-07", "2026-12-07"),
        ("3 months ago", "2026-08-30", "2026-08-30"),
        ("-9 months", "2026-02-28", "2026-02-28"),
        ("in 1 year", "2027-11-30", "2027-11-30"),
        ("this week", "2026-11-30", "2026-12-06"),
        ("previous week", "2026-11-23", "2026-11-29"),
        ("last month", "2026-10-01", "2026-10-31"),
        ("current quarter", "2026-10-01", "2026-12-31"),
        ("previous quarter", "2026-07-01", "2026-09-30"),
        ("next year", "2027-01-01", "2027-12-31"),
        ("last 30 days", "2026-10-31", "2026-11-30"),
        ("past 3 months", "2026-08-30", "2026-11-30"),
        ("previous 3 months", "2026-08-01", "2026-10-31"),
        ("previous 8 weeks", "2026-10-05", "2026-11-29"),
        ("next 2 quarters", "2027-01-01", "2027-06-30"),
        ("start of this month", "2026-11-01", "2026-11-01"),
        ("beginning of the previous year", "2025-01-01", "2025-01-01"),
        ("end of last quarter", "2026-09-30", "2026-09-30"),
        ("  THIS   day ", "2026-11-30", "2026-11-30"),
        ("2025", "2025-01-01", "2025-12-31"),
        ("2024-02", "2024-02-01", "2024-02-29"),
        ("May 2025", "2025-05-01", "2025-05-31"),
        ("sept 2025", "2025-09-01", "2025-09-30"),
        ("2025-Q2", "2025-04-01", "2025-06-30"),
        ("Q4 2025", "2025-10-01", "2025-12-31"),
        ("end of Q1 2025", "2025-03-31", "2025-03-31"),
        ("december 2025", "2025-12-01", "2025-12-31"),
        ("previous calendar month", "2026-10-01", "2026-10-31"),
        ("last 3 calendar months", "2026-08-01", "2026-10-31"),
        ("end of the current  calendar quarter", "2026-12-31", "2026-12-31"),
    ],
)
def test_words_mean_days_of_the_current_time_zone(text: str, first: str, last: str) -> None:
    assert days(text) == (first, last)


def test_hours_and_minutes_count_from_now() -> None:
    assert period_of("now", now=NOW) == Period(NOW, NOW)
    assert period_of("-90 minutes", now=NOW) == Period(NOW - timedelta(minutes=90), NOW - timedelta(minutes=90))
    assert period_of("last 12 hours", now=NOW) == Period(NOW - timedelta(hours=12), NOW)


def test_a_day_is_as_long_as_the_clocks_make_it() -> None:
    period = period_of("today", now=datetime(2026, 10, 25, 12, tzinfo=UTC))  # the clocks went back at night
    assert period is not None
    assert period.end.astimezone(UTC) - period.start.astimezone(UTC) == timedelta(hours=25)
    assert period.days == (date(2026, 10, 25), date(2026, 10, 25))


@pytest.mark.parametrize(
    "text",
    [
        *("", "soon", "last", "30 days", "last month of the year", "this hour", "next 3 minutes", "- days"),
        *("-9999 years", "last 99999999 days", "start of", "start of start of this month", "-1 fortnight", "x" * 1000),
    ],
)
def test_other_words_mean_nothing(text: str) -> None:
    assert period_of(text, now=NOW) is None


@given(
    st.one_of(
        st.text(max_size=80),
        st.from_regex(r"(start of |end of )?(last|previous|next|this) ([0-9]{1,9} )?(day|week|month|year|hour)s?"),
        st.from_regex(r"[+-][0-9]{1,9} (minute|hour|day|week|month|quarter|year)s?"),
    ),
    st.datetimes(min_value=datetime(2, 1, 2), max_value=datetime(9998, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
)
@example("last 10000 years", NOW)
@example("+1 year", datetime(9998, 1, 1, tzinfo=UTC))
def test_any_text_is_a_period_or_nothing(text: str, now: datetime) -> None:
    with timezone.override("Europe/Berlin"):
        period = period_of(text, now=now)
        if period is not None:
            assert period.start <= period.end
            assert period.days[0] <= period.days[1]
