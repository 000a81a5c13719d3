"""What the composition root makes of the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth import get_user_model
from django.db import connections

from gm_chat.defaults import core_plugins
from gm_chat.managers.api import ManagerInfo, ManagerVisibility, MutationInfo, Visibility
from gm_chat.plugin import Actor, AggregatingSource, PreviewingSource, hookimpl
from gm_chat.settings import build_settings
from gm_chat.settings.sources import Source
from gm_chat.testing.hosts import make_host
from gm_chat.wiring.runtime import Runtime

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
async def close_connections() -> AsyncIterator[None]:
    """Close what a test's own queries opened in the thread for them: Python 3.13 warns of what is only forgotten."""
    yield
    await sync_to_async(connections.close_all)()


class Rooms:
    """A plugin and its manager source: everybody may book rooms and free them."""

    name = "rooms"

    @hookimpl
    def gm_chat_manager_sources(self) -> list[Any]:
        return [self]

    def describe(self) -> list[ManagerInfo]:
        mutations = [
            MutationInfo(name=f"{verb}Room", manager="RoomManager", kind="custom") for verb in ("book", "free")
        ]
        return [ManagerInfo(name="RoomManager", description="", fields=(), mutations=tuple(mutations))]

    async def visibility(self, actor: Any) -> Visibility:
        rights = ManagerVisibility(frozenset(), frozenset(), frozenset({"bookRoom", "freeRoom"}))
        return Visibility("rooms", {"RoomManager": rights})

    async def execute(self, plan: Any, actor: Any, *, deadline: Any) -> Any:
        raise AssertionError("nobody asks for rooms")

    async def mutate(self, call: Any, actor: Any, *, deadline: Any) -> Any:
        raise AssertionError("nobody books a room")


@pytest.mark.parametrize("allowed", [[], ["createTag", "bookRoom", "updatePart"]])
async def test_the_model_sees_the_mutations_that_are_allowed(allowed: list[str]) -> None:
    settings = build_settings([Source("GM_CHAT", {"allowed_mutations": allowed})])
    runtime = Runtime(settings, make_host(rooms=Rooms(), core=core_plugins(settings)))
    boss = await get_user_model().objects.acreate(username="boss", is_superuser=True)
    view = await runtime.managers.view(Actor(user_id=str(boss.pk), user=boss))
    assert {item.name for info in view for item in info.mutations} == set(allowed)
    assert {"freeRoom", "deleteTag"} <= runtime.index.mutations.keys()  # what a check compares the setting with


def test_the_core_s_own_managers_can_be_aggregated_and_tell_what_a_mutation_would_do() -> None:
    host = make_host(core=core_plugins(build_settings([Source("GM_CHAT", {"enabled": True})])))
    assert [isinstance(source, AggregatingSource) for source in host.manager_sources] == [True]
    assert [isinstance(source, PreviewingSource) for source in host.manager_sources] == [True]
