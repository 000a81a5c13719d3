"""The one module that imports the Anthropic SDK: its clients, its event stream, its errors."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

import httpx2
from anthropic import (
    AnthropicError,
    APIConnectionError,
    APIStatusError,
    APITimeoutError,
    AsyncAnthropic,
    AsyncStream,
    DefaultAsyncHttpxClient,
    transform_schema,
)

from gm_chat.providers.base import (
    ProviderAuthenticationError,
    ProviderError,
    ProviderIncompleteError,
    ProviderMalformedError,
    ProviderTimeoutError,
)
from gm_chat.providers.configuration import NO_KEY
from gm_chat.providers.connections import ConnectionWatch, retry_stale
from gm_chat.providers.failures import parse_retry_after, refuse_page
from gm_chat.providers.pool import ClientPool
from gm_chat_provider_anthropic.config import OWN_SERVER
from gm_chat_provider_anthropic.errors import describe, error_of
from gm_chat_provider_anthropic.recovery import LASTING, without, without_refused

if TYPE_CHECKING:
    from anthropic.types.message_create_params import MessageCreateParamsStreaming

    from gm_chat_provider_anthropic.config import AnthropicConfig

__all__ = ["is_let_in", "stream_objects"]

logger = logging.getLogger("gm_chat.providers.anthropic")

WITH_TEMPERATURE: Final = {"anthropic-version": "2023-06-01"}
"""The last version of the API that has a temperature."""

LINGER_SECONDS: Final = 0.25
"""How long to wait for the end of the response after the end of the message: some gateways hold it back."""

_LOST: Final = (httpx2.RemoteProtocolError, httpx2.ReadError, httpx2.WriteError)
"""The errors of a connection that breaks."""


@dataclass(slots=True)
class _Session:
    client: AsyncAnthropic
    refused: set[str] = field(default_factory=set)
    """What of a request this model at this server does not take."""


async def _close(session: _Session) -> None:
    await session.client.close()


_POOL: Final[ClientPool[_Session]] = ClientPool(_close)


_TLS: Final = httpx2.create_ssl_context()
"""One for the process: reading the certificates takes 25 ms, all else about a client next to nothing."""


def is_let_in(config: AnthropicConfig) -> bool:
    """Whether the SDK has a key, a token, a header or a profile to show, here or in its environment."""
    try:
        return _is_let_in(_new_client(config))
    except AnthropicError:  # a profile that cannot be read
        return False


def _new_client(config: AnthropicConfig) -> AsyncAnthropic:
    return AsyncAnthropic(
        api_key=config.api_key,
        base_url=config.base_url,
        timeout=config.timeout_seconds,
        max_retries=0,  # the host retries, once, with the turn's deadline in view
        default_headers=None if config.temperature is None else WITH_TEMPERATURE,
        http_client=DefaultAsyncHttpxClient(verify=_TLS, event_hooks={"request": [_watch]}),
    )


def _is_let_in(client: AsyncAnthropic) -> bool:
    named = {name.lower() for name in client.default_headers}
    return client.credentials is not None or not named.isdisjoint({"authorization", "x-api-key"})


def _new_session(config: AnthropicConfig) -> _Session:
    client = _new_client(config)
    if not _is_let_in(client):
        if not (config.base_url or os.environ.get(OWN_SERVER)):
            raise ProviderAuthenticationError(
                "there is no key: set provider_config['api_key'], or ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN in the "
                "environment"
            )
        client.api_key = NO_KEY
    return _Session(client)


async def _watch(request: httpx2.Request) -> None:
    request.extensions["trace"] = ConnectionWatch()


async def stream_objects(config: AnthropicConfig, body: MessageCreateParamsStreaming) -> AsyncGenerator[object]:
    """Post ``body`` and yield the JSON objects of the event stream as they come, up to the message's end.

    Every failure is a :class:`ProviderError`. Closing the generator closes the connection at once.
    """
    started = False
    try:
        session = await _POOL.get(config, lambda: _new_session(config))
        async with await _open(session, _payload(config, body)) as stream:
            started = True
            refuse_page(stream.response.headers.get("content-type", ""))
            async with aclosing(_values(stream, _keys(config))) as values:
                async for value in values:
                    yield value
    except (APITimeoutError, httpx2.TimeoutException) as error:
        raise ProviderTimeoutError(f"nothing came from the server for {config.timeout_seconds:g} s") from error
    except httpx2.InvalidURL as error:  # the configured one has been checked
        raise ProviderError(f"ANTHROPIC_BASE_URL in the environment is no address: {error}", retryable=False) from error
    except (APIConnectionError, httpx2.HTTPError) as error:
        cause = error.__cause__ or error
        if started:
            raise ProviderIncompleteError(f"the connection broke in the middle of the stream: {cause}") from error
        raise ProviderError(f"cannot reach {error.request.url.copy_with(userinfo=b'', query=None)}: {cause}") from error
    except APIStatusError as error:
        hint = parse_retry_after(error.response.headers.get("retry-after"))
        raise error_of(_body_of(error), status=error.status_code, retry_after=hint, keys=_keys(config)) from error
    except AnthropicError as error:  # no credentials where a profile or the environment promises some
        raise ProviderAuthenticationError(f"{error} In gm-chat: provider_config['api_key'].") from error
    except (ValueError, RecursionError) as error:  # JSON, or UTF-8, that is none
        raise ProviderMalformedError(f"the stream holds what is not JSON: {error}") from error


def _payload(config: AnthropicConfig, body: MessageCreateParamsStreaming) -> dict[str, Any]:
    """Add what the SDK's types lack, and bring the schema of the answer into the form that the API takes."""
    payload: dict[str, Any] = {**body}
    if config.temperature is not None:
        payload["temperature"] = config.temperature
    if "output_config" in payload:
        schema = payload["output_config"]["format"]["schema"]
        with suppress(ValueError, TypeError, AttributeError, AssertionError):  # a schema that the SDK cannot read
            schema = transform_schema(schema)
        payload["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
    return payload


async def _values(stream: AsyncStream[object], keys: tuple[str | None, ...]) -> AsyncGenerator[object]:
    """Yield the events' JSON objects up to the message's end; raise the error that an event reports.

    The SDK's own iterator passes over events without a name, which some servers send.
    """
    # An iterator by its type, a generator in fact.
    events = cast("AsyncGenerator[Any]", AsyncStream.raw_events(stream.response))
    async with aclosing(events):
        async for event in events:
            if not event.data:
                continue
            if event.event == "error":
                raise error_of(_json_or_text(event.data), keys=keys)
            value = event.json()
            kind = None
            if isinstance(value, dict):
                kind = value.setdefault("type", event.event)
                if kind == "error":
                    raise error_of(value, keys=keys)
            yield value
            if kind == "message_stop":
                await _read_to_the_end(events)
                return


def _json_or_text(data: str) -> object:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return data


async def _read_to_the_end(events: AsyncGenerator[Any]) -> None:
    """Let the connection be used again, if the end comes soon."""
    with suppress(TimeoutError, httpx2.HTTPError, ValueError):
        async with asyncio.timeout(LINGER_SECONDS):
            async for _ in events:
                pass


async def _open(session: _Session, body: Mapping[str, Any]) -> AsyncStream[object]:
    """Open the stream; what the server refuses and an answer can do without is left out, once each."""
    for name in session.refused:
        body = without(body, name)
    while True:
        try:
            return await retry_stale(partial(_send, session.client, body), *_LOST)
        except APIStatusError as error:
            refusal = describe(_body_of(error))
            shorter = without_refused(body, refusal) if error.status_code in (400, 422) else None
            if shorter is None:
                raise
        name, body = shorter
        logger.warning("the request is sent again without %r, which the server refused", name)
        session.refused.update(LASTING & {name})


async def _send(client: AsyncAnthropic, body: Mapping[str, Any]) -> AsyncStream[object]:
    # What messages.create() does, but for plain objects: see the module `stream` for the reason.
    return await client.post("/v1/messages", body=body, cast_to=object, stream=True, stream_cls=AsyncStream[object])


def _body_of(error: APIStatusError) -> object:
    """The refusal as the service sent it, with the id that it gave the request."""
    if not isinstance(error.body, Mapping):
        return error.message
    return {"request_id": error.request_id, **error.body}


def _keys(config: AnthropicConfig) -> tuple[str | None, ...]:
    return config.api_key, os.environ.get("ANTHROPIC_API_KEY"), os.environ.get("ANTHROPIC_AUTH_TOKEN")
