"""Who asks, and in which turn: the values that hooks, tools and checks receive."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gm_chat.managers.api import ManagerService

Transport = Literal["http", "sse", "websocket", "terminal"]


@dataclass(frozen=True, slots=True)
class Actor:
    """The one who asks. Identified by user, else by session, else by address, else anonymous.

    ``user`` is the project's user object (``None`` for nobody); it takes no part in equality or ``repr``.
    """

    user_id: str | None = None
    session_key: str | None = None
    address: str | None = None
    user: Any = field(default=None, compare=False, repr=False)

    @property
    def is_authenticated(self) -> bool:
        """Whether a logged-in user asks."""
        return self.user_id is not None

    @property
    def key(self) -> str:
        """A stable identifier, e.g. ``user:7``, ``session:abc``, ``address:10.0.0.1`` or ``anonymous``."""
        if self.user_id is not None:
            return f"user:{self.user_id}"
        if self.session_key:
            return f"session:{self.session_key}"
        return f"address:{self.address}" if self.address else "anonymous"


@dataclass(frozen=True, slots=True)
class TurnContext:
    """One turn, as the per-turn hooks see it.

    ``scope`` is the mapping that the ``permission`` callable receives: ``type``, ``path``, ``method``, ``headers``,
    ``client``, ``session`` over HTTP, the ASGI scope on a WebSocket.
    """

    turn_id: str
    conversation_id: str | None
    actor: Actor
    text: str
    transport: Transport
    scope: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a running tool may use.

    ``managers`` reads and writes under the actor's permissions. ``settings`` is the chat's settings mapping.
    ``deadline`` is a ``time.monotonic()`` value, ``None`` for no limit. ``approved`` is true when the client has
    confirmed exactly these arguments; ``shown`` is then the preview that they saw, if there was one. ``has_read``:
    the model has text from records before it, which may have told it what to do; see ``taint_mutations``.
    """

    turn: TurnContext
    call_id: str
    managers: ManagerService
    settings: Mapping[str, Any] = field(repr=False)
    deadline: float | None = None
    approved: bool = False
    shown: Mapping[str, Any] | None = field(default=None, repr=False)
    has_read: bool = False

    @property
    def actor(self) -> Actor:
        """The one who asks."""
        return self.turn.actor


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """How a turn ended: ``state``, for a failed one the public error code, and what the assistant said."""

    state: Literal["done", "failed", "cancelled", "paused"]
    code: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    text: str = ""
