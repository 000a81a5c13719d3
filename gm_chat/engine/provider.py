"""One provider call, guarded: timeouts, the terminal marker, and a stream that is closed whatever happens."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, assert_never

from gm_chat.providers.base import (
    CallOptions,
    ChatEvent,
    DoneEvent,
    FinishReason,
    Message,
    ProviderError,
    ProviderIncompleteError,
    ProviderTimeoutError,
    TextChunkEvent,
    TokenUsage,
    ToolCallEvent,
    ToolDefinition,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence

    from gm_chat.engine.ports import ProviderHandle

__all__ = ["Completion", "stream_completion"]

logger = logging.getLogger("gm_chat.engine")

CLOSE_SECONDS: Final = 1.0
"""How long a stream may take to close before it is abandoned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """What a provider call amounted to, once its terminal event has come."""

    calls: tuple[ToolCallEvent, ...] = ()
    usage: TokenUsage
    finish_reason: FinishReason = "unknown"
    metadata: Mapping[str, Any] = field(default_factory=dict)


async def stream_completion(
    handle: ProviderHandle, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: CallOptions
) -> AsyncGenerator[TextChunkEvent | Completion, None]:
    """Call the provider; yield its text as it comes, then one :class:`Completion`.

    The first event must come within ``handle.timeout_seconds``, each later one within ``stream_timeout_seconds``
    (:class:`ProviderTimeoutError`). A stream that ends without ``DoneEvent`` raises
    :class:`ProviderIncompleteError`, so its tool calls never run; what follows ``DoneEvent`` is not read.
    """
    stream = handle.complete(list(messages), list(tools), options)
    calls: list[ToolCallEvent] = []
    seconds, awaited = handle.timeout_seconds, "first event"
    try:
        while True:
            event = await _next_event(stream, handle.name, seconds, awaited)
            seconds, awaited = handle.stream_timeout_seconds, "next event"
            match event:
                case TextChunkEvent(content=content):
                    if content:
                        yield event
                case ToolCallEvent():
                    calls.append(event)
                case DoneEvent():
                    yield Completion(
                        calls=tuple(calls),
                        usage=event.usage,
                        finish_reason=event.finish_reason,
                        metadata=event.metadata,
                    )
                    return
                case _:
                    assert_never(event)
    finally:
        await _close(stream, handle.name)


async def _next_event(stream: AsyncIterator[ChatEvent], name: str, seconds: float, awaited: str) -> ChatEvent:
    try:
        async with asyncio.timeout(seconds):
            return await anext(stream)
    except StopAsyncIteration:
        raise ProviderIncompleteError(f"the stream of provider {name!r} ended without a DoneEvent") from None
    except ProviderError:
        raise
    except TimeoutError as error:
        raise ProviderTimeoutError(f"provider {name!r} sent no {awaited} within {seconds:g} s") from error


async def _close(stream: AsyncIterator[ChatEvent], name: str) -> None:
    """Close the stream if it can be closed. A failure to close must not replace what the call brought."""
    aclose = getattr(stream, "aclose", None)
    if aclose is None:
        return
    try:
        async with asyncio.timeout(CLOSE_SECONDS):
            await aclose()
    except Exception:
        logger.warning("the stream of provider %r could not be closed", name, exc_info=True)
