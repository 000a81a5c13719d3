"""A thousand turns leave neither a task, nor a socket, nor a client behind."""
# ruff: noqa: S101 - these are tests, although they ship: assert is how pytest explains a failure

from __future__ import annotations

import asyncio
import gc
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import pytest

from gm_chat.engine import TurnRunner
from gm_chat.engine.events import TextChunk
from gm_chat.engine.ports import ProviderHandle
from gm_chat.loops.legacy import legacy_loop
from gm_chat.plugin.context import Actor
from gm_chat.plugin.specs import ToolSpec
from gm_chat.providers.pool import open_clients
from gm_chat.settings import ChatSettings
from gm_chat.testing.client_end import open_sockets
from gm_chat.testing.histories import TOOLS
from gm_chat.testing.provider_contract.base import ContractBase
from gm_chat.testing.replay import ReplayServer, Reply
from gm_chat.testing.services import MemoryServices, ask

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from gm_chat.plugin.context import ToolContext, TurnContext
    from gm_chat.providers.base import CallOptions, ChatEvent, Message, Provider, ToolDefinition

__all__ = ["LeakContract"]

LANES: Final = 4
"""Conversations at once, each with a server of its own, so that each knows what its next request is answered with."""


class LeakContract(ContractBase):
    """Runs the engine's turns over the adapter, and counts before and after."""

    turns: ClassVar[int] = 1000

    @pytest.mark.exhaustive
    def test_turns_leave_nothing_behind(self) -> None:
        """Complete turns, with and without a tool, between cancelled, refused and broken ones."""
        before = open_sockets()
        asyncio.run(self._count())
        assert open_sockets() == before, "sockets outlive the event loop"

    async def _count(self) -> None:
        async with AsyncExitStack() as stack:
            lanes = [_Lane(self, await stack.enter_async_context(ReplayServer()), number) for number in range(LANES)]
            kinds = len(lanes[0].kinds)
            await _play(lanes, kinds)  # imports the SDK, makes the clients, opens what stays open
            before = await _settled()
            await _play(lanes, -(-self.turns // LANES // kinds) * kinds)
            assert await _settled() == before
            assert sum(lane.ended for lane in lanes) >= self.turns


async def _settled() -> Mapping[str, int]:
    """The counts, once they stay as they are: closed connections and collected generators need a moment to be gone."""
    gc.collect()
    counts, quiet = _counts(), 0
    async with asyncio.timeout(10):
        while quiet < 20:
            await asyncio.sleep(0.01)
            before, counts = counts, _counts()
            quiet = quiet + 1 if counts == before else 0
    return counts


def _counts() -> Mapping[str, int]:
    return {"tasks": len(asyncio.all_tasks()), "sockets": open_sockets(), "clients": open_clients()}


async def _play(lanes: Sequence[_Lane], turns: int) -> None:
    async with asyncio.TaskGroup() as group:
        for lane in lanes:
            group.create_task(lane.play(turns))
    for lane in lanes:
        await lane.runner.wait_closed()


@dataclass(slots=True, kw_only=True)
class _Services(MemoryServices):
    provider: Callable[[], Provider]

    async def provider_for(self, context: TurnContext) -> ProviderHandle:  # noqa: ARG002 (the protocol's)
        """Build the adapter anew, as each request does."""
        provider = self.provider()
        takes_options = bool(getattr(provider, "capabilities", ()))

        def complete(
            messages: list[Message], tools: list[ToolDefinition], options: CallOptions
        ) -> AsyncIterator[ChatEvent]:
            further: dict[str, Any] = {"options": options} if takes_options else {}
            return provider.complete(messages, tools, **further)

        return ProviderHandle("contract", complete, self.timeout_seconds, self.stream_timeout_seconds)


async def _query(_arguments: Mapping[str, Any], _context: ToolContext) -> Any:
    return {"data": []}


class _Lane:
    """One conversation with one server."""

    def __init__(self, contract: ContractBase, server: ReplayServer, number: int) -> None:
        text, call = contract.replying(contract.text), contract.replying(contract.tool_call)
        half = contract.end_of(contract.text)
        self.kinds: Sequence[tuple[str, Sequence[Reply]]] = (
            ("cancel at text", [contract.replying(contract.text, stall_at=half)]),
            ("run", [call, text]),
            ("cancel at request", [contract.replying(contract.text, stall_at=0)]),
            ("run", [Reply(contract.error_body, status=400, content_type="application/json")]),
            ("run", [contract.replying(contract.text, drop_at=half)]),
            ("run", [text]),
        )
        self.ended = 0
        self.actor = Actor(f"leak-{number}")
        self._path, self._server = contract.path, server
        services = _Services(
            provider=lambda: contract.build(server.url),
            tools=[ToolSpec(definition=TOOLS[0], run=_query, kind="read")],
            settings=ChatSettings.model_validate({"summarize_after": 1_000_000, "rate_limit": {"requests": None}}),
        )
        self.runner = TurnRunner(services, legacy_loop)

    async def play(self, turns: int) -> None:
        """Run turns of all kinds, one after the other."""
        for number in range(turns):
            action, replies = self.kinds[number % len(self.kinds)]
            self._server.reply(self._path, *replies)
            await self._turn(action)
            self.ended += 1

    async def _turn(self, action: str) -> None:
        asked = len(self._server.requests)
        turn = await self.runner.start(ask(actor=self.actor))
        if action == "cancel at request":
            await self._server.wait_for_request(within=5.0, number=asked + 1)
            await self.runner.cancel(turn, actor=self.actor)
        async with aclosing(self.runner.subscribe(turn, actor=self.actor)) as events:
            async for logged in events:
                if action == "cancel at text" and isinstance(logged.event, TextChunk):
                    await self.runner.cancel(turn, actor=self.actor)
