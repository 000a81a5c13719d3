"""The one module that imports the Google GenAI SDK: its client, the bytes of its responses, its errors."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import httpx2
from google.auth.exceptions import GoogleAuthError, TransportError
from google.genai import Client
from google.genai._transformers import t_model
from google.genai.errors import APIError
from google.genai.types import HttpOptions

from gm_chat.providers.base import (
    ProviderAuthenticationError,
    ProviderError,
    ProviderIncompleteError,
    ProviderMalformedError,
    ProviderTimeoutError,
)
from gm_chat.providers.configuration import NO_KEY, is_http_url
from gm_chat.providers.connections import ConnectionWatch, retry_stale
from gm_chat.providers.failures import parse_retry_after, refuse_page, without_keys
from gm_chat.providers.pool import ClientPool
from gm_chat_provider_google.events import EventDecoder
from gm_chat_provider_google.failures import failure

if TYPE_CHECKING:
    from gm_chat_provider_google.config import GoogleConfig

__all__ = ["stream_objects", "uses_vertex"]

_KEYS: Final = ("GOOGLE_API_KEY", "GEMINI_API_KEY")
_TLS: Final = httpx2.create_ssl_context()
"""One for the process: reading the certificates takes 25 ms, all else about a client next to nothing."""
_LIMITS: Final = httpx2.Limits(max_connections=1000, max_keepalive_connections=100)

_LOST: Final = (httpx2.RemoteProtocolError, httpx2.ReadError, httpx2.WriteError)
"""The errors of a connection that breaks."""


@dataclass(slots=True)
class _Session:
    client: Client
    http: httpx2.AsyncClient


async def _close(session: _Session) -> None:
    session.client.close()
    await session.http.aclose()


_POOL: Final[ClientPool[_Session]] = ClientPool(_close)


def _new_session(config: GoogleConfig) -> _Session:
    """Build the SDK's client around an HTTP client of ours.

    Given one, the SDK uses it whatever else is installed (it would prefer aiohttp), and retries nothing. It gets no
    timeout: the SDK would forward it as the time in which the server must have finished.
    """
    key = config.api_key
    own_server = config.base_url or os.environ.get("GOOGLE_GEMINI_BASE_URL")
    if own_server and not is_http_url(own_server):  # the configured one has been checked
        raise ProviderError(
            "GOOGLE_GEMINI_BASE_URL in the environment is no http:// or https:// address without query", retryable=False
        )
    if key is None and own_server and not any(map(os.environ.get, _KEYS)) and not uses_vertex():
        key = NO_KEY
    http = httpx2.AsyncClient(
        verify=_TLS, limits=_LIMITS, event_hooks={"request": [partial(_prepare, config.timeout_seconds)]}
    )
    options = HttpOptions(
        base_url=config.base_url,
        httpx_async_client=http,
        client_args={"verify": _TLS},
        async_client_args={"ssl": _TLS},
    )
    return _Session(Client(api_key=key, http_options=options), http)


def uses_vertex() -> bool:
    """Whether the environment chooses Vertex AI, which has other ways than a key to let one in."""
    switches = map(os.environ.get, ("GOOGLE_GENAI_USE_ENTERPRISE", "GOOGLE_GENAI_USE_VERTEXAI"))
    return any(switch is not None and switch.lower() in ("true", "1") for switch in switches)


async def _prepare(seconds: float, request: httpx2.Request) -> None:
    request.extensions["timeout"] = httpx2.Timeout(seconds).as_dict()
    request.extensions["trace"] = ConnectionWatch()


async def stream_objects(config: GoogleConfig, body: Mapping[str, Any]) -> AsyncGenerator[Mapping[str, Any]]:
    """Post ``body`` and yield the JSON objects of the stream as they come.

    Every failure is a :class:`ProviderError`. Closing the generator closes the connection at once.
    """
    started = False
    try:
        client = await _client(config)
        async with aclosing(await retry_stale(partial(_send, client, config.model, body), *_LOST)) as response:
            refuse_page(response.headers.get("content-type", ""))
            async with aclosing(_values(response)) as values:
                async for value in values:
                    started = True
                    yield _checked(value, config)
    except APIError as error:
        raise _masked(_refusal(error), config) from error
    except httpx2.TimeoutException as error:
        raise ProviderTimeoutError(f"nothing came from the server for {config.timeout_seconds:g} s") from error
    except httpx2.HTTPError as error:
        if started:
            raise ProviderIncompleteError(f"the connection broke in the middle of the stream: {error}") from error
        raise ProviderError(f"cannot reach {error.request.url.copy_with(userinfo=b'', query=None)}: {error}") from error
    except TransportError as error:
        raise ProviderError(f"cannot reach the server that hands out Google's credentials: {error}") from error
    except GoogleAuthError as error:
        raise ProviderAuthenticationError(f"Google's credentials cannot be used: {error}") from error
    except httpx2.InvalidURL as error:
        raise ProviderError(f"base_url cannot be an address: {error}", retryable=False) from error
    except (ValueError, RecursionError) as error:  # out of the SDK, which reads the body of a refusal
        raise ProviderError(f"the server's answer cannot be read: {error}") from error


def _refusal(error: APIError) -> ProviderError:
    if 300 <= error.code < 400:
        return ProviderError(
            f"the server redirects to another address (HTTP {error.code}), which is not followed, as the request holds "
            "a key: is base_url right, is it https?",
            retryable=False,
        )
    return failure(error.code, error.details, retry_after=parse_retry_after(error.response.headers.get("retry-after")))


async def _client(config: GoogleConfig) -> Client:
    try:
        return (await _POOL.get(config, lambda: _new_session(config))).client
    except ValueError as error:
        raise ProviderAuthenticationError(f"{error} In gm-chat: provider_config['api_key'].") from error


async def _send(client: Client, model: str, body: Mapping[str, Any]) -> httpx2.Response:
    """Do what ``models.generate_content_stream()`` does, up to the response: see the module `stream` for the reason.

    The SDK has no public way to its responses. These are the two steps that all of its own calls take: address, key
    or access token, and the errors of refused requests.
    """
    api = client._api_client
    request = api._build_request("post", f"{t_model(api, model)}:streamGenerateContent?alt=sse", dict(body))
    answer = await api._async_request(request, stream=True)
    return answer.response_stream  # type: ignore[return-value]  # declared for all of the SDK's HTTP clients at once


async def _values(response: httpx2.Response) -> AsyncGenerator[object]:
    decoder = EventDecoder()
    async for piece in response.aiter_bytes():
        for value in decoder.feed(piece):
            yield value
    for value in decoder.finish():
        yield value


def _checked(value: object, config: GoogleConfig) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ProviderMalformedError(f"the stream holds {value!r:.80}: expected a JSON object")
    if value.get("error"):
        raise _masked(failure(None, value), config)
    return value


def _masked(error: ProviderError, config: GoogleConfig) -> ProviderError:
    detail = without_keys(str(error), config.api_key, *map(os.environ.get, _KEYS))
    return type(error)(detail, retry_after=error.retry_after, retryable=error.retryable)
