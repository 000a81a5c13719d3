"""How a turn ends otherwise than with ``done``: decided stops, and what clients learn of the undecided ones."""

from __future__ import annotations

import logging
import math
import uuid
from typing import TYPE_CHECKING, Any, Final, Self

from gm_chat.engine.events import Error
from gm_chat.errors import PUBLIC_MESSAGES, planned_public_error
from gm_chat.providers.base import ProviderError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gm_chat.engine.budgets import BudgetState
    from gm_chat.engine.ports import TurnObserver
    from gm_chat.plugin.context import TurnContext

__all__ = ["CANCELLED", "INTERRUPTED", "TurnStopped", "report", "unexpected"]

logger = logging.getLogger("gm_chat.engine")

CANCELLED: Final = Error("cancelled", PUBLIC_MESSAGES["cancelled"])
"""The last event of a turn that was cancelled."""

INTERRUPTED: Final = Error("interrupted", PUBLIC_MESSAGES["interrupted"])
"""The last event of a turn whose process died; whoever notices adds it."""


class TurnStopped(Exception):  # noqa: N818 (a decision of ours, not an error: nothing is logged)
    """The engine decided to end the turn with a public error. ``code`` must have a public message."""

    def __init__(self, code: str, **details: Any) -> None:
        """Give the code, and the public fields of the event beside code and message."""
        super().__init__(code)
        self.event = Error(code, PUBLIC_MESSAGES[code], details)
        self.budgets: Sequence[BudgetState] = ()
        """How the actor's budgets stand, where that is why."""

    @classmethod
    def with_event(cls, event: Error) -> Self:
        """Stop with an event that exists already, such as that of :func:`unexpected`."""
        stopped = cls(event.code)
        stopped.event = event
        return stopped


def unexpected(error: BaseException, turn_id: str) -> Error:
    """Log an exception that nobody decided on, and return the event that tells a client nothing but how to report it.

    ``details["correlation_id"]`` stands in the log too. A provider's hint when to try again (seconds) is passed on.
    A ``TimeoutError`` stays generic here: ``deadline_exceeded`` belongs to planned turns, which stop by decision.
    """
    correlation_id = uuid.uuid4().hex
    if isinstance(error, ProviderError):
        # Its words say what happened; where in the SDK it happened helps only whoever mends the adapter.
        logger.error("turn %s failed, correlation id %s: %s", turn_id, correlation_id, error)
        logger.debug("turn %s failed here", turn_id, exc_info=error)
    else:
        logger.error("turn %s failed, correlation id %s", turn_id, correlation_id, exc_info=error)
    public = planned_public_error(getattr(error, "public_reason", None))
    details: dict[str, Any] = {"correlation_id": correlation_id}
    if isinstance(error, ProviderError) and error.retry_after is not None:
        details["retry_after_seconds"] = math.ceil(error.retry_after)
    return Error(public.code, public.message, details)


async def report(observer: TurnObserver, context: TurnContext, error: BaseException) -> Error:
    """Tell log and observer of an exception that nobody decided on, and return what the client is told."""
    public = unexpected(error, context.turn_id)
    try:
        await observer.turn_failed(context, error, public)
    except Exception:
        logger.exception("the observer of turn %s failed", context.turn_id)
    return public
