"""Random queries against a naive walk over model instances, row visibility included.

The walk knows nothing of the executor: it asks each instance for its relations and decides in Python who may see
what. Everything about a result must agree: rows, order, nesting, totals.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from testproject.desk import Desk, actor_of
from testproject.rights import desk_of
from testproject.shop_rows import fill_shop
from testproject.walk import REMOVABLE, Asking, Walk, compare, hiding

from gm_chat.managers import registry
from gm_chat.managers.executor import execute_plan

if TYPE_CHECKING:
    from collections.abc import Iterator

DESKS = range(12)
PLANS = 504
"""Over all desks."""
HIDING_PLANS = 300


@pytest.fixture(autouse=True)
def _time_zone() -> Iterator[None]:
    """MariaDB knows no time zones but its own until they are loaded."""
    with timezone.override("UTC" if connection.vendor == "mysql" else "Europe/Berlin"):
        yield


@pytest.mark.parametrize("number", DESKS)
def test_plans_equal_a_naive_walk(db: None, number: int) -> None:
    desk = desk_of(number)
    walk, view = Walk(desk), desk.view
    managers, found = list(view), 0
    for seed in range(PLANS // len(DESKS)):
        random_ = random.Random(f"{number} {seed}")  # noqa: S311 - reproducible
        info = random_.choice(managers)
        asking = Asking(desk, random_)
        plan = desk.plan(
            info.name,
            asking.fields(info, 3),
            filters=asking.filters(info, 3),
            **asking.order_and_first(info),
            limit=random_.choice([1, 3, 50]),
            offset=random_.choice([0, 0, 2, 100]),
        )
        page = execute_plan(plan, desk.bindings, desk.actor)
        expected, total = walk.run(plan)
        assert page.data == expected, (seed, plan)
        assert page.total_count == total, (seed, plan)
        assert page.has_more == (plan.offset + len(expected) < total), (seed, plan)
        found += bool(expected)
    assert found > PLANS // len(DESKS) // 8, "too few of the random plans find rows to say anything"


def test_hidden_rows_have_no_influence(db: None) -> None:
    """Results, totals and the number of statements are those of a database without the hidden rows."""
    users = fill_shop(parts=30)
    users["plain"].user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    desk = Desk(hiding(registry.bindings(), REMOVABLE), actor_of(users["plain"]))
    managers, plans = list(desk.view), []
    for seed in range(HIDING_PLANS):
        random_ = random.Random(seed)  # noqa: S311 - reproducible
        info, asking = random_.choice(managers), Asking(desk, random_)
        filters, order = asking.filters(info, 3), asking.order_and_first(info)
        limit, offset = random_.choice([1, 3, 50]), random_.choice([0, 0, 2, 100])
        fields = asking.fields(info, 3)
        plan = desk.plan(info.name, fields, filters=filters, **order, limit=limit, offset=offset)
        plans.append(replace(plan, nested_rows=random_.choice([2, 20_000])))

    def answers() -> list[Any]:
        found = []
        for plan in plans:
            with CaptureQueriesContext(connection) as statements:
                page = execute_plan(plan, desk.bindings, desk.actor)
            found.append((page, len(statements)))
        return found

    before = answers()
    hidden = {name: set(binding.model._default_manager.all()) for name, binding in desk.bindings.items()}
    for name, rows in Walk(desk).visible.items():
        hidden[name] -= set(rows)
    for row in itertools.chain.from_iterable(hidden.values()):
        row.delete()
    assert sum(map(len, hidden.values())) > HIDING_PLANS // 10
    for plan, (page, count), (expected, expected_count) in zip(plans, before, answers(), strict=True):
        assert page == expected, plan
        assert count == expected_count, plan


@pytest.mark.parametrize(("lookup", "expected"), [("gt", False), ("isnull", False), ("in", True)])
def test_the_walk_itself(lookup: str, expected: bool) -> None:
    assert compare(1, lookup, {"gt": 1, "isnull": True, "in": (1,)}[lookup]) is expected
