"""A provider's stream, guarded: each event in time, and closed whatever happens."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from gm_chat.engine.waiting import within
from gm_chat.providers.base import ProviderError, ProviderIncompleteError, ProviderTimeoutError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from gm_chat.providers.base import ChatEvent

__all__ = ["CLOSE_SECONDS", "close_stream", "next_event"]

logger = logging.getLogger("gm_chat.engine")

CLOSE_SECONDS: Final = 1.0
"""How long a stream may take to close before it is abandoned."""


async def next_event(stream: AsyncIterator[ChatEvent], name: str, seconds: float, awaited: str) -> ChatEvent:
    """Return the next event; raise :class:`ProviderTimeoutError` that says which one the provider ``name`` owes."""
    try:
        return await within(seconds, anext(stream))
    except StopAsyncIteration:
        raise ProviderIncompleteError(f"the stream of provider {name!r} ended without a DoneEvent") from None
    except ProviderError:
        raise
    except TimeoutError as error:
        raise ProviderTimeoutError(f"provider {name!r} sent no {awaited} within {seconds:g} s") from error


async def close_stream(stream: AsyncIterator[ChatEvent], name: str) -> None:
    """Close the stream if it can be closed. A failure to close must not replace what the call brought."""
    aclose = getattr(stream, "aclose", None)
    if aclose is None:
        return
    try:
        await within(CLOSE_SECONDS, aclose())
    except Exception:
        logger.warning("the stream of provider %r could not be closed", name, exc_info=True)
