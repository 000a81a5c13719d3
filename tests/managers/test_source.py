from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from testproject.desk import actor_of
from testproject.shop import models as shop

from gm_chat.managers import expose, registry
from gm_chat.managers.api import ManagerInfo, ManagerVisibility, MutationInfo, QueryPlan, Selection, Visibility
from gm_chat.managers.calls import build_call
from gm_chat.managers.index import SchemaIndex
from gm_chat.managers.service import DataService
from gm_chat.managers.source import DjangoModelSource
from gm_chat.plugin import ManagerSource, ToolError

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def user() -> Any:
    shop.Tag.objects.create(name="t")
    made = get_user_model().objects.create_user("u")
    made.user_permissions.set(Permission.objects.filter(codename__in=["view_tag", "add_tag"]))
    return made


def test_it_is_a_source_and_describes_without_a_database() -> None:
    source = DjangoModelSource()
    assert isinstance(source, ManagerSource)
    assert [info.name for info in source.describe()] == list(registry.bindings())
    only = {"TagManager": registry.bindings()["TagManager"]}
    assert [info.name for info in DjangoModelSource(only).describe()] == ["TagManager"]


async def test_it_reads_and_writes_as_the_actor(user: Any) -> None:
    source, actor = DjangoModelSource(), actor_of(user)
    seen = await source.visibility(actor)
    assert "TagManager" in seen.managers
    page = await source.execute(QueryPlan("TagManager", Selection(("name",))), actor, deadline=None)
    assert page.data == [{"name": "t"}]
    index = SchemaIndex.build(source.describe())
    call = build_call("createTag", {"name": "new"}, index.view(seen))
    assert (await source.mutate(call, actor, deadline=None))["name"] == "new"


async def test_permissions_are_checked_as_they_are_now(user: Any) -> None:
    source, actor = DjangoModelSource(), actor_of(user)
    call = build_call(
        "createTag", {"name": "late"}, SchemaIndex.build(source.describe()).view(await source.visibility(actor))
    )
    await user.user_permissions.aclear()
    fresh = await get_user_model().objects.aget(pk=user.pk)
    with pytest.raises(ToolError) as caught:
        await source.mutate(call, actor_of(fresh), deadline=None)
    assert caught.value.code == "permission_denied"
    assert not await shop.Tag.objects.filter(name="late").aexists()


class Elsewhere:
    """A source that knows one manager, and claims to see more."""

    name = "elsewhere"

    def describe(self) -> list[ManagerInfo]:
        return [ManagerInfo(name="WeatherManager", description="", fields=())]

    async def visibility(self, actor: Any) -> Visibility:
        seen = await DjangoModelSource().visibility(actor)
        rights = next(iter(seen.managers.values()))
        return Visibility("sunny", {"WeatherManager": rights, "MaterialManager": rights})

    async def execute(self, plan: Any, actor: Any, *, deadline: Any) -> str:
        return f"rows of {plan.manager}"

    async def mutate(self, call: Any, actor: Any, *, deadline: Any) -> str:
        return f"{call.mutation.name} there"


async def test_each_manager_belongs_to_its_source(user: Any) -> None:
    here, there, actor = DjangoModelSource(), Elsewhere(), actor_of(user)
    index = SchemaIndex.build([*here.describe(), *there.describe()])
    service = DataService(index, [here, there])  # type: ignore[list-item]  # answers with text, to tell them apart
    view = await service.view(actor)
    assert view is await service.view(actor)
    assert {"TagManager", "WeatherManager"} <= {info.name for info in view}
    assert view.get("MaterialManager") is None  # the other source cannot show what is not its own
    weather: Any = await service.query(QueryPlan("WeatherManager", Selection(())), actor, deadline=None)
    assert weather == "rows of WeatherManager"
    page = await service.query(QueryPlan("TagManager", Selection(("name",))), actor, deadline=None)
    assert page.total_count == 1
    assert (await service.mutate(build_call("createTag", {"name": "n"}, view), actor, deadline=None))["name"] == "n"


async def test_one_source_needs_no_merging(user: Any) -> None:
    source = DjangoModelSource()
    service = DataService(SchemaIndex.build(source.describe()), [source])
    view = await service.view(actor_of(user))
    assert view.fingerprint == (await source.visibility(actor_of(user))).fingerprint


def finished(awaitable: Any) -> Any:
    """The result of a coroutine that never waits."""
    with pytest.raises(StopIteration) as stopped:
        awaitable.send(None)
    return stopped.value.value


def test_what_needs_no_answer_needs_no_thread(user: Any) -> None:
    with registry.using(expose(shop.Tag, public=True)) as bindings:
        reading, writing = DjangoModelSource(bindings, mutations=()), DjangoModelSource(bindings)
    assert set(finished(reading.visibility(actor_of(user))).managers) == {"TagManager"}
    assert set(finished(writing.visibility(actor_of(None))).managers) == {"TagManager"}


async def test_declarations_that_change_are_seen(user: Any) -> None:
    source = DjangoModelSource()
    for manager in (expose(shop.Tag, public=True), expose(shop.Material, public=True)):
        with registry.using(manager):
            assert list((await source.visibility(actor_of(user))).managers) == [manager.__name__]


class Rooms:
    """A source with mutations of its own, of which everybody may run each."""

    name = "rooms"

    def describe(self) -> list[ManagerInfo]:
        mutations = [
            MutationInfo(name=f"{verb}Room", manager="RoomManager", kind="custom") for verb in ("book", "free")
        ]
        return [ManagerInfo(name="RoomManager", description="", fields=(), mutations=tuple(mutations))]

    async def visibility(self, actor: Any) -> Visibility:
        rights = ManagerVisibility(frozenset(), frozenset(), frozenset({"bookRoom", "freeRoom"}))
        return Visibility("rooms", {"RoomManager": rights})


async def test_a_view_shows_the_mutations_that_the_chat_allows(user: Any) -> None:
    sources: list[Any] = [DjangoModelSource(), Rooms()]
    index = SchemaIndex.build(info for source in sources for info in source.describe())
    view = await DataService(index, sources, ["createTag", "deleteTag", "bookRoom"]).view(actor_of(user))
    assert [item.name for info in view for item in info.mutations] == ["bookRoom", "createTag"]
    assert view.mutation("freeRoom") is None
    assert "freeRoom" in index.mutations
