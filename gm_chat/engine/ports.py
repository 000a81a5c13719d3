"""What one turn needs from outside, as protocols. ``wiring`` implements them; tests bring simple ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from gm_chat.providers.base import TokenUsage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
    from datetime import datetime

    from gm_chat.engine.events import Error, Event, LoggedEvent
    from gm_chat.engine.past import DueSummary
    from gm_chat.engine.rate_limit import RateLimiter
    from gm_chat.managers.api import ManagerService
    from gm_chat.plugin.context import Actor, Transport, TurnContext, TurnOutcome
    from gm_chat.plugin.decisions import Action, Decision
    from gm_chat.plugin.specs import ToolSpec
    from gm_chat.providers.base import CallOptions, ChatEvent, Message, ToolDefinition

__all__ = [
    "ClosedTurn",
    "ConfirmRequest",
    "ConfirmationLapsed",
    "ExpiredMutation",
    "JoinedTurn",
    "OpenedTurn",
    "PendingMutation",
    "Progress",
    "ProviderHandle",
    "Pulse",
    "ResumedTurn",
    "StoredMessage",
    "StoredTurn",
    "TurnObserver",
    "TurnRequest",
    "TurnServices",
    "TurnStore",
]


# --- what clients ask --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRequest:
    """A user's message, already validated for shape by a transport codec.

    ``key`` is the client's idempotency key: a second request of the same actor with the same key joins the first
    one's turn, or is refused if its text is another.
    """

    actor: Actor
    text: str
    transport: Transport
    scope: Mapping[str, Any] = field(default_factory=dict, repr=False)
    key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmRequest:
    """A user's word on a pending mutation."""

    actor: Actor
    confirmation_id: str
    approved: bool
    transport: Transport
    scope: Mapping[str, Any] = field(default_factory=dict, repr=False)


# --- what a turn leaves ------------------------------------------------------------------------------------------


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What a turn has used of its limits; a resumed turn goes on counting from here.

    ``seconds`` is the time that it has worked; the time in which it waited for its owner does not count. ``spent`` is
    its usage by what is billed.
    """

    rounds: int = 0
    failed_rounds: int = 0
    mutations: int = 0
    seconds: float = 0.0
    usage: TokenUsage = field(default_factory=TokenUsage)
    spent: Mapping[str, TokenUsage] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingMutation:
    """A mutation that waits for its owner's word. ``id`` is the confirmation's, and that of the call it answers.

    ``input`` is exactly what will run; the store keeps its SHA-256 beside it and refuses what no longer matches.
    ``preview`` is what the owner was shown: the mutation runs only if the old values in it still hold.
    """

    id: str
    mutation: str
    input: Mapping[str, Any]
    expires_at: datetime
    progress: Progress = field(default_factory=Progress)
    turn_id: str = ""
    preview: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedTurn:
    """What a turn leaves behind: its messages since it was opened or resumed, its outcome, and its events for replay.

    ``events`` is the whole log, from ``seq`` 1 on. A paused turn has a ``pending`` mutation. ``usage`` and ``spent``,
    which is the same by what is billed, are those of the whole turn.
    """

    turn_id: str
    conversation_id: str | None
    messages: Sequence[StoredMessage]
    outcome: TurnOutcome
    usage: TokenUsage
    events: Sequence[Event]
    pending: PendingMutation | None = None
    spent: Mapping[str, TokenUsage] = field(default_factory=dict)


# --- what the store answers --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OpenedTurn:
    """An accepted turn and the stored messages before it, oldest first, starting at a user message.

    ``summary`` tells in short what was said before them; ``due`` is there when it should be extended first.
    """

    conversation_id: str | None
    history: Sequence[StoredMessage]
    summary: str = ""
    due: DueSummary | None = None


@dataclass(frozen=True, slots=True)
class JoinedTurn:
    """The turn that an earlier request with the same key and text started; it may have ended."""

    turn_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumedTurn:
    """A paused turn whose confirmation was claimed for this caller alone.

    ``history`` ends with the assistant's message that holds the pending call, and ``summary`` tells what was said
    before it; ``events`` is the log so far.
    """

    turn_id: str
    conversation_id: str | None
    text: str
    history: Sequence[StoredMessage]
    pending: PendingMutation
    events: Sequence[Event]
    summary: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiredMutation:
    """A confirmation whose time ran out, ended by whoever got this value: it is handed out once in all processes."""

    turn_id: str
    conversation_id: str | None
    actor: Actor
    text: str
    pending: PendingMutation


@dataclass(frozen=True, slots=True)
class Pulse:
    """What other processes want of a running turn: to stop, or that somebody there is following it."""

    cancel: bool = False
    followed: bool = False


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """A turn as any process can read it. ``running`` is false once nothing will be added by itself.

    Of a long log a store may give a part at a time: ``has_more`` says that more is stored than ``events``.
    """

    running: bool
    events: Sequence[LoggedEvent]
    has_more: bool = False


class ConfirmationLapsed(Exception):  # noqa: N818 (not an error: the caller ends the confirmation and goes on)
    """A confirmation of the actor is past its time and nobody has ended it yet: call :meth:`TurnStore.expire`."""


class TurnStore(Protocol):
    """Keeps conversations. Each method is one hop to the database and as few statements as possible.

    Refusals are raised as ``engine.failures.TurnStopped`` with a public code. What is not the actor's own does not
    exist for it.
    """

    async def open_turn(self, request: TurnRequest, turn_id: str, *, max_messages: int) -> OpenedTurn | JoinedTurn:
        """Find or create the actor's conversation, load the window, record the user's message and the turn.

        Refuses with ``turn_in_progress`` while another turn of the actor runs, ``confirmation_pending`` while one waits
        for its confirmation, ``idempotency_conflict`` for a key that came with another text. Raises
        :class:`ConfirmationLapsed` when what it waits for is over.
        """

    async def earlier(self, request: TurnRequest) -> JoinedTurn | None:
        """The turn that an earlier request with the same key and text started; refuses as :meth:`open_turn` does."""

    async def pulse(self, turn_id: str, events: Sequence[Event]) -> Pulse:
        """Say that the turn is alive and show its log so far to other processes. Called a few times a second.

        A stored turn that is not running any more, since it was taken for dead, is told to cancel.
        """

    async def close_turn(self, turn: ClosedTurn) -> None:
        """Record what the turn left. Called exactly once for each opened or resumed turn, cancelled ones included."""

    async def claim(self, request: ConfirmRequest, *, max_messages: int, lease_seconds: float) -> ResumedTurn:
        """Take a pending mutation for execution or rejection: one conditional UPDATE, won by one caller.

        Refuses with ``bad_event`` what is unknown or another's, ``confirmation_unavailable`` what was claimed, resolved
        or changed; raises :class:`ConfirmationLapsed`. A claim that is not settled within ``lease_seconds`` reads
        ``unknown`` and is never claimed again.
        """

    async def settle(
        self, resumed: ResumedTurn, *, state: Literal["executed", "failed", "rejected"], answer: StoredMessage
    ) -> None:
        """Record the claimed mutation's outcome and the tool's answer, before anything else happens."""

    async def expire(self, actor: Actor | None = None, *, now: datetime | None = None) -> Sequence[ExpiredMutation]:
        """End confirmations past their time, the actor's or everybody's, and the turns that waited for them.

        The store appends ``tool_result`` (cancelled, ``confirmation_timed_out``) and ``done`` to each turn's log.
        """

    async def pending(self, actor: Actor) -> Sequence[PendingMutation]:
        """The actor's unresolved confirmations whose time is not over, oldest first."""

    async def read_turn(self, turn_id: str, actor: Actor, *, after_seq: int) -> StoredTurn | None:
        """The actor's turn with its events after ``after_seq``; ``None`` if there is none. Counts as following it.

        A running turn whose process died is first ended with :data:`~gm_chat.engine.failures.INTERRUPTED`.
        """

    async def request_cancel(self, turn_id: str, actor: Actor) -> bool:
        """Ask whichever process runs the actor's turn to stop it; whether it was running.

        A paused turn is none of its business: the runner claims its confirmation as rejected.
        """


# --- what a turn takes from outside ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProviderHandle:
    """A built provider for one turn. ``complete`` accepts options whatever the provider's capabilities are.

    ``max_retries``: how often a call that fails before its first event is made again. ``fallback`` builds the
    provider that takes over when that was in vain.
    """

    name: str
    complete: Callable[[list[Message], list[ToolDefinition], CallOptions], AsyncIterator[ChatEvent]]
    timeout_seconds: float = 60.0
    stream_timeout_seconds: float = 30.0
    max_retries: int = 0
    fallback: Callable[[], Awaitable[ProviderHandle]] | None = None
    model: str = ""

    @property
    def billed_as(self) -> str:
        """Under what name the ledger counts its tokens: the provider, and the model if the configuration names one."""
        return f"{self.name}/{self.model}" if self.model else self.name


class TurnObserver(Protocol):
    """Told of what happens. Never raises: implementations log their own failures."""

    async def turn_started(self, context: TurnContext) -> None:
        """A message was accepted."""

    async def tool_started(
        self, context: TurnContext, call_id: str, name: str, args: Mapping[str, Any], *, approved: bool = False
    ) -> None:
        """A tool is about to run; a mutation that its user has approved, for the second time.

        The one method that may raise: a required audit sink then keeps the tool from running.
        """

    async def tool_finished(
        self, context: TurnContext, call_id: str, name: str, args: Mapping[str, Any], result: Any
    ) -> None:
        """A tool gave a result, errors for the model included, or a confirmation ended one without running it."""

    def planned(self, context: TurnContext, event_type: str, payload: Mapping[str, Any]) -> None:
        """A planned turn tells how it goes; see :mod:`gm_chat.planned_audit` for what may be told. Nobody waits."""

    async def turn_failed(self, context: TurnContext, error: BaseException, public: Error) -> None:
        """Something broke; ``public.details["correlation_id"]`` is what the client was given."""

    async def turn_paused(self, context: TurnContext, outcome: TurnOutcome) -> None:
        """The turn waits for its user's word; it ends another time."""

    async def turn_finished(self, context: TurnContext, outcome: TurnOutcome) -> None:
        """The turn ended."""


class TurnServices(Protocol):
    """Everything a turn takes from outside; the composition root's ``Runtime`` satisfies it."""

    @property
    def settings(self) -> Any:
        """The chat settings (attribute and mapping access)."""

    @property
    def managers(self) -> ManagerService:
        """Reads and writes of application data."""

    @property
    def store(self) -> TurnStore:
        """Conversations and turns."""

    @property
    def observer(self) -> TurnObserver:
        """Signals, plugins' observers and audit, as one."""

    @property
    def limiter(self) -> RateLimiter:
        """What keeps actors within their budgets."""

    @property
    def new_id(self) -> Callable[[], str]:
        """Mints ids of turns and calls."""

    async def permit(self, action: Action, actor: Actor, context: Mapping[str, Any]) -> Decision:
        """Ask all permission checks."""

    async def provider_for(self, context: TurnContext) -> ProviderHandle:
        """Select and build the turn's provider."""

    async def profile_provider(self, name: str) -> ProviderHandle:
        """Build the provider of a profile of the settings."""

    async def tools_for(self, context: TurnContext) -> Sequence[ToolSpec]:
        """The turn's tools, in their deterministic order, filtered by plugins."""

    async def prompt_sections(self, context: TurnContext) -> Sequence[str]:
        """Plugins' sections for the system prompt, in order."""
