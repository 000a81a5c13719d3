"""What the ``query`` tool runs: from its JSON arguments to JSON-ready rows, under a deadline."""

from __future__ import annotations

import time
from typing import Any

from gm_chat.managers import expose
from gm_chat.managers.describe import describe
from gm_chat.managers.executor import execute_plan
from gm_chat.managers.index import SchemaIndex
from gm_chat.managers.plan import build_plan
from gm_chat.managers.visibility import visibility_of
from gm_chat.plugin import Actor
from querybench.pages.raw import plain
from querybench.store.models import MUSIC, SALES

__all__ = ["ACTOR", "BINDINGS", "SECONDS", "VIEW", "page", "plain"]

ARGUMENTS = {
    "manager": "AlbumManager",
    "fields": ["id", "title", "artist__name", {"tracks": ["id", "name", "milliseconds", "unit_price"]}],
    "order_by": ["title"],
    "limit": 200,
}
SECONDS = 600
ACTOR = Actor()
BINDINGS = describe([expose(model, public=True) for model in (*MUSIC, *SALES)]).bindings
VIEW = SchemaIndex.build(item.info for item in BINDINGS.values()).view(visibility_of(ACTOR, BINDINGS))


def page() -> dict[str, Any]:
    plan = build_plan(ARGUMENTS, VIEW, max_results=200)
    found = execute_plan(plan, BINDINGS, ACTOR, deadline=time.monotonic() + SECONDS)
    return {"data": found.data, "total_count": found.total_count}
