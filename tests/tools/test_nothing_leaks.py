"""A manager, field or relation that an actor may not see is answered like one that does not exist.

Everything that the test's managers declare and the actor may not see is asked for in every way that a tool offers,
once in the whole project and once in one that declares no more than what the actor sees: what the model reads is the
same to the letter, and so is the number of SQL statements.
"""

from __future__ import annotations

import random
from itertools import chain
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db import transaction
from testproject.calling import answer, call, context_of
from testproject.desk import Desk, actor_of
from testproject.rights import desk_of

from gm_chat.managers import registry
from gm_chat.managers.source import DjangoModelSource
from gm_chat.plugin import ToolContext, ToolError, ToolSpec
from gm_chat.tools import aggregate, direct_tools, find_path, get_manager_schema, mutate, query, search_managers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gm_chat.managers.api import ManagerInfo, ManagerView
    from gm_chat.managers.binding import Binding

RIGHTS = [
    *("view_part", "view_material", "view_employee", "view_tag", "view_project"),
    *("add_part", "change_part", "delete_part", "add_employee", "change_employee"),
]
"""Neither suppliers, orders and documents nor, of employees, the salary."""
ACTORS = ["anonymous", "plain", "staff", 3, 4]
"""Numbers stand for rights drawn at random."""

Question = tuple[ToolSpec, dict[str, Any]]


class NarrowSource(DjangoModelSource):
    """Describes what one actor sees, as if there were nothing else."""

    def __init__(self, bindings: Mapping[str, Binding], seen: list[ManagerInfo]) -> None:
        super().__init__(bindings)
        self.seen = seen

    def describe(self) -> list[ManagerInfo]:
        return self.seen


@pytest.fixture(params=ACTORS)
def desk(request: pytest.FixtureRequest, db: None) -> Desk:
    if isinstance(request.param, int):
        return desk_of(request.param)
    shop, users = desk_of(0), get_user_model().objects
    user = {"plain": users.get(username="plain"), "staff": users.create_user("clerk", is_staff=True)}.get(request.param)
    if user is not None:
        every = Permission.objects.filter(content_type__app_label="shop")
        user.user_permissions.set(
            every.filter(codename__in=RIGHTS)
            if request.param == "plain"
            else every.exclude(codename__endswith="supplier").exclude(codename__endswith="tag")
        )
    return Desk(shop.bindings, actor_of(user))


# --- questions --------------------------------------------------------------------------------------------------


def hidden(desk: Desk, view: ManagerView) -> tuple[list[str], list[tuple[str, str]]]:
    """The managers that there are and the actor does not see; of those it sees, the members it does not."""
    managers = [name for name in desk.bindings if view.get(name) is None]
    members = []
    for info in view:
        declared = desk.bindings[info.name].info
        seen = {item.name for item in (*info.fields, *info.relations)}
        members += [(info.name, item.name) for item in (*declared.fields, *declared.relations) if item.name not in seen]
    return managers, members


def questions(desk: Desk, view: ManagerView, managers: list[str], members: list[tuple[str, str]]) -> Iterator[Question]:
    """All about everything hidden by its very name, and some of all about other spellings and about what lies near."""
    yield from chain.from_iterable(about_manager(name, view) for name in managers)
    yield from chain.from_iterable(about_member(*member) for member in members)
    yield from about_mutations(desk, view, list(dict.fromkeys(name for _, name in members)))
    yield from searches(desk)
    further: list[Question] = []
    for manager, name in members:
        for spelling in (*spellings(name), f"{name}__name", f"{name}__isnull", f"{name}__gte", f"{name}__month"):
            further += about_member(manager, spelling)
        around = [(info.name, item.name) for info in view for item in info.relations if item.target == manager]
        for near, relation in around:
            further += about_member(near, f"{relation}__{name}")
    yield from random.Random(0).sample(further, min(600, len(further)))  # noqa: S311 - reproducible


def spellings(name: str) -> Iterator[str]:
    """As a model might write it, wrongly too: errors propose what was meant."""
    head, *rest = name.split("_")
    yield from (head + "".join(map(str.title, rest)), name.upper(), f"{name}s", name[:-1] or name, f"{name}_id")


def about_manager(name: str, view: ManagerView) -> Iterator[Question]:
    for spelling in (name, name.removesuffix("Manager"), f"{name}s"):
        yield get_manager_schema, {"manager": spelling}
        yield search_managers, {"query": spelling}
        yield query, {"manager": spelling, "fields": ["*"]}
        yield aggregate, {"manager": spelling, "measures": "count()"}
        for info in list(view)[:3]:
            yield find_path, {"from_manager": info.name, "to_manager": spelling}
            yield find_path, {"from_manager": spelling, "to_manager": info.name, "alternatives": True}


def about_member(manager: str, path: str) -> Iterator[Question]:
    yield query, {"manager": manager, "fields": [path]}
    yield query, {"manager": manager, "fields": [{path: ["*"]}]}
    yield from ((query, {"manager": manager, "fields": ["*"], "limit": 1, **how}) for how in filtered(path))
    yield query, {"manager": manager, "fields": ["*"], "order_by": [f"-{path}"]}
    yield query, {"manager": manager, "fields": ["*"], "order_by": ["id"], "first_per": [path]}
    yield from ((aggregate, {"manager": manager, "measures": "count()", **how}) for how in filtered(path))
    yield aggregate, {"manager": manager, "group_by": [path]}
    for how in ({"having": {path: 1}}, {"order_by": [path]}, {"group_by": ["id", path], "fill": True}):
        yield aggregate, {"manager": manager, "group_by": ["id"], "measures": "count()", **how}
    yield aggregate, {"manager": manager, "measures": {"n": {"formula": "count()", "where": {path: 1}}}}
    for formula in (f"sum({path})", f"count(distinct {path})", f"avg(max({path}))", f"1 + {path}"):
        yield aggregate, {"manager": manager, "measures": formula}
        yield aggregate, {"manager": manager, "group_by": ["id"], "measures": f"rank({formula})"}
    yield aggregate, {"manager": manager, "group_by": ["id"], "measures": f"running(count(), {path})"}


def filtered(path: str) -> Iterator[dict[str, Any]]:
    for filters in (
        {path: 1},
        {path: None},
        {"not": {path: "x"}},
        {"or": [{path: 1}, {"id": None}]},
        {"id": {"field": path}},
        {"id": {"outer": path}},
        {"first": {"per": [path], "order_by": ["id"]}},
        {"first": {"per": [], "order_by": [path], "where": {path: 1}}},
    ):
        yield {"filters": filters}


def about_mutations(desk: Desk, view: ManagerView, names: list[str]) -> Iterator[Question]:
    for info in (binding.info for binding in desk.bindings.values()):
        for mutation in info.mutations:
            yield mutate, {"mutation": mutation.name, "input": {"id": 1}}
            if view.mutation(mutation.name) is None:
                yield mutate, {"mutation": mutation.name, "input": {item.name: 1 for item in mutation.inputs}}
                yield mutate, {"mutation": mutation.name[:-1], "input": {}}
            else:
                for name in names:
                    yield mutate, {"mutation": mutation.name, "input": {"id": 10**9, name: 1}}
                    yield mutate, {"mutation": mutation.name, "input": {"id": 1}, "expected": {name: 1}}


def searches(desk: Desk) -> Iterator[Question]:
    for info in (binding.info for binding in desk.bindings.values()):
        for text in (info.description, *info.aliases, *(item.name for item in (*info.fields, *info.relations))):
            yield search_managers, {"query": text}


# --- answers ----------------------------------------------------------------------------------------------------


def test_every_answer_is_that_of_a_project_without_what_is_hidden(desk: Desk) -> None:
    view = desk.view
    managers, members = hidden(desk, view)
    assert managers or members, "nothing is hidden, so that nothing could leak"
    every = [item.name for binding in desk.bindings.values() for item in binding.info.mutations]
    settings = {"allowed_mutations": every, "confirm_mutations": every[::2]}
    whole = context_of(desk, **settings)
    narrow = context_of(desk, NarrowSource(desk.bindings, list(view)), **settings)
    for tool, args in questions(desk, view, managers, members):
        told = []
        for context in (whole, narrow):
            with transaction.atomic():
                told.append(answer(tool, args, context))
                transaction.set_rollback(True)  # what may be deleted in one is there in the other
        assert told[0] == told[1], (tool.definition.name, args)
    definitions = [[tool.definition for tool in direct_tools(seen(context))] for context in (whole, narrow)]
    assert definitions[0] == definitions[1]


def seen(context: ToolContext) -> ManagerView:
    """The view that tools get."""
    found: list[ManagerView] = []

    async def look(args: Any, context: ToolContext) -> None:
        found.append(await context.managers.view(context.actor))

    call(ToolSpec(definition=query.definition, run=look), {}, context)
    return found[0]


@pytest.mark.parametrize("tool", [query, aggregate])
def test_the_note_is_fixed_for_a_manager_and_an_actor(desk: Desk, tool: ToolSpec) -> None:
    context, view = context_of(desk), desk.view
    for info in view:
        notes = set()
        key = next((field.name for field in info.fields if field.lookups), None)
        if key is None:
            continue
        what: dict[str, Any] = {"fields": [key]} if tool is query else {"measures": "count()"}
        for filters in ({}, {f"{key}__isnull": True}, {"not": {f"{key}__isnull": True}}):
            notes.add(call(tool, {"manager": info.name, **what, "filters": filters}, context).get("note"))
        assert len(notes) == 1, info.name
        assert (notes != {None}) is view.rows_may_be_hidden(info.name)
        assert view.rows_may_be_hidden(info.name) or desk.bindings[info.name].visible_to is None


# --- rights that change while a turn runs -------------------------------------------------------------------------


def test_a_right_lost_in_mid_turn_is_lost_at_once(db: None) -> None:
    desk_of(0)
    user = get_user_model().objects.get(username="plain")
    codes = ["view_part", "view_supplier", "change_part"]
    user.user_permissions.set(Permission.objects.filter(codename__in=codes))
    desk = Desk(registry.bindings(), actor_of(user))
    context = context_of(desk, allowed_mutations=["updatePart"])
    part = desk.bindings["PartManager"].model._default_manager.earliest("pk").pk
    reads: list[Question] = [
        (query, {"manager": "PartManager", "fields": ["name", "supplier__name"]}),
        (aggregate, {"manager": "PartManager", "group_by": ["supplier__country"], "measures": "count()"}),
        (find_path, {"from_manager": "PartManager", "to_manager": "SupplierManager"}),
        (mutate, {"mutation": "updatePart", "input": {"id": part, "supplier": None}}),
    ]
    for tool, args in reads:
        call(tool, args, context)
    user.user_permissions.remove(Permission.objects.get(codename="view_supplier"))
    _forget(user)
    for tool, args in reads:
        with pytest.raises(ToolError) as caught:
            call(tool, args, context)
        assert caught.value.code in ("unknown_field", "unknown_relation", "unknown_manager", "invalid_argument")
    user.user_permissions.remove(Permission.objects.get(codename="change_part"))
    _forget(user)
    approved = context_of(desk, approved=True, allowed_mutations=["updatePart"], confirm_mutations=["updatePart"])
    with pytest.raises(ToolError) as caught:
        call(mutate, {"mutation": "updatePart", "input": {"id": part, "name": "new"}}, approved)
    assert caught.value.code == "mutation_not_allowed"


def _forget(user: Any) -> None:
    """Django remembers a user object's permissions; the engine makes a new one for each message and confirmation."""
    for name in ("_perm_cache", "_user_perm_cache", "_group_perm_cache"):
        user.__dict__.pop(name, None)
