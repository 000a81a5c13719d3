"""An evaluation fixture, and a way to ask it what a model would ask."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from gm_chat.encoding import to_json
from gm_chat.evals.fixtures import install
from gm_chat.evals.fixtures.installing import uninstall
from gm_chat.managers import registry
from gm_chat.managers.index import SchemaIndex
from gm_chat.managers.service import DataService
from gm_chat.managers.source import DjangoModelSource
from gm_chat.plugin import Actor, ToolContext, ToolError, TurnContext
from gm_chat.tools import core_tools

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gm_chat.evals.fixtures.installing import Fixture

__all__ = ["Workbench", "workbench"]


class Workbench:
    """An installed fixture and its tools."""

    def __init__(self, fixture: Fixture) -> None:
        self.fixture = fixture
        self.source = DjangoModelSource(registry.bindings())
        self.index = SchemaIndex.build(self.source.describe())
        self._service = DataService(self.index, [self.source], fixture.chat_settings["allowed_mutations"])
        self._tools = {tool.definition.name: tool for tool in core_tools()}

    def ask(self, tool: str, args: dict[str, Any], *, user: str | None = None, approved: bool = False) -> Any:
        """What the tool answers the user, refusals included; run as in production, in the threads of the pool."""
        who = self.fixture.users[user or "analyst"]
        turn = TurnContext("turn", None, Actor(user_id=str(who.pk), user=who), "", "http")
        settings = {"max_results": 200, **self.fixture.chat_settings}
        context = ToolContext(turn, "call", self._service, settings, deadline=None, approved=approved)

        async def run() -> Any:
            try:
                return await self._tools[tool].run(args, context)
            except ToolError as error:
                return {"error": {"code": error.code, "message": error.message, **error.details}}

        return asyncio.run(run())

    def text(self, tool: str, args: dict[str, Any], *, user: str | None = None) -> str:
        """The same as the model reads it."""
        return to_json(self.ask(tool, args, user=user))


@contextlib.contextmanager
def workbench(name: str, blocker: Any) -> Iterator[Workbench]:
    """Install a fixture for the duration of a ``with``. Its database is no test database: it is its own copy."""
    with blocker.unblock():
        try:
            yield Workbench(install(name))
        finally:
            uninstall()
