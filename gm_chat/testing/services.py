"""Everything that a turn takes from outside, in memory: for tests of loops, runners and transports without Django."""

# ruff: noqa: ARG002 (the fakes have the signatures of their protocols and need only some of the arguments)

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from gm_chat.engine import TurnRunner
from gm_chat.engine.events import Error, Event, TextChunk
from gm_chat.engine.failures import TurnStopped
from gm_chat.engine.memory_store import MemoryTurnStore
from gm_chat.engine.ports import ClosedTurn, ConfirmRequest, JoinedTurn, OpenedTurn, ProviderHandle, TurnRequest
from gm_chat.engine.rate_limit import RateLimiter
from gm_chat.loops.legacy import legacy_loop
from gm_chat.plugin.context import Actor, ToolContext, Transport, TurnContext, TurnOutcome
from gm_chat.plugin.decisions import Action, Decision
from gm_chat.plugin.specs import ToolSpec
from gm_chat.providers.base import CallOptions, ToolDefinition
from gm_chat.settings import ChatSettings, RateLimitSettings
from gm_chat.testing.memory_counts import MemoryRateLimitStore
from gm_chat.testing.scripted import Round, ScriptedProvider, ScriptedRequest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from gm_chat.engine.state import Loop
    from gm_chat.managers.api import ManagerService
    from gm_chat.plugin.protocols import RateLimitStore
    from gm_chat.providers.base import ChatEvent, Message

__all__ = [
    "OWNER",
    "MemoryServices",
    "MemoryStore",
    "PlayedTurn",
    "Recorder",
    "ask",
    "play_turn",
    "tool",
    "word",
]


ToolFunction: TypeAlias = Callable[[Mapping[str, Any], ToolContext], Any]


def tool(
    function: ToolFunction, *, name: str | None = None, write: bool = False, schema: Mapping[str, Any] | None = None
) -> ToolSpec:
    """Make a tool of an async function, named after it."""
    definition = ToolDefinition(
        name or function.__name__, function.__doc__ or "A tool.", schema or {"type": "object", "properties": {}}
    )
    return ToolSpec(definition=definition, run=function, kind="write" if write else "read")


class MemoryStore(MemoryTurnStore):
    """Conversations in memory, one per actor. ``opened`` and ``closed`` tell what a turn did to the store."""

    def __init__(self, **options: Any) -> None:
        """Start empty, with the options of :class:`~gm_chat.engine.memory_store.MemoryTurnStore`."""
        super().__init__(**options)
        self.opened: list[str] = []
        self.closed: list[ClosedTurn] = []

    async def open_turn(self, request: TurnRequest, turn_id: str, *, max_messages: int) -> OpenedTurn | JoinedTurn:
        """Accept a message, and note the turn's id."""
        opened = await super().open_turn(request, turn_id, max_messages=max_messages)
        if isinstance(opened, OpenedTurn):
            self.opened.append(turn_id)
        return opened

    async def close_turn(self, turn: ClosedTurn) -> None:
        """Keep what the turn left."""
        self.closed.append(turn)
        await super().close_turn(turn)


@dataclass(slots=True)
class Recorder:
    """An observer that remembers: the order of calls in ``log``, the exceptions in ``failures``."""

    log: list[str] = field(default_factory=list)
    tools: list[tuple[str, Mapping[str, Any], Any]] = field(default_factory=list)
    failures: list[tuple[BaseException, Error]] = field(default_factory=list)
    outcomes: list[TurnOutcome] = field(default_factory=list)
    planned_events: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)

    async def turn_started(self, context: TurnContext) -> None:
        """Remember an accepted message."""
        self.log.append("started")

    async def tool_started(
        self, context: TurnContext, call_id: str, name: str, args: Mapping[str, Any], *, approved: bool = False
    ) -> None:
        """Let every tool run."""

    async def tool_finished(
        self, context: TurnContext, call_id: str, name: str, args: Mapping[str, Any], result: Any
    ) -> None:
        """Remember a tool's result."""
        self.log.append(f"tool {name}")
        self.tools.append((name, args, result))

    def planned(self, context: TurnContext, event_type: str, payload: Mapping[str, Any]) -> None:
        """Remember what a planned turn told of itself."""
        self.planned_events.append((event_type, payload))

    async def turn_failed(self, context: TurnContext, error: BaseException, public: Error) -> None:
        """Remember an exception, and what the client learnt of it."""
        self.log.append("failed")
        self.failures.append((error, public))

    async def turn_paused(self, context: TurnContext, outcome: TurnOutcome) -> None:
        """Remember that the turn waits, and what was said until then."""
        self.log.append("paused")
        self.outcomes.append(outcome)

    async def turn_finished(self, context: TurnContext, outcome: TurnOutcome) -> None:
        """Remember how the turn ended."""
        self.log.append(f"finished {outcome.state}")
        self.outcomes.append(outcome)


class _NoManagers:
    """A manager service without managers; tests bring a richer one where they need it."""

    async def view(self, actor: Actor) -> _NoManagers:
        """Nothing to see."""
        return self

    def __iter__(self) -> Iterator[Any]:
        """No manager."""
        return iter(())

    def search(self, query: str, *, limit: int = 10) -> Sequence[Any]:
        """No hit."""
        return ()


@dataclass(slots=True, kw_only=True)
class MemoryServices:
    """Satisfies :class:`~gm_chat.engine.ports.TurnServices`. The provider is :class:`ScriptedProvider`.

    Ids are ``id-1``, ``id-2``, ...; ``denied`` names what no one may do, e.g. ``{"message"}`` or ``{"tool query"}``.
    Only the settings of a test limit anybody.
    """

    tools: Sequence[ToolSpec] = ()
    settings: ChatSettings = field(default_factory=lambda: ChatSettings(rate_limit=RateLimitSettings(requests=None)))
    store: MemoryStore = field(default_factory=MemoryStore)
    observer: Recorder = field(default_factory=Recorder)
    managers: ManagerService = field(default_factory=_NoManagers)  # type: ignore[assignment]  # for tests without data
    new_id: Callable[[], str] = field(default_factory=lambda: map("id-{}".format, itertools.count(1)).__next__)
    denied: frozenset[str] = frozenset()
    sections: Sequence[str] = ()
    counts: RateLimitStore = field(default_factory=MemoryRateLimitStore)
    """Where the budgets of ``settings.rate_limit`` are counted."""
    timeout_seconds: float = 60.0
    stream_timeout_seconds: float = 30.0
    asked: list[str] = field(default_factory=list)
    """The actions that permission was asked for, as ``kind`` or ``kind name``."""

    @property
    def limiter(self) -> RateLimiter:
        """Keeps to ``settings.rate_limit``, counting in ``counts``."""
        return RateLimiter(self.settings.rate_limit, lambda: self.counts)

    async def permit(self, action: Action, actor: Actor, context: Mapping[str, Any]) -> Decision:
        """Deny what ``denied`` names."""
        asked = f"{action.kind} {action.name}".strip()
        self.asked.append(asked)
        return Decision.deny("denied by the test") if asked in self.denied else Decision.abstain()

    async def profile_provider(self, name: str) -> ProviderHandle:
        """Build the scripted provider, under the profile's name."""
        return self._scripted(name)

    async def provider_for(self, context: TurnContext) -> ProviderHandle:
        """Build the scripted provider."""
        return self._scripted("scripted")

    def _scripted(self, name: str) -> ProviderHandle:
        provider = ScriptedProvider({})

        def complete(
            messages: list[Message], tools: list[ToolDefinition], options: CallOptions
        ) -> AsyncIterator[ChatEvent]:
            return provider.complete(messages, tools, options=options)

        return ProviderHandle(name, complete, self.timeout_seconds, self.stream_timeout_seconds)

    async def tools_for(self, context: TurnContext) -> Sequence[ToolSpec]:
        """Offer ``tools``."""
        return self.tools

    async def prompt_sections(self, context: TurnContext) -> Sequence[str]:
        """Add ``sections``."""
        return self.sections


@dataclass(frozen=True, slots=True)
class PlayedTurn:
    """What a turn did: its events, what the provider was asked, and what the store was left."""

    events: list[Event]
    requests: list[ScriptedRequest]
    closed: ClosedTurn | None

    @property
    def text(self) -> str:
        """The whole answer."""
        return "".join(event.content for event in self.events if isinstance(event, TextChunk))


OWNER: Final = Actor("7")
"""Whose turns they are unless a test says otherwise."""


def ask(
    text: str = "Which parts?", *, actor: Actor = OWNER, transport: Transport = "http", key: str | None = None
) -> TurnRequest:
    """Make a user's message."""
    return TurnRequest(actor=actor, text=text, transport=transport, key=key)


def word(
    confirmation_id: str, *, approved: bool = True, actor: Actor = OWNER, transport: Transport = "http"
) -> ConfirmRequest:
    """Make a user's word on a pending mutation."""
    return ConfirmRequest(actor=actor, confirmation_id=confirmation_id, approved=approved, transport=transport)


async def play_turn(
    services: MemoryServices,
    *rounds: Round,
    text: str = "Which parts?",
    transport: Transport = "http",
    loop: Loop = legacy_loop,
) -> PlayedTurn:
    """Run one turn over a scripted provider, to its end or pause; a refusal is its only event."""
    before = len(services.store.closed)
    runner = TurnRunner(services, loop)
    with ScriptedProvider.playing(*rounds) as script:
        try:
            turn_id = await runner.start(ask(text, transport=transport))
        except TurnStopped as refusal:
            return PlayedTurn([refusal.event], script.requests, None)
        async with aclosing(runner.subscribe(turn_id, actor=OWNER)) as events:
            seen = [logged.event async for logged in events]
    closed = services.store.closed[before:]
    return PlayedTurn(seen, script.requests, closed[0] if closed else None)
