"""A row that an actor may not see is answered like one that never was.

Each manager has one hidden row, which shown rows refer to. It is asked for by its key in every way that a tool offers,
and so is a key of no row: but for the key, what the model reads is the same to the letter, and so is the number of SQL
statements. That hidden rows influence nothing else is shown where they are deleted, in the tests of the managers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from django.db import transaction
from testproject.calling import answer, context_of
from testproject.desk import Desk, actor_of
from testproject.hidden_rows import ABSENT_TEXT, HIDDEN_TEXT, HiddenRow, hide_one_each
from testproject.shop_rows import fill_shop

from gm_chat.encoding import jsonable
from gm_chat.plugin import ToolContext, ToolSpec
from gm_chat.tools import aggregate, direct_tools, mutate, query

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gm_chat.managers.api import FieldInfo, InputInfo, ManagerInfo

Question = tuple[ToolSpec, dict[str, Any]]
MANAGERS = (
    *("AnnouncementManager", "BomLineManager", "DocumentManager", "EmployeeManager", "MaterialManager", "NoteManager"),
    *("OrderLineManager", "OrderManager", "PartManager", "ProjectManager", "SpecificationManager", "SupplierManager"),
    "TagManager",
)


@pytest.fixture
def shop(db: None) -> tuple[Desk, dict[str, HiddenRow]]:
    staff = fill_shop(parts=12)["staff"]
    bindings, found = hide_one_each()
    return Desk(bindings, actor_of(staff)), {item.manager: item for item in found}


def conditions(name: str, key: Any) -> Iterator[dict[str, Any]]:
    yield from ({name: key}, {f"{name}__in": [key]}, {"not": {name: key}}, {"or": [{name: key}, {name: None}]})
    yield {"first": {"per": [], "order_by": [name], "where": {name: key}}}
    yield {"first": {"per": [name], "order_by": [name], "where": {"not": {name: key}}}}


def of_the_manager(row: HiddenRow, key: Any, info: ManagerInfo, direct: ToolSpec) -> Iterator[Question]:
    """Its own rows: filtered, counted, grouped, compared, found by their text."""
    for filters in conditions(row.name, key):
        yield query, {"manager": row.manager, "fields": ["*"], "filters": filters, "order_by": [f"-{row.name}"]}
        yield query, {"manager": row.manager, "fields": [row.name], "filters": filters, "limit": 1, "offset": 3}
        yield direct, {"fields": [row.name], "filters": filters, "limit": 2}
        counts = ["count()", f"count(distinct {row.name})"]
        yield aggregate, {"manager": row.manager, "measures": counts, "filters": filters}
        measures = {"n": {"formula": "count()", "where": filters}, "place": "rank(n)", "all": "count()"}
        yield aggregate, {"manager": row.manager, "group_by": [row.name], "measures": measures, "order_by": ["-n"]}
    having = {"manager": row.manager, "group_by": [row.name], "measures": {"n": "count()", "of_all": "share(n)"}}
    yield aggregate, {**having, "having": {row.name: key}}
    for field in texts(info):
        text = HIDDEN_TEXT if key == row.key else ABSENT_TEXT
        for filters in ({f"{field.name}__icontains": text}, {field.name: text}, {field.name: text.upper()}):
            yield query, {"manager": row.manager, "fields": [field.name], "filters": filters}
            yield aggregate, {"manager": row.manager, "measures": "count()", "filters": filters}


def of_relations(row: HiddenRow, key: Any, desk: Desk) -> Iterator[Question]:
    """Rows that are related to it."""
    for near in desk.view:
        for relation in near.relations:
            if relation.target != row.manager:
                continue
            for filters in conditions(row.name, key):
                through = {"not": {relation.name: filters}}
                for each in ({relation.name: filters}, through):
                    yield query, {"manager": near.name, "fields": ["*", {relation.name: [row.name]}], "filters": each}
                    yield aggregate, {"manager": near.name, "measures": "count()", "filters": each}
                measure = {"formula": f"sum(count({relation.name}))", "where": {relation.name: filters}}
                yield aggregate, {"manager": near.name, "measures": {"n": measure if relation.many else "count()"}}
            if not relation.many:
                grouped = {"manager": near.name, "group_by": [relation.name], "measures": {"n": "count()"}}
                yield aggregate, {**grouped, "having": {relation.name: key}}
                yield query, {"manager": near.name, "fields": ["*"], "order_by": [f"{relation.name}__{row.name}"]}


def of_mutations(row: HiddenRow, key: Any, desk: Desk) -> Iterator[Question]:
    """It as what is to change, and as what another row is to refer to."""
    for info in desk.view:
        shown = shown_key(info.name, desk)
        for mutation in info.mutations:
            given = {item.name: valid(item, desk) for item in mutation.inputs if item.required and item.name != "id"}
            given |= {"id": shown} if mutation.kind != "create" else {}
            change = {texts(info)[0].name: "new"} if mutation.kind == "update" and texts(info) else {}
            if info.name == row.manager and mutation.kind != "create":
                asked = {"mutation": mutation.name, "input": {**given, "id": key, **change}}
                yield mutate, asked
                for field in texts(info):
                    text = HIDDEN_TEXT if key == row.key else ABSENT_TEXT
                    yield mutate, {**asked, "expected": {field.name: text}}
            for item in mutation.inputs:
                if item.relation == row.manager:
                    values = {**given, item.name: [key] if item.many else key}
                    yield mutate, {"mutation": mutation.name, "input": values}
                    for each in shown_keys(info.name, desk)[:4] if mutation.kind != "create" else ():
                        asked = {"mutation": mutation.name, "input": {**given, **change, "id": each}}
                        yield mutate, {**asked, "expected": {item.name: [key] if item.many else key}}


def shown_keys(name: str, desk: Desk) -> list[Any]:
    """The keys of the rows that are there to be seen."""
    binding = desk.bindings[name]
    rows = binding.model._default_manager.order_by("pk")
    return [jsonable(each.pk) for each in (binding.visible_to(rows, desk.actor) if binding.visible_to else rows)]


def shown_key(name: str, desk: Desk) -> Any:
    return shown_keys(name, desk)[0]


def valid(item: InputInfo, desk: Desk) -> Any:
    if item.relation is not None:
        return [shown_key(item.relation, desk)] if item.many else shown_key(item.relation, desk)
    if item.choices:
        return item.choices[0][0]
    values = {"string": "zq new", "decimal": "1.00", "date": "2024-01-01", "datetime": "2024-01-01T00:00Z"}
    return values.get(item.type, 1)


def texts(info: ManagerInfo) -> list[FieldInfo]:
    return [field for field in info.fields if field.type == "string" and not (field.choices or field.computed)]


def told(row: HiddenRow, key: Any, desk: Desk, context: ToolContext) -> Iterator[tuple[Question, str, int]]:
    """Each question about the key, the answer without it, and how many statements it took."""
    written = jsonable(key)
    (direct,) = (tool for tool in direct_tools(desk.view) if tool.definition.name == f"query_{row.manager}")
    info = desk.view.get(row.manager)
    assert info is not None
    questions = list(of_mutations(row, written, desk))
    if not context.approved:  # what only reads needs no word
        questions += [*of_the_manager(row, written, info, direct), *of_relations(row, written, desk)]
    for tool, args in questions:
        with transaction.atomic():
            text, statements = answer(tool, args, context)
            transaction.set_rollback(True)
        for name in (str(written), HIDDEN_TEXT.upper(), ABSENT_TEXT.upper(), HIDDEN_TEXT, ABSENT_TEXT):
            text = text.replace(name, "?")
        yield (tool, args), text, statements


@pytest.mark.parametrize("approved", [True, False])
@pytest.mark.parametrize("name", MANAGERS)
def test_a_hidden_row_is_answered_like_one_that_never_was(
    shop: tuple[Desk, dict[str, HiddenRow]], name: str, approved: bool
) -> None:
    desk, rows = shop
    assert set(MANAGERS) == set(rows), "every manager with one key has its turn"
    every = [item.name for info in desk.view for item in info.mutations]
    assert "reAssign" in every
    context = context_of(desk, approved=approved, allowed_mutations=every, confirm_mutations=every)
    row = rows[name]
    pairs = zip(told(row, row.key, desk, context), told(row, row.absent, desk, context), strict=True)
    for (question, *hidden), (_, *absent) in pairs:
        assert hidden == absent, (question[0].definition.name, question[1])


def test_the_rows_are_there(shop: tuple[Desk, dict[str, HiddenRow]]) -> None:
    """Who sees them finds them, and what refers to them: else the others would compare nothing with nothing."""
    desk, rows = shop
    seeing = Desk({name: replace(binding, visible_to=None) for name, binding in desk.bindings.items()}, desk.actor)
    referred = 0
    for name, row in rows.items():
        found = seeing.ask(name, [row.name], filters={row.name: jsonable(row.key)})
        assert found.total_count == 1
        assert desk.ask(name, [row.name], filters={row.name: jsonable(row.key)}).total_count == 0
        for near in seeing.view:
            for relation in near.relations:
                if relation.target == name:
                    filters = {relation.name: {row.name: jsonable(row.key)}}
                    referred += seeing.ask(near.name, ["*"], filters=filters).total_count
    assert referred > 20
