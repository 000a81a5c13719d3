"""The same questions to gm-chat's own source and to three GraphQL schemas over the same tables, hidden rows too."""

from __future__ import annotations

import random
from typing import Any, ClassVar

import pytest
from desks import LIBRARIES, Desk, actor_of, alike, django_source, graphql_source
from questions import QUESTIONS
from testproject.shop_rows import fill_shop

PLANS = 60


@pytest.fixture
def users(db: None) -> dict[str, Any]:
    users = fill_shop()
    users["plain"].is_superuser = True  # every permission of Django's, but no staff: some rows are hidden
    return users


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("user", ["staff", "plain"])
def test_questions(library: str, user: str, users: dict[str, Any]) -> None:
    actor = actor_of(users[user])
    ours, theirs = Desk(django_source(), actor), Desk(graphql_source(library), actor)
    found = 0
    for manager, fields, args in QUESTIONS:
        expected, page = ours.ask(manager, fields, **args), theirs.ask(manager, fields, **args)
        question = (manager, fields, args)
        assert alike(page.data) == alike(expected.data), question
        assert (page.total_count, page.has_more) == (expected.total_count, expected.has_more), question
        assert (page.truncated, page.cut_lists) == (expected.truncated, expected.cut_lists), question
        found += bool(page.data)
    assert found > len(QUESTIONS) * 2 // 3


def test_hidden_rows_are_hidden_at_every_hop(users: dict[str, Any]) -> None:
    for library in LIBRARIES:
        desk = Desk(graphql_source(library), actor_of(users["plain"]))
        assert not desk.ask("PartManager", ["number"], filters={"status": "draft"}).data
        page = desk.ask("PartManager", ["number", "supplier__rating"])
        assert {row["supplier"] and row["supplier"]["rating"] for row in page.data} <= {None, 2, 3, 5}
        assert any(row["supplier"] is None for row in page.data)
        for manager in ("SupplierManager", "MaterialManager", "TagManager"):
            rows = desk.ask(manager, [{"parts": ["status"]}]).data
            assert {part["status"] for row in rows for part in row["parts"]} == {"released", "obsolete"}
        assert desk.view().rows_may_be_hidden("MaterialManager")


@pytest.mark.parametrize("library", LIBRARIES)
def test_random_questions(library: str, users: dict[str, Any]) -> None:
    desks = [(Desk(django_source(), who), Desk(graphql_source(library), who)) for who in map(actor_of, users.values())]
    found = 0
    for seed in range(PLANS):
        asking = Asking(random.Random(seed))  # noqa: S311 - reproducible
        ours, theirs = desks[seed % len(desks)]
        question = asking.question()
        expected, page = ours.ask(**question), theirs.ask(**question)
        assert alike(page.data) == alike(expected.data), (seed, question)
        assert (page.total_count, page.has_more) == (expected.total_count, expected.has_more), (seed, question)
        found += bool(page.data)
    assert found > PLANS // 4


class Asking:
    """Arguments as a model would write them, with values that occur."""

    FIELDS: ClassVar[dict[str, dict[str, list[Any]]]] = {
        "PartManager": {
            "number": ["P-001", "P-017", "P-020"],
            "name": ["A_b", "line\nbreak", "quote ' and \" and %"],
            "status": ["draft", "released", "obsolete"],
            "price": ["0.99", "1.00", "1.005", "12.50"],
            "weight": [0.5, 2.0],
            "purchased": [True, False],
            "released_on": ["2024-02-29", "2023-01-01"],
        },
        "SupplierManager": {"name": ["blank", "A_b"], "country": ["DE", "FR", ""], "rating": [1, 2, 3]},
        "MaterialManager": {"name": ["material 1", "material 3"], "density": [0.5, 2.7]},
        "TagManager": {"name": ["tag 1", "tag 2"]},
    }
    RELATIONS: ClassVar[dict[str, dict[str, str]]] = {
        "PartManager": {"supplier": "SupplierManager", "material": "MaterialManager", "tags": "TagManager"},
        "SupplierManager": {"parts": "PartManager"},
        "MaterialManager": {"parts": "PartManager"},
        "TagManager": {"parts": "PartManager"},
    }

    def __init__(self, random_: random.Random) -> None:
        self.random = random_

    def question(self) -> dict[str, Any]:
        manager = self.random.choice(["PartManager", "PartManager", *self.FIELDS])
        return {
            "manager": manager,
            "fields": self.fields(manager, 2),
            "filters": self.filters(manager, 2),
            "order_by": self.order(manager),
            "limit": self.random.choice([1, 3, 50]),
            "offset": self.random.choice([0, 0, 2, 100]),
        }

    def fields(self, manager: str, depth: int) -> list[Any]:
        names = list(self.FIELDS[manager])
        chosen: list[Any] = self.random.sample(names, self.random.randint(1, len(names)))
        for relation, target in self.RELATIONS[manager].items():
            if depth and self.random.random() < 0.3:
                chosen.append({relation: self.fields(target, depth - 1)})
        return chosen

    def filters(self, manager: str, depth: int) -> dict[str, Any]:
        filters: dict[str, Any] = {}
        for _ in range(self.random.randint(0, 2)):
            kind = self.random.random()
            if kind < 0.6 or not depth:
                name = self.random.choice(list(self.FIELDS[manager]))
                values = self.FIELDS[manager][name]
                filters |= self.condition(name, values)
            elif kind < 0.8:
                relation, target = self.random.choice(list(self.RELATIONS[manager].items()))
                filters[relation] = self.filters(target, depth - 1) or None
            else:
                inner = [self.filters(manager, depth - 1) for _ in range(2)]
                operator = self.random.choice(["and", "or", "not"])
                filters[operator] = inner[0] if operator == "not" else inner
        return filters

    def condition(self, name: str, values: list[Any]) -> dict[str, Any]:
        value = self.random.choice(values)
        if isinstance(value, bool):
            return {name: value}
        lookups = ["exact", "in", "isnull", *([] if name == "status" else ["gt", "gte", "lt", "lte"])]
        if isinstance(value, str) and name in ("name", "number", "country"):
            lookups += ["icontains", "istartswith", "iendswith", "iexact"]
        lookup = self.random.choice(lookups)
        match lookup:
            case "in":
                return {f"{name}__in": self.random.sample(values, self.random.randint(0, 2))}
            case "isnull":
                return {f"{name}__isnull": self.random.choice([True, False])}
            case "icontains" | "istartswith":
                return {f"{name}__{lookup}": value[: self.random.randint(0, 4)]}
        return {f"{name}__{lookup}": value}

    def order(self, manager: str) -> list[str]:
        terms = []
        for _ in range(self.random.randint(0, 2)):
            path, at = "", manager
            if manager == "PartManager" and self.random.random() < 0.4:
                relation = self.random.choice(["supplier", "material"])
                path, at = f"{relation}__", self.RELATIONS[manager][relation]
            terms.append(self.random.choice(["", "-"]) + path + self.random.choice(list(self.FIELDS[at])))
        return terms
