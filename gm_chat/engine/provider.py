"""One provider call, guarded: timeouts, the terminal marker, and a stream that is closed whatever happens."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, assert_never

from gm_chat.engine.retry import open_stream
from gm_chat.engine.streams import close_stream, next_event
from gm_chat.providers.base import (
    CallOptions,
    DoneEvent,
    FinishReason,
    Message,
    TextChunkEvent,
    TokenUsage,
    ToolCallEvent,
    ToolDefinition,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

    from gm_chat.engine.ports import ProviderHandle
    from gm_chat.engine.retry import FallBack

__all__ = ["Completion", "stream_completion"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """What a provider call amounted to, once its terminal event has come."""

    calls: tuple[ToolCallEvent, ...] = ()
    usage: TokenUsage
    finish_reason: FinishReason = "unknown"
    metadata: Mapping[str, Any] = field(default_factory=dict)


async def stream_completion(
    handle: ProviderHandle,
    messages: Sequence[Message],
    tools: Sequence[ToolDefinition],
    options: CallOptions,
    fall_back: FallBack | None = None,
    *,
    begun: Callable[[], None] = lambda: None,
) -> AsyncGenerator[TextChunkEvent | Completion, None]:
    """Call the provider; yield its text as it comes, then one :class:`Completion`. ``begun`` hears of its first event.

    The first event must come within ``handle.timeout_seconds``, each later one within ``stream_timeout_seconds``
    (:class:`~gm_chat.providers.base.ProviderTimeoutError`). Until the first one, failures are dealt with as
    :mod:`gm_chat.engine.retry` says. A stream that ends without ``DoneEvent`` raises
    :class:`~gm_chat.providers.base.ProviderIncompleteError`, so its tool calls never run; what follows ``DoneEvent``
    is not read.
    """
    opened = await open_stream(handle, messages, tools, options, fall_back)
    begun()
    stream, event = opened.stream, opened.first
    name, seconds = opened.handle.name, opened.handle.stream_timeout_seconds
    calls: list[ToolCallEvent] = []
    try:
        while True:
            match event:
                case TextChunkEvent(content=content):
                    if content:
                        yield event
                case ToolCallEvent():
                    calls.append(event)
                case DoneEvent():
                    yield Completion(
                        calls=tuple(calls),
                        usage=event.usage if opened.is_counted else event.usage + TokenUsage(reported=False),
                        finish_reason=event.finish_reason,
                        metadata=event.metadata,
                    )
                    return
                case _:
                    assert_never(event)
            event = await next_event(stream, name, seconds, "next event")
    finally:
        await close_stream(stream, name)
