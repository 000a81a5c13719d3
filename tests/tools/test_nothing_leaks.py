"""What an actor may not see has no influence on any answer: the same questions are put to a world without it."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test.utils import CaptureQueriesContext
from testproject.calling import call
from testproject.desk import actor_of

from gm_chat.encoding import to_json
from gm_chat.managers import registry
from gm_chat.managers.index import SchemaIndex
from gm_chat.managers.service import DataService
from gm_chat.managers.source import DjangoModelSource
from gm_chat.plugin import ToolContext, ToolError, ToolSpec, TurnContext
from gm_chat.tools import aggregate, find_path, get_manager_schema, mutate, query, search_managers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gm_chat.managers.api import ManagerInfo

RIGHTS = [
    *("view_part", "view_material", "view_employee", "view_tag", "view_project"),
    *("add_part", "change_part", "delete_part", "add_employee", "change_employee"),
]
"""Neither suppliers, orders and documents nor, of employees, the salary."""

Question = tuple[ToolSpec, dict[str, Any]]


class NarrowSource(DjangoModelSource):
    """Describes what one actor sees, as if there were nothing else."""

    def __init__(self, seen: list[ManagerInfo]) -> None:
        super().__init__()
        self.seen = seen

    def describe(self) -> list[ManagerInfo]:
        return self.seen


@pytest.fixture
def worlds(users: dict[str, Any]) -> tuple[ToolContext, ToolContext]:
    """The same actor in the whole project, and in one that holds nothing but what the actor sees."""
    users["plain"].user_permissions.set(Permission.objects.filter(codename__in=RIGHTS))
    actor = actor_of(users["plain"])
    whole = DjangoModelSource()
    narrow = NarrowSource(list(call_view(whole, actor)))
    settings = {"max_results": 200, "allowed_mutations": [], "confirm_mutations": []}
    turn = TurnContext("turn", None, actor, "", "http")

    def context(source: DjangoModelSource, allowed: list[str]) -> ToolContext:
        service = DataService(SchemaIndex.build(source.describe()), [source])
        return ToolContext(turn, "call", service, {**settings, "allowed_mutations": allowed}, deadline=None)

    every = [item.name for binding in registry.bindings().values() for item in binding.info.mutations]
    known = [item.name for info in narrow.describe() for item in info.mutations]
    return context(whole, every), context(narrow, known)


def call_view(source: DjangoModelSource, actor: Any) -> Any:
    from gm_chat.managers.visibility import visibility_of

    return SchemaIndex.build(source.describe()).view(visibility_of(actor, source.bindings))


MANAGERS = ["SupplierManager", "Supplier", "supplier_manager", "OrderManager", "DocumentManager", "Payment", "Nosuch"]
MEMBERS = ["supplier", "salary", "order_lines", "documents", "remarks", "supplierId", "salary_gte", "SALARY", "nosuch"]


def questions() -> Iterator[Question]:
    for name in [*MANAGERS, "PartManager", "EmployeeManager"]:
        yield get_manager_schema, {"manager": name}
        yield search_managers, {"query": name}
        yield query, {"manager": name, "fields": ["*"]}
        yield aggregate, {"manager": name, "measures": "count()"}
        yield find_path, {"from_manager": "PartManager", "to_manager": name}
        yield find_path, {"from_manager": name, "to_manager": "PartManager", "alternatives": True}
    for text in ("salary", "who supplies parts", "companies that sell", "employe salry", "vendr", "order", "parts"):
        yield search_managers, {"query": text}
    for manager, member in product(("PartManager", "EmployeeManager", "ProjectManager"), MEMBERS):
        for path in (member, f"{member}__name", f"{member}__isnull", f"{member}__gte", f"parts__{member}"):
            yield query, {"manager": manager, "fields": [path]}
            yield query, {"manager": manager, "fields": [{path: ["name"]}]}
            yield query, {"manager": manager, "fields": ["name"], "filters": {path: 1}}
            yield query, {"manager": manager, "fields": ["name"], "filters": {"not": {path: None}}}
            yield query, {"manager": manager, "fields": ["name"], "order_by": [f"-{path}"]}
            yield query, {"manager": manager, "fields": ["name"], "order_by": ["name"], "first_per": [path]}
            yield query, {"manager": manager, "fields": ["name"], "filters": {"name": {"field": path}}}
            yield query, {"manager": manager, "fields": ["name"], "filters": {"tags": {"name": {"outer": path}}}}
            first = {"per": [path], "order_by": [path], "where": {path: 1}}
            yield query, {"manager": manager, "fields": ["name"], "filters": {"first": first}}
            for formula in (f"sum({path})", f"count({path})", f"avg(max({path}))", f"count(distinct {path})", path):
                yield aggregate, {"manager": manager, "measures": formula}
                yield aggregate, {"manager": manager, "group_by": ["name"], "measures": f"rank({formula})"}
            yield aggregate, {"manager": manager, "group_by": [path]}
            yield aggregate, {"manager": manager, "measures": "count()", "filters": {path: 1}}
            measure = {"formula": "count()", "where": {path: 1}}
            yield aggregate, {"manager": manager, "measures": {"n": measure}}
            yield aggregate, {"manager": manager, "group_by": ["name"], "measures": "count()", "having": {path: 1}}
            yield aggregate, {"manager": manager, "group_by": ["name"], "order_by": [path]}
    for mutation in ("createSupplier", "updateTag", "createOrder", "deleteProject", "createNosuch", "updatePart"):
        yield mutate, {"mutation": mutation, "input": {"id": 1}}
        yield mutate, {"mutation": mutation, "input": {"id": 10**6, "name": "x", "supplier": 1, "salary": 1}}
    for member in MEMBERS:
        yield mutate, {"mutation": "updatePart", "input": {"id": 1, member: 1}}
        yield mutate, {"mutation": "createEmployee", "input": {"name": "x", member: 1}}


def answer(question: Question, context: ToolContext) -> tuple[str, int]:
    """What the model reads, and how many statements it took."""
    spec, args = question
    with CaptureQueriesContext(connection) as statements:
        try:
            result = call(spec, args, context)
        except ToolError as error:
            result = {"error": error.code, "message": error.message, **error.details}
    return to_json(result), len(statements)


def test_every_answer_is_that_of_a_world_without_what_is_hidden(worlds: tuple[ToolContext, ToolContext]) -> None:
    whole, narrow = worlds
    for question in questions():
        assert answer(question, whole) == answer(question, narrow), question
