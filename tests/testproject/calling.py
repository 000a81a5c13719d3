"""Run a tool from a plain test, its database work inside the test's own transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asgiref.sync import async_to_sync
from django.db import connections
from django.test.utils import CaptureQueriesContext

from gm_chat.encoding import to_json
from gm_chat.managers.index import SchemaIndex
from gm_chat.managers.service import DataService
from gm_chat.managers.source import DjangoModelSource
from gm_chat.persistence.threads import inline_database
from gm_chat.plugin import ToolContext, ToolError, TurnContext

if TYPE_CHECKING:
    from gm_chat.plugin import ToolSpec
    from testproject.desk import Desk

__all__ = ["answer", "call", "context_of"]


def call(spec: ToolSpec, args: Any, context: ToolContext) -> Any:
    """What the tool answers."""

    async def run() -> Any:
        return await spec.run(args, context)

    with inline_database():
        return async_to_sync(run)()


def answer(spec: ToolSpec, args: Any, context: ToolContext) -> tuple[str, int]:
    """What the model reads, refusals included, and how many statements it took."""
    with CaptureQueriesContext(connections["default"]) as statements:
        try:
            result = call(spec, args, context)
        except ToolError as error:
            result = {"error": error.code, "message": error.message, **error.details}
    return to_json(result), len(statements)


def context_of(
    desk: Desk,
    source: DjangoModelSource | None = None,
    *,
    deadline: float | None = None,
    approved: bool = False,
    **settings: Any,
) -> ToolContext:
    """A tool's context at a desk, with some settings."""
    source = DjangoModelSource(desk.bindings) if source is None else source
    service = DataService(SchemaIndex.build(source.describe()), [source])
    chosen = {"max_results": 200, "allowed_mutations": [], "confirm_mutations": [], **settings}
    turn = TurnContext("turn", None, desk.actor, "", "http")
    return ToolContext(turn, "call", service, chosen, deadline=deadline, approved=approved)
