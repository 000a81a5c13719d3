from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import Permission
from testproject.desk import actor_of
from testproject.shop_rows import fill_shop

from gm_chat.managers import registry
from gm_chat.managers.index import SchemaIndex
from gm_chat.managers.service import DataService
from gm_chat.managers.source import DjangoModelSource
from gm_chat.plugin import Actor, ToolContext, TurnContext

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def users(db: None) -> dict[str, Any]:
    made = fill_shop(parts=12)
    made["plain"].user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    return made


@pytest.fixture
def context_for(users: dict[str, Any]) -> Callable[..., ToolContext]:
    """``context_for("staff")``: a tool's context as that user (``None``: as nobody), with some settings."""
    source = DjangoModelSource(registry.bindings())
    service = DataService(SchemaIndex.build(source.describe()), [source])

    def make(
        name: str | None, *, deadline: float | None = None, approved: bool = False, **settings: Any
    ) -> ToolContext:
        actor = Actor() if name is None else actor_of(users[name])
        turn = TurnContext("turn", None, actor, "", "http")
        chosen = {"max_results": 200, "allowed_mutations": [], "confirm_mutations": [], **settings}
        return ToolContext(turn, "call", service, chosen, deadline=deadline, approved=approved)

    return make
