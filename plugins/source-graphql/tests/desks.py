"""Ask a source as the ``query`` and ``mutate`` tools do: validated arguments in, a page out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest
from asgiref.sync import async_to_sync
from gm_chat_source_graphql import GraphQLSource, Options
from shop_schemas import parts_for, suppliers_for
from testproject.shop import models

from gm_chat.managers import ModelManager
from gm_chat.managers.aggregate import build_aggregate
from gm_chat.managers.calls import build_call
from gm_chat.managers.describe import describe
from gm_chat.managers.index import SchemaIndex
from gm_chat.managers.plan import build_plan
from gm_chat.managers.service import DataService
from gm_chat.managers.source import DjangoModelSource
from gm_chat.persistence.threads import inline_database
from gm_chat.plugin import Actor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gm_chat.managers.api import ManagerView, QueryPage
    from gm_chat.managers.measures import AggregatePage
    from gm_chat.plugin import ManagerSource

LIBRARIES = [name for name in ("graphene", "strawberry", "ariadne") if find_spec(name)]
needs_graphene = pytest.mark.skipif("graphene" not in LIBRARIES, reason="graphene knows no graphql-core 3.3")
_HUMP = re.compile(r"(?<=[a-z])([A-Z])")


class PartManager(ModelManager):
    chat_exposed = True
    model = models.Part
    fields = (
        *("id", "number", "name", "status", "price", "weight", "purchased", "released_on", "created_at"),
        *("material", "supplier", "tags"),
    )

    @classmethod
    def visible_to(cls, queryset: Any, actor: Actor) -> Any:
        return parts_for(actor.user, queryset)


class SupplierManager(ModelManager):
    chat_exposed = True
    model = models.Supplier
    fields = ("id", "name", "country", "rating", "parts")

    @classmethod
    def visible_to(cls, queryset: Any, actor: Actor) -> Any:
        return suppliers_for(actor.user, queryset)


class MaterialManager(ModelManager):
    chat_exposed = True
    model = models.Material
    fields = ("id", "name", "density", "parts")


class TagManager(ModelManager):
    chat_exposed = True
    model = models.Tag
    fields = ("id", "name", "parts")


def actor_of(user: Any) -> Actor:
    return Actor() if user is None else Actor(user_id=str(user.pk), user=user)


def graphql_source(library: str, **options: Any) -> GraphQLSource:
    chosen = {"managers": "*", **options}
    return GraphQLSource(Options(schema=f"shop_schemas.with_{library}.schema", **chosen))


def django_source() -> DjangoModelSource:
    return DjangoModelSource(describe([PartManager, SupplierManager, MaterialManager, TagManager]).bindings)


@dataclass
class Desk:
    """A source and who asks it."""

    source: ManagerSource
    actor: Actor
    deadline: float | None = None

    def __post_init__(self) -> None:
        self.service = DataService(SchemaIndex.build(self.source.describe()), [self.source])

    def view(self) -> ManagerView:
        return run(self.service.view(self.actor))

    def ask(self, manager: str, fields: list[Any], **args: Any) -> QueryPage:
        options = {"max_results": 200, "max_bytes": args.pop("max_bytes", None)}
        plan = build_plan({"manager": manager, "fields": fields, **args}, self.view(), **options)
        return run(self.service.query(plan, self.actor, deadline=self.deadline))

    def compute(self, manager: str, **args: Any) -> AggregatePage:
        options = {"max_results": 200, "max_bytes": args.pop("max_bytes", None)}
        plan = build_aggregate({"manager": manager, **args}, self.view(), **options)
        return run(self.service.aggregate(plan, self.actor, deadline=self.deadline))

    def change(self, name: str, /, **values: Any) -> Mapping[str, Any]:
        call = build_call(name, values, self.view())
        return run(self.service.mutate(call, self.actor, deadline=self.deadline))


def run(coroutine: Any) -> Any:
    """Run to the end on this thread's database connection, inside the test's transaction."""

    async def main() -> Any:
        return await coroutine

    with inline_database():
        return async_to_sync(main)()


def alike(value: Any) -> Any:
    """A page's data with snake_case names, without ids (relay's are opaque) and what but one has."""
    if isinstance(value, dict):
        return {
            _HUMP.sub(r"_\1", name).lower(): alike(item) for name, item in value.items() if name not in ("id", "cost")
        }
    return [alike(item) for item in value] if isinstance(value, list | tuple) else value
