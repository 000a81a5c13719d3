"""Random aggregates against the same sums by hand, row visibility included, on each database."""

from __future__ import annotations

import itertools
import math
import random
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from testproject.desk import Desk, actor_of
from testproject.rights import desk_of
from testproject.shop_rows import fill_shop
from testproject.sums import Sums
from testproject.texts import Text
from testproject.walk import REMOVABLE, Asking, Walk, hiding

from gm_chat.managers import registry
from gm_chat.managers.aggregate import build_aggregate
from gm_chat.managers.aggregation import execute_aggregate
from gm_chat.plugin import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gm_chat.managers.api import ManagerInfo

DESKS = range(12)
PLANS = 504
"""Over all desks."""
HIDING_PLANS = 300
NUMBERS = ("integer", "number", "decimal", "duration")
DATES = ("date", "datetime")


@pytest.fixture(autouse=True)
def _time_zone() -> Iterator[None]:
    """MariaDB knows no time zones but its own until they are loaded."""
    with timezone.override("UTC" if connection.vendor == "mysql" else "Europe/Berlin"):
        yield


@pytest.mark.parametrize("number", DESKS)
def test_aggregates_equal_sums_by_hand(db: None, number: int) -> None:
    desk = desk_of(number)
    sums, view = Sums(desk), desk.view
    managers, told = list(view), 0
    for seed in range(PLANS // len(DESKS)):
        random_ = random.Random(f"{number} {seed}")  # noqa: S311 - reproducible
        info = random_.choice(managers)
        args = Computing(desk, random_).arguments(info)
        plan = build_aggregate(args, view, max_results=200)
        with CaptureQueriesContext(connection) as statements:
            page = execute_aggregate(plan, desk.bindings, desk.actor)
        # None where the conditions exclude each other. Keys of a rule are read first where they can be no subselect.
        assert sum("gm_chat_0" in statement["sql"] for statement in statements) <= 1, args
        expected = sums.run(plan)
        assert page.has_more is False
        assert len(page.data) == len(expected), (seed, args)
        for row, wanted in zip(page.data, expected, strict=True):
            assert row.keys() == wanted.keys()
            for name, value in wanted.items():
                assert agree(row[name], value), f"{seed} {args} {name} {row} {wanted}"
        told += bool(expected) and any(value is not None for row in page.data for value in row.values())
    assert told > PLANS // len(DESKS) // 3, "too few of the random aggregates say anything"


def test_hidden_rows_have_no_influence(db: None) -> None:
    """Results and the number of statements are those of a database without the hidden rows."""
    users = fill_shop(parts=30)
    users["plain"].user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    desk = Desk(hiding(registry.bindings(), REMOVABLE), actor_of(users["plain"]))
    managers, plans = list(desk.view), []
    for seed in range(HIDING_PLANS):
        random_ = random.Random(seed)  # noqa: S311 - reproducible
        plans.append(
            build_aggregate(Computing(desk, random_).arguments(random_.choice(managers)), desk.view, max_results=200)
        )

    def answers() -> list[Any]:
        found = []
        for plan in plans:
            with CaptureQueriesContext(connection) as statements:
                page = execute_aggregate(plan, desk.bindings, desk.actor)
            found.append((page, len(statements)))
        return found

    before = answers()
    hidden = {name: set(binding.model._default_manager.all()) for name, binding in desk.bindings.items()}
    for name, rows in Walk(desk).visible.items():
        hidden[name] -= set(rows)
    for row in itertools.chain.from_iterable(hidden.values()):
        row.delete()
    assert sum(map(len, hidden.values())) > HIDING_PLANS // 10
    for plan, told, expected in zip(plans, before, answers(), strict=True):
        assert told == expected, plan


def agree(shown: Any, value: Any) -> bool:
    """Whether JSON shows the value; numbers of a database are floating-point here and there."""
    if value is None or isinstance(value, bool):
        return shown is value
    if isinstance(value, Text):
        return isinstance(shown, str) and Text(shown) == value  # of equal texts, any
    if isinstance(value, datetime):
        return datetime.fromisoformat(shown) == value
    if isinstance(value, date | time):
        return bool(shown == value.isoformat())
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, int | float | Decimal):
        return math.isclose(float(shown), float(value), rel_tol=1e-9, abs_tol=1e-6)
    return bool(shown == value)


class Computing(Asking):
    """Makes arguments of ``aggregate``."""

    def arguments(self, info: ManagerInfo) -> dict[str, Any]:
        groups = list(dict.fromkeys(self.group(info) for _ in range(self.random.randint(0, 2))))
        measures: dict[str, Any] = {}
        for number in range(self.random.randint(1, 3)):
            formula: Any = self.group_value(info, measures)
            if self.random.random() < 0.3:
                formula = {"formula": formula, "where": self.filters(info, 2)}
            measures[f"m{number}"] = formula
        names = [*groups, *measures]
        args: dict[str, Any] = {"manager": info.name, "group_by": groups, "measures": measures}
        args["filters"] = self.filters(info, 2)
        args["order_by"] = [self.random.choice(["", "-"]) + self.random.choice(names)] if groups else []
        if groups and self.random.random() < 0.3 and (counts := [n for n, f in measures.items() if f == "count()"]):
            args["having"] = {f"{counts[0]}__gt": 1}
        if groups and self.random.random() < 0.5 and self.is_number(info, args, measures):
            args["measures"]["across"] = self.across(groups)
            if self.random.random() < 0.3:
                lookup = self.random.choice(["gt", "gte", "lt", "lte", "in", "range", "exact"])
                value: Any = self.random.choice([1, 0.25, -0.5, 2.5])
                value = {"in": [value, 1], "range": [-1, value]}.get(lookup, value)
                args["having"] = {**args.get("having", {}), f"{self.random.choice(['across', 'm0'])}__{lookup}": value}
        texts = [name for name in groups if "__" not in name and self.type_of(info, name) == "string"]
        if texts and self.random.random() < 0.4:
            lookup = self.random.choice(["exact", "icontains", "in"])
            value = self.value_for(info, texts[0], "string", lookup)
            condition = {f"{texts[0]}__{lookup}": value}
            args["having"] = self.random.choice([condition, {"not": condition}, {"or": [condition, {"m0": 0}]}])
            if "or" in args["having"] and not self.is_number(info, args, measures):
                args["having"] = condition
        if groups and self.random.random() < 0.3:
            args["fill"] = self.may_fill(info, args)
        return args

    def across(self, groups: list[str]) -> str:
        function = self.random.choice(["rank", "share", "change", "running"])
        within = self.random.sample(groups, self.random.randint(0, len(groups) - 1))
        one = f"{function}({', '.join([self.random.choice(['m0', 'count()']), *within])})"
        return self.random.choice([one, one, f"{one} / m0", f"2 * {one} - share(m0)", f"count() + {one}"])

    def may_fill(self, info: ManagerInfo, args: dict[str, Any]) -> bool:
        """Whether there are periods, and no condition that could name the first or the last one."""
        args["filters"] = {}
        try:
            build_aggregate({**args, "fill": True}, self.view, max_results=1)
        except ToolError:
            return False
        return True

    def type_of(self, info: ManagerInfo, name: str) -> str:
        return next(field.type for field in info.fields if field.name == name)

    def is_number(self, info: ManagerInfo, args: dict[str, Any], measures: dict[str, Any]) -> bool:
        try:
            build_aggregate({**args, "measures": {**measures, "across": "rank(m0)"}}, self.view, max_results=1)
        except ToolError:
            return False
        return True

    def group(self, info: ManagerInfo) -> str:
        path, at = self.one_path(info)
        fields = [f for f in at.fields if not f.computed and f.type not in ("json", "binary", "uuid")]
        field = self.random.choice(fields)  # MariaDB sorts UUIDs by an order of its own
        parts = ["year", "quarter", "month", "week", "day", "weekday", "month_of_year", "day_of_month"]
        parts += ["hour", "hour_of_day"] if field.type == "datetime" else []
        part = f"__{self.random.choice(parts)}" if field.type in DATES and self.random.random() < 0.8 else ""
        return f"{path}{field.name}{part}"

    def group_value(self, info: ManagerInfo, measures: dict[str, Any]) -> str:
        kind = self.random.random()
        if kind < 0.2:
            return "count()"
        many = [relation for relation in info.relations if relation.many]
        if kind < 0.45 and many:
            relation = self.random.choice(many)
            target = self.view.get(relation.target)
            assert target is not None
            numbers = [f"{relation.name}__{f.name}" for f in target.fields if f.type in NUMBERS and not f.computed]
            inner = self.random.choice(["count", "sum", "avg", "min", "max"]) if numbers else "count"
            inner = f"{inner}({self.random.choice(numbers) if numbers and inner != 'count' else relation.name})"
            outer = self.random.choice(["", "sum", "avg", "max", "median"])
            return f"{outer}({inner})" if outer else inner
        path, at = self.one_path(info)
        numbers = [f"{path}{f.name}" for f in at.fields if f.type in NUMBERS and not f.computed]
        dates = [f"{path}{f.name}" for f in at.fields if f.type in DATES]
        texts = [f"{path}{f.name}" for f in at.fields if f.type in ("string", "boolean", *NUMBERS) and not f.computed]
        if kind < 0.6 and len(dates) > 1:
            return f"{self.random.choice(['avg', 'min', 'sum'])}({dates[0]} - {dates[1]})"
        if kind < 0.7 and texts:
            return f"count(distinct {self.random.choice(texts)})"
        if not numbers:
            return "count()"
        if dates and self.random.random() < 0.2:
            part = self.random.choice(["year", "month", "weekday"])
            return self.random.choice([f"count(distinct {dates[0]}__{part})", f"avg(2030 - {dates[0]}__year)"])
        one, two = self.random.choice(numbers), self.random.choice(numbers)
        function = self.random.choice(["sum", "avg", "min", "max", "median"])
        return self.random.choice(
            [
                f"{function}({one})",
                f"{function}({one} * {two} - 1.5)",
                f"sum({one}) / count()",
                f"max({one}) - min({two})",
            ]
        )


@pytest.mark.parametrize(
    ("shown", "value"), [("1.50", Decimal("1.5")), (1.0000000001, 1), ("2024-01-01", date(2024, 1, 1))]
)
def test_agreement(shown: Any, value: Any) -> None:
    assert agree(shown, value)
    assert not agree("2" if shown != "2" else "3", value)
    assert agree(timezone.now().isoformat(), "x") is False
