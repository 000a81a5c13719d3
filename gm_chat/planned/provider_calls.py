"""One round with a provider, as planned turns know it: words, or exactly one tool call, or an error that says why.

Nothing is shown while it streams. Retries, time limits between events and closing the stream are the engine's
(:func:`gm_chat.engine.provider.stream_completion`). (Specification: "Planned orchestration helpers".)
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from gm_chat.engine.ports import ProviderHandle
from gm_chat.engine.provider import Completion, stream_completion
from gm_chat.planned.config import build_profile_provider, profile_for_role
from gm_chat.providers.base import (
    CallOptions,
    ProviderIncompleteError,
    TextChunkEvent,
    TokenUsage,
    ToolCallEvent,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence

    from gm_chat.planned.config import PlannedChatSettings
    from gm_chat.providers.base import ChatEvent, Message, Provider, ToolDefinition

__all__ = [
    "InvalidProviderRoundError",
    "ProfileCaller",
    "ProviderRoundResult",
    "RoundCaller",
    "collect_round",
    "complete_provider_round",
    "complete_round",
]

UNKNOWN_USAGE: Final = TokenUsage(reported=False)


class InvalidProviderRoundError(ValueError):
    """What the provider sent is no round. The message says why, in words for the model.

    ``usage`` is what it cost, ``None`` if the provider did not come to say so.
    """

    public_reason: Final = "provider_failed"

    def __init__(self, detail: str, *, usage: TokenUsage | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.usage = usage


@dataclass(frozen=True, slots=True)
class ProviderRoundResult:
    """Words (``tool_call`` is ``None``), or one call (``text`` is empty).

    ``provider`` names who said it, and ``metadata`` is what that one alone may see again.
    """

    text: str
    tool_call: ToolCallEvent | None
    usage: TokenUsage
    provider: str | None = field(default=None, compare=False)
    metadata: Mapping[str, Any] = field(default_factory=dict, compare=False)


class RoundCaller(Protocol):
    """Makes the calls of a planned turn: knows which provider plays a role, and keeps the turn's limits and audit."""

    async def __call__(
        self,
        role: str,
        messages: Sequence[Message],
        tools: Sequence[ToolDefinition],
        *,
        seconds: float,
        response_format: Mapping[str, Any] | None = None,
    ) -> ProviderRoundResult:
        """Complete one round within ``seconds``.

        ``response_format`` is a JSON Schema for words, for providers that take one. Raises
        :class:`InvalidProviderRoundError`, ``TimeoutError`` when the seconds are over,
        :class:`~gm_chat.engine.failures.TurnStopped` when the turn may not go on, and what the provider raises.
        """
        ...


async def complete_provider_round(
    provider: Provider, messages: list[Message], tools: list[ToolDefinition], timeout_seconds: float
) -> ProviderRoundResult:
    """Complete one round of a provider that is at hand. ``timeout_seconds`` is for the whole of it.

    Raises :class:`InvalidProviderRoundError`, ``TimeoutError``, and what the provider raises.
    """
    handle = _handle(provider, timeout_seconds)
    return await complete_round(handle, messages, tools, CallOptions(deadline=timeout_seconds), seconds=timeout_seconds)


async def complete_round(
    handle: ProviderHandle,
    messages: Sequence[Message],
    tools: Sequence[ToolDefinition],
    options: CallOptions,
    *,
    seconds: float,
) -> ProviderRoundResult:
    """Complete one round; see :class:`RoundCaller` for what it raises."""
    return await collect_round(stream_completion(handle, messages, tools, options), seconds=seconds, name=handle.name)


async def collect_round(
    events: AsyncGenerator[TextChunkEvent | Completion, None],
    *,
    seconds: float,
    name: str | None = None,
    drop_words: bool = False,
) -> ProviderRoundResult:
    """Complete the round that ``events`` are, as :class:`RoundCaller` says; they are closed whatever happens.

    With ``drop_words`` a tool call may have words before it, which are lost: nobody is ever shown them. ``name`` is the
    provider's.
    """
    text: list[str] = []
    done: Completion | None = None
    try:
        async with asyncio.timeout(seconds), aclosing(events) as stream:
            async for event in stream:
                match event:
                    case TextChunkEvent(content=content):
                        text.append(content)
                    case Completion():
                        done = event
    except ProviderIncompleteError as error:
        raise InvalidProviderRoundError(f"the answer broke off: {error}") from error
    if done is None:
        raise InvalidProviderRoundError("the answer broke off")
    words = "" if drop_words and done.calls else "".join(text)
    return replace(_judged(words, done), provider=name, metadata=done.metadata)


def _judged(text: str, done: Completion) -> ProviderRoundResult:
    calls, usage = done.calls, done.usage
    if len(calls) > 1:
        names = ", ".join(call.name for call in calls)
        raise InvalidProviderRoundError(f"a round takes one tool call, not {len(calls)} ({names})", usage=usage)
    if calls and calls[0].error is not None:
        raise InvalidProviderRoundError(
            f"the arguments of the call of {calls[0].name} cannot be read: {calls[0].error}", usage=usage
        )
    if calls and text.strip():
        raise InvalidProviderRoundError("a round takes words or one tool call, not both", usage=usage)
    if calls:
        return ProviderRoundResult("", calls[0], usage)
    if done.finish_reason == "length":
        raise InvalidProviderRoundError("the answer was cut off, as it is too long", usage=usage)
    if not text.strip():
        raise InvalidProviderRoundError("there were neither words nor a tool call", usage=usage)
    return ProviderRoundResult(text, None, usage)


class ProfileCaller:
    """Calls the providers of the profiles themselves: for planned functions that run outside a turn of the engine."""

    def __init__(self, settings: PlannedChatSettings) -> None:
        self._settings = settings
        self._providers: dict[str, Provider] = {}

    async def __call__(
        self,
        role: str,
        messages: Sequence[Message],
        tools: Sequence[ToolDefinition],
        *,
        seconds: float,
        response_format: Mapping[str, Any] | None = None,
    ) -> ProviderRoundResult:
        """Complete one round; see :class:`RoundCaller`."""
        profile = profile_for_role(self._settings, role)
        if profile.name not in self._providers:
            # In a thread, as a build may import a vendor's SDK.
            self._providers[profile.name] = await asyncio.to_thread(build_profile_provider, profile)
        handle = _handle(self._providers[profile.name], seconds)
        options = CallOptions(deadline=seconds, response_format=response_format)
        return await complete_round(handle, messages, tools, options, seconds=seconds)


def _handle(provider: Provider, seconds: float) -> ProviderHandle:
    known: frozenset[str] = frozenset(getattr(provider, "capabilities", ()))
    complete: Any = provider.complete

    def call(messages: list[Message], tools: list[ToolDefinition], options: CallOptions) -> AsyncIterator[ChatEvent]:
        given = {
            name: getattr(options, name) for name in ("tool_choice", "response_format", "deadline") if name in known
        }
        # A provider that declares nothing need not take options at all.
        more = {"options": CallOptions(**given)} if known else {}
        return complete(messages, tools, **more)  # type: ignore[no-any-return]  # the contract's AsyncIterator

    # The round's own limit is the one that ends it: the handle's, which say that the provider is at fault, come later.
    return ProviderHandle(
        name=type(provider).__name__, complete=call, timeout_seconds=2 * seconds, stream_timeout_seconds=2 * seconds
    )
