"""Calling a provider again, or another one, as long as nothing has been heard of its answer. (Faults P4 and P10.)

The one retry layer: SDKs' own are off, because they know neither the turn's time nor what the client has seen. Once an
event has come, a failure is final: the client has read the text, or the tokens are paid for.

* Tried again are failures that pass (:attr:`ProviderError.retryable`): too many requests, no capacity, no connection,
  a fault of the server. A stream that ended without its terminal marker is tried again once.
* The wait is what the service asked for (``Retry-After``), else random, up to twice as long each time: clients that
  were refused together must not come back together.
* All attempts and waits together take no longer than what is left of the turn (:attr:`CallOptions.deadline`), without
  such a limit no longer than the provider's ``timeout_seconds``. Whoever would wait longer gives up at once, and the
  client learns of the hint.
* When that fails, the fallback provider answers, if there is one and the failure is one that another provider mends.

An attempt is not a round: a turn's limits count questions to the model, not attempts to ask.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from gm_chat.engine.history import addressed_to
from gm_chat.engine.streams import close_stream, next_event
from gm_chat.providers.base import ProviderError, ProviderIncompleteError, TextChunkEvent

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from gm_chat.engine.ports import ProviderHandle
    from gm_chat.providers.base import CallOptions, ChatEvent, Message, ToolDefinition

__all__ = ["FallBack", "OpenStream", "is_mended_by_another", "open_stream"]

logger = logging.getLogger("gm_chat.engine")

FIRST_DELAY: Final = 1.0
MAX_DELAY: Final = 10.0
"""Seconds: the most that the first wait without a hint takes, and that any takes."""

_SERVICE_FAILED: Final = frozenset({"authentication", "incomplete", "overloaded", "quota", "timeout", "unavailable"})
"""The codes of failures that a key, a quota or an outage causes."""

FallBack: TypeAlias = Callable[[ProviderError], Awaitable["ProviderHandle | None"]]
"""Gives the provider that takes over after a failure, or ``None``."""


@dataclass(frozen=True, slots=True)
class OpenStream:
    """A stream whose first event has come, from the provider of ``handle``.

    ``is_counted`` is false if an attempt before it broke off after the provider had begun: what that cost is unknown.
    """

    handle: ProviderHandle
    stream: AsyncIterator[ChatEvent]
    first: ChatEvent
    is_counted: bool = True


async def open_stream(
    handle: ProviderHandle,
    messages: Sequence[Message],
    tools: Sequence[ToolDefinition],
    options: CallOptions,
    fall_back: FallBack | None = None,
) -> OpenStream:
    """Call the provider until an event comes, or raise why none did. Empty text is no event: it says nothing.

    The caller closes what it gets; everything else is closed.
    """
    while True:
        try:
            return await _persist(handle, messages, tools, options)
        except ProviderError as error:
            other = None if fall_back is None else await fall_back(error)
            if other is None:
                raise
            handle, messages = other, addressed_to(other.name, messages)


def is_mended_by_another(error: ProviderError) -> bool:
    """Whether another provider may do what this one could not: the fault lies with the service, not with the request.

    What a service refused to answer, or could not read, would be no better answered elsewhere.
    """
    return error.code in _SERVICE_FAILED


async def _persist(
    handle: ProviderHandle, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: CallOptions
) -> OpenStream:
    ends = time.monotonic() + (handle.timeout_seconds if options.deadline is None else options.deadline)
    seconds = handle.timeout_seconds
    attempts, is_counted = 0, True
    while True:
        try:
            stream, first = await _attempt(handle, messages, tools, options, seconds)
            return OpenStream(handle, stream, first, is_counted)
        except ProviderError as error:
            attempts += 1
            is_broken = isinstance(error, ProviderIncompleteError)
            left = ends - time.monotonic()
            delay = _delay(error, attempts)
            if not error.retryable or attempts > handle.max_retries or (is_broken and not is_counted) or delay >= left:
                raise
            is_counted = is_counted and not is_broken
            logger.warning(
                "provider %r failed before its answer began; attempt %d of %d follows in %.1f s: %s",
                handle.name,
                attempts + 1,
                handle.max_retries + 1,
                delay,
                error,
            )
        await asyncio.sleep(delay)
        if options.deadline is None:
            seconds = left - delay
        else:
            options = replace(options, deadline=left - delay)


async def _attempt(
    handle: ProviderHandle,
    messages: Sequence[Message],
    tools: Sequence[ToolDefinition],
    options: CallOptions,
    seconds: float,
) -> tuple[AsyncIterator[ChatEvent], ChatEvent]:
    stream = handle.complete(list(messages), list(tools), options)
    try:
        event = await next_event(stream, handle.name, seconds, "first event")
        while isinstance(event, TextChunkEvent) and not event.content:
            event = await next_event(stream, handle.name, handle.stream_timeout_seconds, "next event")
    except BaseException:
        await close_stream(stream, handle.name)
        raise
    return stream, event


def _delay(error: ProviderError, attempts: int) -> float:
    """Seconds to wait after so many failed attempts."""
    if error.retry_after is not None:
        return error.retry_after
    return random.uniform(0, min(MAX_DELAY, FIRST_DELAY * 2 ** (attempts - 1)))  # noqa: S311 - not a secret
