"""The fallback provider in a turn: when it takes over, what it gets to see, and under whose name it is stored."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from gm_chat.engine.events import Done, Error, TextChunk
from gm_chat.engine.limits import TurnLimits
from gm_chat.engine.past import PastMessage, SummarySource
from gm_chat.engine.state import TurnState
from gm_chat.engine.summary import extend_summary
from gm_chat.engine.tools import Toolbox
from gm_chat.engine.transcript import Transcript
from gm_chat.plugin import TurnContext
from gm_chat.providers.base import (
    DoneEvent,
    ProviderAuthenticationError,
    ProviderContextError,
    ProviderError,
    ProviderOverloadedError,
    ProviderQuotaError,
    ProviderRefusedError,
    ProviderTimeoutError,
    TokenUsage,
    ToolCallEvent,
)
from gm_chat.testing.scripted import NO_DONE, ScriptedProvider, ScriptedRequest, call, done
from gm_chat.testing.services import OWNER, MemoryServices, PlayedTurn, play_turn, tool

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gm_chat.engine.ports import ProviderHandle
    from gm_chat.plugin import ToolContext


@dataclass(slots=True, kw_only=True)
class TwoServices(MemoryServices):
    """The scripted provider under two names: ``first``, and its fallback ``spare``."""

    asked_of: list[str] = field(default_factory=list)
    fails_to_build: bool = False

    async def provider_for(self, context: TurnContext) -> ProviderHandle:
        scripted = await MemoryServices.provider_for(self, context)

        def named(name: str) -> ProviderHandle:
            def complete(*arguments: Any) -> Any:
                self.asked_of.append(name)
                return scripted.complete(*arguments)

            return replace(scripted, name=name, complete=complete)

        async def fallback() -> ProviderHandle:
            if self.fails_to_build:
                raise ImportError("the spare's SDK is missing")
            return named("spare")

        return replace(named("first"), fallback=fallback)


async def query(args: Mapping[str, Any], context: ToolContext) -> Any:
    """Read."""
    return {"data": []}


def outcome(turn: PlayedTurn) -> str:
    last = turn.events[-1]
    return last.code if isinstance(last, Error) else "done"


@pytest.mark.parametrize(
    "error",
    [
        ProviderError("no route"),
        ProviderOverloadedError("503"),
        ProviderQuotaError("429"),
        ProviderQuotaError("no money left", retryable=False),
        ProviderAuthenticationError("401"),
        ProviderTimeoutError("silence"),
        NO_DONE,
    ],
)
async def test_it_answers_where_the_service_fails(error: Any, caplog: pytest.LogCaptureFixture) -> None:
    services = TwoServices()
    turn = await play_turn(services, [error], ["Hello.", done(7, 2)])
    assert turn.events == [TextChunk("Hello."), Done(TokenUsage(7, 2))]
    assert services.asked_of == ["first", "spare"]
    assert turn.closed is not None
    assert [row.provider for row in turn.closed.messages] == ["spare"]
    (line,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert "turn id-1 goes on with the fallback provider 'spare', as 'first' failed: " in line


@pytest.mark.parametrize("error", [ProviderRefusedError("no"), ProviderContextError("too long"), ValueError("a bug")])
async def test_it_is_not_asked_what_the_request_is_to_blame_for(error: Exception) -> None:
    services = TwoServices()
    assert outcome(await play_turn(services, [error])) == "chat_error"
    assert services.asked_of == ["first"]


async def test_what_has_begun_is_not_begun_again() -> None:
    services = TwoServices()
    assert outcome(await play_turn(services, ["Hel", ProviderOverloadedError("503")])) == "chat_error"
    assert services.asked_of == ["first"]


async def test_it_has_no_fallback_of_its_own() -> None:
    services = TwoServices()
    assert outcome(await play_turn(services, [ProviderError("a")], [ProviderError("b")])) == "chat_error"
    assert services.asked_of == ["first", "spare"]
    assert [str(error) for error, _ in services.observer.failures] == ["b"]


async def test_one_that_cannot_be_built_fails_the_turn() -> None:
    services = TwoServices(fails_to_build=True)
    assert outcome(await play_turn(services, [ProviderError("a")])) == "chat_error"
    ((error, _),) = services.observer.failures
    assert isinstance(error, ImportError)
    assert isinstance(error.__context__, ProviderError)


async def test_the_turn_stays_with_it_and_it_sees_nothing_private() -> None:
    services = TwoServices(tools=[tool(query)])
    signed = ToolCallEvent("c1", "query", {"a": 1}, metadata={"signature": "first's"})
    own = ToolCallEvent("c2", "query", {"a": 2}, metadata={"signature": "spare's"})
    turn = await play_turn(
        services,
        ["Let me see. ", signed, DoneEvent(TokenUsage(1, 1), "tool_calls", metadata={"thinking": "first's"})],
        [ProviderOverloadedError("503")],
        [own, DoneEvent(TokenUsage(1, 1), "tool_calls", metadata={"thinking": "spare's"})],
        ["Nothing."],
    )
    assert outcome(turn) == "done"
    assert services.asked_of == ["first", "first", "spare", "spare"]
    assert [private(request) for request in turn.requests] == [
        [],
        ["first's", "first's"],
        [],
        ["spare's", "spare's"],
    ]
    assert all(results_are_linked(request) for request in turn.requests)
    assert turn.closed is not None
    rows = [row for row in turn.closed.messages if row.role == "assistant"]
    assert [row.provider for row in rows] == ["first", "spare", "spare"]
    assert [row.metadata.get("message") for row in rows] == [{"thinking": "first's"}, {"thinking": "spare's"}, None]


def private(request: ScriptedRequest) -> list[Any]:
    found: list[Any] = []
    for message in request.messages:
        found += message.metadata.values()
        found += [value for event in message.tool_calls for value in event.metadata.values()]
    return found


def results_are_linked(request: ScriptedRequest) -> bool:
    calls = [event.id for message in request.messages for event in message.tool_calls]
    return calls == [message.tool_call_id for message in request.messages if message.role == "tool"]


async def test_an_attempt_in_vain_is_no_round_but_its_tokens_are_unknown() -> None:
    services = TwoServices(tools=[tool(query)])
    turn = await play_turn(services, [NO_DONE], [call("query"), done(7, 2)], ["Nothing.", done(8, 3)])
    assert turn.events[-1] == Done(TokenUsage(15, 5))
    assert outcome(turn) == "done"


async def test_a_summary_goes_over_to_it_and_the_turn_with_it() -> None:
    class Due:
        saved: str = ""

        async def read(self) -> SummarySource:
            return SummarySource(previous="", messages=[PastMessage(role="user", text="Hi")], through=1)

        async def save(self, source: SummarySource, text: str) -> None:
            self.saved = text

    services, due = TwoServices(), Due()
    context = TurnContext("t1", "1", OWNER, "Which parts?", "http", {})
    state = TurnState(
        context=context,
        services=services,
        provider=await services.provider_for(context),
        tools=Toolbox((), services=services, context=context),
        transcript=Transcript((), provider="first"),
        allowance=services.limiter.resume(context.actor),
        limits=TurnLimits(rounds=13, failed_rounds=3, mutations=8),
    )
    with ScriptedProvider.playing([ProviderOverloadedError("503")], ["They said hi."]):
        assert await extend_summary(state, due, "") == "They said hi."
    assert (due.saved, state.provider.name, services.asked_of) == ("They said hi.", "spare", ["first", "spare"])
    assert state.rounds == 1
