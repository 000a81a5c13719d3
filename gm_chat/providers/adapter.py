"""What the adapters' ``complete()`` have in common: the SDK behind its door, the assembler, calls written as text."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Protocol

from gm_chat.providers.base import ProviderIncompleteError
from gm_chat.providers.text_calls import structured

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Sequence

    from gm_chat.providers.base import CallOptions, ChatEvent, ToolDefinition
    from gm_chat.providers.configuration import ProviderConfig
    from gm_chat.providers.door import SDKDoor

__all__ = ["Assembler", "completion"]


class Assembler(Protocol):
    """Turns the values of one stream, as the wire has them, into neutral events. Pure: it waits for nothing."""

    @property
    def is_complete(self) -> bool:
        """Whether the terminal marker has come; what may follow it is no more than the usage."""
        ...

    def feed(self, chunk: Any, /) -> Iterable[ChatEvent]:
        """Take one value of the stream, and give the text in it."""
        ...

    def finish(self) -> Iterable[ChatEvent]:
        """Give the tool calls and the ``DoneEvent``, or raise the ``ProviderError`` that says why there are none."""
        ...


def completion(
    sdk: SDKDoor,
    config: ProviderConfig,
    body: Any,
    assembler: Assembler,
    *,
    tools: Sequence[ToolDefinition],
    options: CallOptions,
) -> AsyncGenerator[ChatEvent]:
    """Stream one completion through the ``stream_objects(config, body)`` of the module behind ``sdk``.

    ``tools`` and ``options`` are those of the request: where ``config`` asks for it, a call that the model writes as
    text is read, if it is of a tool that this request offers.
    """
    events = _stream(sdk, config, body, assembler)
    if config.tool_call_format == "native":
        return events
    return structured(events, () if options.tool_choice == "none" else tools)


async def _stream(sdk: SDKDoor, config: ProviderConfig, body: Any, assembler: Assembler) -> AsyncGenerator[ChatEvent]:
    module = await sdk.aopen()
    try:
        async with aclosing(module.stream_objects(config, body)) as chunks:
            async for chunk in chunks:
                for event in assembler.feed(chunk):
                    yield event
    except ProviderIncompleteError:
        if not assembler.is_complete:  # else only what follows the terminal marker was lost: the usage
            raise
    for last in assembler.finish():
        yield last
