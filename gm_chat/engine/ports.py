"""What one turn needs from outside, as protocols. ``wiring`` implements them; tests bring simple ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from gm_chat.engine.events import Error, Event
    from gm_chat.managers.api import ManagerService
    from gm_chat.plugin.context import Actor, Transport, TurnContext, TurnOutcome
    from gm_chat.plugin.decisions import Action, Decision
    from gm_chat.plugin.specs import ToolSpec
    from gm_chat.providers.base import CallOptions, ChatEvent, Message, TokenUsage, ToolDefinition

__all__ = [
    "ClosedTurn",
    "OpenedTurn",
    "ProviderHandle",
    "StoredMessage",
    "TurnObserver",
    "TurnRequest",
    "TurnServices",
    "TurnStore",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRequest:
    """A user's message, already validated for shape by a transport codec."""

    actor: Actor
    text: str
    transport: Transport
    scope: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMessage:
    """One row of history, as persistence keeps it. ``tool_calls`` rows are ``[{id, name, args}]``."""

    role: Literal["user", "assistant", "tool"]
    content: str = ""
    tool_calls: Sequence[Mapping[str, Any]] = ()
    tool_call_id: str | None = None
    tool_name: str | None = None
    tool_args: Mapping[str, Any] | None = None
    tool_result: Any = None
    provider: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OpenedTurn:
    """An accepted turn and the stored messages before it, oldest first, starting at a user message."""

    conversation_id: str | None
    history: Sequence[StoredMessage]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedTurn:
    """What a turn leaves behind: the messages after the user's, its outcome, and its events for replay."""

    turn_id: str
    conversation_id: str | None
    messages: Sequence[StoredMessage]
    outcome: TurnOutcome
    usage: TokenUsage
    events: Sequence[Event]


class TurnStore(Protocol):
    """Keeps conversations. Each method is one hop to the database and as few statements as possible."""

    async def open_turn(self, request: TurnRequest, turn_id: str, *, max_messages: int) -> OpenedTurn:
        """Find or create the actor's conversation, load the window, record the user's message and the turn."""
        ...

    async def close_turn(self, turn: ClosedTurn) -> None:
        """Record what the turn left. Called exactly once for each opened turn, cancelled ones included."""
        ...


@dataclass(frozen=True, slots=True)
class ProviderHandle:
    """A built provider for one turn. ``complete`` accepts options whatever the provider's capabilities are."""

    name: str
    complete: Callable[[list[Message], list[ToolDefinition], CallOptions], AsyncIterator[ChatEvent]]
    timeout_seconds: float = 60.0
    stream_timeout_seconds: float = 30.0


class TurnObserver(Protocol):
    """Told of what happens. Never raises: implementations log their own failures."""

    async def turn_started(self, context: TurnContext) -> None:
        """A message was accepted."""
        ...

    async def tool_started(self, context: TurnContext, call_id: str, name: str, args: Mapping[str, Any]) -> None:
        """A tool is about to run. The one method that may raise: a required audit sink then keeps it from running."""
        ...

    async def tool_finished(
        self, context: TurnContext, call_id: str, name: str, args: Mapping[str, Any], result: Any
    ) -> None:
        """A tool ran and gave a result, errors for the model included."""
        ...

    async def turn_failed(self, context: TurnContext, error: BaseException, public: Error) -> None:
        """Something broke; ``public.details["correlation_id"]`` is what the client was given."""
        ...

    async def turn_finished(self, context: TurnContext, outcome: TurnOutcome) -> None:
        """The turn ended or paused."""
        ...


class TurnServices(Protocol):
    """Everything a turn takes from outside; the composition root's ``Runtime`` satisfies it."""

    @property
    def settings(self) -> Any:
        """The chat settings (attribute and mapping access)."""
        ...

    @property
    def managers(self) -> ManagerService:
        """Reads and writes of application data."""
        ...

    @property
    def store(self) -> TurnStore:
        """Conversations and turns."""
        ...

    @property
    def observer(self) -> TurnObserver:
        """Signals, plugins' observers and audit, as one."""
        ...

    @property
    def new_id(self) -> Callable[[], str]:
        """Mints ids of turns and calls."""
        ...

    async def permit(self, action: Action, actor: Actor, context: Mapping[str, Any]) -> Decision:
        """Ask all permission checks."""
        ...

    async def provider_for(self, context: TurnContext) -> ProviderHandle:
        """Select and build the turn's provider."""
        ...

    async def tools_for(self, context: TurnContext) -> Sequence[ToolSpec]:
        """The turn's tools, in their deterministic order, filtered by plugins."""
        ...

    async def prompt_sections(self, context: TurnContext) -> Sequence[str]:
        """Plugins' sections for the system prompt, in order."""
        ...
