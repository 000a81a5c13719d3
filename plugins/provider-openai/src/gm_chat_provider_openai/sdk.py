"""The one module that imports the OpenAI SDK: its clients, its event stream, its errors."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import httpx2
from openai import (
    APIConnectionError,
    APIError,
    APIStatusError,
    APITimeoutError,
    AsyncOpenAI,
    AsyncStream,
    DefaultAsyncHttpxClient,
    OpenAIError,
)

from gm_chat.providers.base import (
    ProviderAuthenticationError,
    ProviderContextError,
    ProviderError,
    ProviderFilteredError,
    ProviderIncompleteError,
    ProviderMalformedError,
    ProviderOverloadedError,
    ProviderQuotaError,
    ProviderTimeoutError,
)
from gm_chat.providers.configuration import NO_KEY
from gm_chat.providers.connections import ConnectionWatch, retry_stale
from gm_chat.providers.failures import error_for_status, parse_retry_after, refuse_page, without_keys
from gm_chat.providers.pool import ClientPool

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming

    from gm_chat_provider_openai.config import OpenAIConfig

__all__ = ["stream_objects"]

_BY_CODE: Final[dict[str, type[ProviderError]]] = {
    "content_filter": ProviderFilteredError,
    "content_policy_violation": ProviderFilteredError,
    "context_length_exceeded": ProviderContextError,
    "exceed_context_size_error": ProviderContextError,
    "insufficient_quota": ProviderQuotaError,
    "invalid_api_key": ProviderAuthenticationError,
    "overloaded_error": ProviderOverloadedError,
    "rate_limit_exceeded": ProviderQuotaError,
    "server_overloaded": ProviderOverloadedError,
}
_USAGE_OPTION: Final = re.compile(r"stream_options|include_usage")

_LOST: Final = (httpx2.RemoteProtocolError, httpx2.ReadError, httpx2.WriteError)
"""The errors of a connection that breaks."""


@dataclass(slots=True)
class _Session:
    client: AsyncOpenAI
    knows_usage_option: bool = True


async def _close(session: _Session) -> None:
    await session.client.close()


_POOL: Final[ClientPool[_Session]] = ClientPool(_close)


_TLS: Final = httpx2.create_ssl_context()
"""One for the process: reading the certificates takes 25 ms, all else about a client next to nothing."""


def _new_session(config: OpenAIConfig) -> _Session:
    key = config.api_key
    own_server = config.base_url or os.environ.get("OPENAI_BASE_URL")
    if key is None and own_server and not os.environ.get("OPENAI_API_KEY"):
        key = NO_KEY
    client = AsyncOpenAI(
        api_key=key,
        base_url=config.base_url,
        timeout=config.timeout_seconds,
        max_retries=0,  # the host retries, once, with the turn's deadline in view
        http_client=DefaultAsyncHttpxClient(verify=_TLS, event_hooks={"request": [_watch]}),
    )
    return _Session(client)


async def _watch(request: httpx2.Request) -> None:
    request.extensions["trace"] = ConnectionWatch()


async def stream_objects(config: OpenAIConfig, body: CompletionCreateParamsStreaming) -> AsyncGenerator[object]:
    """Post ``body`` and yield the JSON objects of the event stream as they come.

    Every failure is a :class:`ProviderError`. Closing the generator closes the connection at once.
    """
    started = False
    try:
        session = await _POOL.get(config, lambda: _new_session(config))
        async with await _open(session, body) as stream:
            refuse_page(stream.response.headers.get("content-type", ""))
            async for value in stream:
                started = True
                yield value
    except (APITimeoutError, httpx2.TimeoutException) as error:
        raise ProviderTimeoutError(f"nothing came from the server for {config.timeout_seconds:g} s") from error
    except (APIConnectionError, httpx2.HTTPError) as error:  # older versions of the SDK let httpx2's pass mid-stream
        cause = error.__cause__ or error
        if started:
            raise ProviderIncompleteError(f"the connection broke in the middle of the stream: {cause}") from error
        raise ProviderError(f"cannot reach {error.request.url.copy_with(userinfo=b'', query=None)}: {cause}") from error
    except OpenAIError as error:
        raise _sdk_error(error, config) from error
    except (ValueError, RecursionError) as error:  # JSON, or UTF-8, that is none
        raise ProviderMalformedError(f"the stream holds what is not JSON: {error}") from error


async def _open(session: _Session, body: CompletionCreateParamsStreaming) -> AsyncStream[object]:
    """Open the stream; a server that refuses the option for reporting usage is asked again without it, once."""
    if session.knows_usage_option:
        try:
            return await _post(session.client, body)
        except APIStatusError as error:
            if error.status_code not in (400, 422) or not _USAGE_OPTION.search(error.message):
                raise
            session.knows_usage_option = False
    shorter = body.copy()
    shorter.pop("stream_options", None)
    return await _post(session.client, shorter)


async def _post(client: AsyncOpenAI, body: CompletionCreateParamsStreaming) -> AsyncStream[object]:
    return await retry_stale(partial(_send, client, body), *_LOST)


async def _send(client: AsyncOpenAI, body: CompletionCreateParamsStreaming) -> AsyncStream[object]:
    # What chat.completions.create() does, but for plain objects: see the module `stream` for the reason.
    return await client.post(
        "/chat/completions", body=body, cast_to=object, stream=True, stream_cls=AsyncStream[object]
    )


def _sdk_error(error: OpenAIError, config: OpenAIConfig) -> ProviderError:
    """Map what the SDK raises for a refused request, for an error inside the stream, and for a missing key."""
    detail = without_keys(str(error), config.api_key, os.environ.get("OPENAI_API_KEY"))
    if not isinstance(error, APIError):
        return ProviderAuthenticationError(f"{detail} In gm-chat: provider_config['api_key'].")
    code = str(error.code or "")  # some servers send a number
    kind = _BY_CODE.get(code) or _BY_CODE.get(error.type or "")
    status = error.status_code if isinstance(error, APIStatusError) else int(code) if code.isdigit() else None
    hint = parse_retry_after(error.response.headers.get("retry-after")) if isinstance(error, APIStatusError) else None
    if kind is None and status is not None:
        return error_for_status(status, detail, retry_after=hint)
    retryable = False if code == "insufficient_quota" else None  # the bill is to be paid first
    return (kind or ProviderError)(detail, retry_after=hint, retryable=retryable)
