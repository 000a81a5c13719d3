"""Parts of dates are those of Python's calendar, however a database computes them, and SQLite does so by itself."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, get_args
from zoneinfo import ZoneInfo

import pytest
from django.db import connections
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from testproject.shop.models import Material, Part
from testproject.walk import part_of as by_hand

from gm_chat.managers.api import DatePart
from gm_chat.managers.date_parts import Day, part_of
from gm_chat.managers.functions import SecondsBetween

if TYPE_CHECKING:
    from collections.abc import Iterator

DAYS = [date(2024, 1, 1), date(2023, 12, 31), date(2024, 2, 29), date(2023, 3, 31), date(1999, 10, 3), date(2021, 1, 3)]
CLOCKS = [(0, 0, 0, 0), (23, 59, 59, 999_999), (12, 30, 15, 500), (22, 59, 59, 999_500)]
MOMENTS = [datetime(day.year, day.month, day.day, *clock, tzinfo=UTC) for day in DAYS for clock in CLOCKS]
PARTS: tuple[DatePart, ...] = get_args(DatePart)
OF_MOMENTS = ("hour", "hour_of_day")


@pytest.fixture(autouse=True)
def _parts(db: None) -> None:
    steel = Material.objects.create(name="Steel", density=7.8)
    for number, moment in enumerate(MOMENTS):
        part = Part.objects.create(number=f"P-{number}", material=steel, released_on=moment.date())
        Part.objects.filter(pk=part.pk).update(created_at=moment)  # past auto_now_add
    Part.objects.create(number="P-none", material=steel, released_on=None)


@pytest.fixture(params=["UTC", "Europe/Berlin"])
def zone(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param != "UTC" and connections["default"].vendor == "mysql":
        pytest.skip("MariaDB knows no time zones but its own until they are loaded")
    with timezone.override(ZoneInfo(request.param)):
        yield request.param


@pytest.mark.parametrize("part", [part for part in PARTS if part not in OF_MOMENTS])
def test_parts_of_dates(part: DatePart) -> None:
    with CaptureQueriesContext(connections["default"]) as statements:
        found = Part.objects.annotate(part=part_of(F("released_on"), part)).values_list("released_on", "part")
        assert all(value == by_hand(day, part) for day, value in found)
    assert "django_" not in statements[0]["sql"]  # no call into Python for each row


@pytest.mark.parametrize("part", PARTS)
def test_parts_of_moments(part: DatePart, zone: str) -> None:
    with CaptureQueriesContext(connections["default"]) as statements:
        rows = Part.objects.exclude(number="P-none").annotate(part=part_of(F("created_at"), part))
        found: list[Any] = list(rows.values_list("created_at", "part"))
    assert [value for _, value in found] == [by_hand(moment, part) for moment, _ in found]
    assert ("django_" in statements[0]["sql"]) == (zone != "UTC" and connections["default"].vendor == "sqlite")


def test_days_of_moments(zone: str) -> None:
    rows = Part.objects.exclude(number="P-none").annotate(day=Day(F("created_at")))
    for moment, day in rows.values_list("created_at", "day"):
        assert day == timezone.localtime(moment).date()


def test_seconds_between_moments() -> None:
    start = datetime(1970, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC)
    rows = Part.objects.exclude(number="P-none").annotate(seconds=SecondsBetween(F("created_at"), start))
    for moment, seconds in rows.values_list("created_at", "seconds"):
        assert seconds == pytest.approx((moment - start) / timedelta(seconds=1), abs=5e-7)
