"""What a client may read when something goes wrong: one message for each public code.

Nothing here quotes an exception, so nothing here can leak one. ``gm_chat.engine`` and the transports take every
error message from :data:`PUBLIC_MESSAGES`. (Specification: "error" event, "Settings, errors, and audit helpers".)
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "PLANNED_REASONS",
    "PUBLIC_MESSAGES",
    "PublicChatError",
    "planned_public_error",
    "public_chat_error",
]

_PLANNED_MESSAGES: Final = {
    "invalid_plan": "I could not prepare a safe plan for that request.",
    "manager_unresolved": "I could not resolve the required application data.",
    "dependency_blocked": "A required part of the request could not be completed.",
    "budget_exhausted": "The request reached its execution limit.",
    "deadline_exceeded": "The request reached its time limit.",
    "provider_failed": "The provider could not complete the request.",
    "synthesis_failed": "I could not produce a grounded answer from the available data.",
}

PLANNED_REASONS: Final = tuple(_PLANNED_MESSAGES)
"""Why a planned turn ends without an answer. ``rate_limited`` is not among them: a limit is no reason of a plan."""

# What the specification's table lacks: it cancels by closing the socket, denies before there is a turn, knows no
# idempotency keys, and loses a turn with its process.
_OWN_MESSAGES: Final = {
    "cancelled": "The answer was cancelled.",
    "permission_denied": "You may not use this chat.",
    "idempotency_conflict": "That key came with another message before. Use a new key for a new message.",
    "interrupted": "The answer was interrupted and will not be continued. Ask again.",
}

PUBLIC_MESSAGES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "bad_message": "The message needs a non-blank text.",
        "bad_event": "That event is malformed or refers to nothing that is waiting for an answer.",
        "confirmation_pending": "A change is waiting for your approval. Approve or reject it first.",
        "confirmation_unavailable": "That approval was already used or has expired. Reload the conversation.",
        "turn_in_progress": "The previous message is still being answered. Wait until it is finished.",
        "rate_limited": "Chat rate limit exceeded. Try again later.",
        "tool_retry_limit": "The assistant could not get a usable result within the allowed number of attempts.",
        "mutation_limit": "The limit of changes for one message is reached. No further change was made.",
        "turn_limit": "The assistant could not finish within the allowed number of steps.",
        "mutation_batch_unsupported": "A change must be requested on its own. Ask for one change at a time.",
        "confirmation_required_transport": (
            "This change needs your approval, which this endpoint cannot ask for. Use the stream or the WebSocket."
        ),
        "chat_error": "The chat could not answer because of an internal problem.",
        **_PLANNED_MESSAGES,
        **_OWN_MESSAGES,
    }
)
"""Every public error code, the specification's and four of our own, with the message that clients may show."""


@dataclass(frozen=True)
class PublicChatError:
    """An error that is safe to send to a client. ``retry_after_seconds`` accompanies ``rate_limited``."""

    code: str
    message: str
    retry_after_seconds: int | None = None

    def as_event(self) -> dict[str, Any]:
        """The ``error`` event; ``retry_after_seconds`` is left out where there is nothing to wait for."""
        event: dict[str, Any] = {"type": "error", "message": self.message, "code": self.code}
        if self.retry_after_seconds is not None:
            event["retry_after_seconds"] = self.retry_after_seconds
        return event


def public_chat_error(_exc: BaseException) -> PublicChatError:
    """Map an internal exception to what a client may know of it.

    An exception's ``public_reason`` is kept if it is one of :data:`PLANNED_REASONS`. A plain :class:`TimeoutError`
    (the deadline of a planned turn) is ``deadline_exceeded``; a subclass, such as a provider's timeout, is not.
    Everything else is the generic ``chat_error``.
    """
    if type(_exc) is TimeoutError:
        return _public("deadline_exceeded")
    return planned_public_error(getattr(_exc, "public_reason", None))


def planned_public_error(reason: object) -> PublicChatError:
    """Map one of :data:`PLANNED_REASONS` to its public error; anything else is the generic ``chat_error``."""
    return _public(reason if isinstance(reason, str) and reason in PLANNED_REASONS else "chat_error")


def _public(code: str) -> PublicChatError:
    return PublicChatError(code, PUBLIC_MESSAGES[code])
