"""Run a tool from a plain test, its database work inside the test's own transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asgiref.sync import async_to_sync

from gm_chat.persistence.threads import inline_database

if TYPE_CHECKING:
    from gm_chat.plugin import ToolContext, ToolSpec


def call(spec: ToolSpec, args: Any, context: ToolContext) -> Any:
    """What the tool answers."""

    async def run() -> Any:
        return await spec.run(args, context)

    with inline_database():
        return async_to_sync(run)()
