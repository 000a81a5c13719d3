from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from testproject.desk import actor_of
from testproject.shop import models as shop

from gm_chat.managers import registry
from gm_chat.managers.api import ManagerInfo, QueryPlan, Selection, Visibility
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
