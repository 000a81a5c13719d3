"""The one module that imports the Ollama SDK: its client, the lines of its stream, its errors."""

from __future__ import annotations

import json
import os
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import httpx
from ollama import AsyncClient

from gm_chat.providers.base import (
    ProviderError,
    ProviderIncompleteError,
    ProviderTimeoutError,
)
from gm_chat.providers.connections import ConnectionWatch, retry_stale
from gm_chat.providers.failures import error_for_status, parse_retry_after, refuse_page, without_keys
from gm_chat.providers.pool import ClientPool
from gm_chat_provider_ollama.stream import LineDecoder
from gm_chat_provider_ollama.window import warn_if_cut

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from gm_chat_provider_ollama.config import OllamaConfig

__all__ = ["stream_objects"]

_LOST: Final = (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError)
"""The errors of a connection that breaks."""


class RawChatClient(AsyncClient):
    """The SDK's client, with a chat call that hands out the lines as the server wrote them.

    The SDK's own ``chat()`` builds models on the way: those of tools lose half of a JSON Schema, and those of answers
    raise a ``ValidationError`` when a tool call's arguments are a string, null or missing.
    """

    key: str | None = None
    """What the server may quote and nobody should read."""

    async def chat_objects(self, body: Mapping[str, Any]) -> AsyncGenerator[Mapping[str, Any]]:
        """Post ``body`` to ``/api/chat`` and yield the stream's objects; raise a ``ProviderError`` for a refusal."""
        async with aclosing(await retry_stale(partial(self._send, body), *_LOST)) as response:
            if response.status_code >= 400:
                raise _refusal(response, await response.aread(), self.key)
            refuse_page(response.headers.get("content-type", ""))
            decoder = LineDecoder()
            async for piece in response.aiter_bytes():
                for value in decoder.feed(piece):
                    yield value
            for value in decoder.finish():
                yield value

    async def _send(self, body: Mapping[str, Any]) -> httpx.Response:
        client: httpx.AsyncClient = self._client
        request = client.build_request("POST", "/api/chat", json=body, extensions={"trace": ConnectionWatch()})
        return await client.send(request, stream=True)


async def _close(client: RawChatClient) -> None:
    await client.close()  # type: ignore[no-untyped-call]  # the SDK leaves close() untyped


_POOL: Final[ClientPool[RawChatClient]] = ClientPool(_close)


_TLS: Final = httpx.create_ssl_context()
"""One for the process: reading the certificates takes 25 ms, all else about a client next to nothing."""

_LIMITS: Final = httpx.Limits(max_connections=1000, max_keepalive_connections=100)
"""A stream holds its connection: the library's own limit would let the 101st turn wait for one that ends."""


def _new_client(config: OllamaConfig) -> RawChatClient:
    headers = {"Authorization": f"Bearer {config.api_key}"} if config.api_key else None
    client = RawChatClient(
        host=config.base_url, timeout=config.timeout_seconds, verify=_TLS, limits=_LIMITS, headers=headers
    )
    client.key = config.api_key or os.environ.get("OLLAMA_API_KEY")
    return client


async def stream_objects(config: OllamaConfig, body: Mapping[str, Any]) -> AsyncGenerator[Mapping[str, Any]]:
    """Post ``body`` and yield the objects of the stream as they come.

    Every failure is a :class:`ProviderError`. Closing the generator closes the connection at once.
    """
    started = False
    client = await _POOL.get(config, lambda: _new_client(config))
    try:
        async with aclosing(client.chat_objects(body)) as values:
            async for value in values:
                started = True
                if value.get("error"):
                    raise ProviderError(f"Ollama reports: {without_keys(str(value['error']), client.key)}")
                if value.get("done") is True:
                    warn_if_cut(config, body, value)
                yield value
    except httpx.TimeoutException as error:
        raise ProviderTimeoutError(f"nothing came from the server for {config.timeout_seconds:g} s") from error
    except httpx.HTTPError as error:
        if started:
            raise ProviderIncompleteError(f"the connection broke in the middle of the stream: {error}") from error
        raise ProviderError(f"cannot reach Ollama at {config.base_url} ({error}): is it running?") from error


def _refusal(response: httpx.Response, body: bytes, key: str | None) -> ProviderError:
    text = body.decode("utf-8", "replace")
    try:
        detail = str(json.loads(text)["error"])
    except (ValueError, TypeError, KeyError, RecursionError):
        detail = text
    hint = parse_retry_after(response.headers.get("retry-after"))
    return error_for_status(response.status_code, without_keys(detail, key), retry_after=hint)
