"""The provider contract: neutral messages in, a stream of events out.

This is the rightmost package of the dependency order: it imports the standard library only, so that a provider
can be written, type-checked and tested without Django. (Specification: "Provider protocol".)

A provider is any class with ``async complete(messages, tools)``; :class:`BaseLLMProvider` adds the configuration
attributes that the built-in ones share. Provider errors form one tree::

    ProviderError                    code "unavailable"
    ├── ProviderAuthenticationError  "authentication"   the key is missing or refused
    ├── ProviderQuotaError           "quota"            too many requests; may carry retry_after
    ├── ProviderOverloadedError      "overloaded"       the vendor is short of capacity
    ├── ProviderContextError         "context_too_long" the conversation exceeds the model's window
    ├── ProviderRefusedError         "refused"          the model declined
    ├── ProviderFilteredError        "filtered"         a content filter removed the answer
    ├── ProviderMalformedError       "malformed"        bytes that the wire format does not allow
    ├── ProviderIncompleteError      "incomplete"       the stream ended without its terminal marker
    └── ProviderTimeoutError         "timeout"          nothing came in time

The host tries a call again, before its first event, if the error's ``retryable`` says so.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Literal, Protocol, Self, runtime_checkable

__all__ = [
    "MISSING",
    "BaseLLMProvider",
    "CallOptions",
    "Capability",
    "ChatEvent",
    "CheckWarning",
    "DoneEvent",
    "FinishReason",
    "Message",
    "Provider",
    "ProviderAuthenticationError",
    "ProviderContextError",
    "ProviderError",
    "ProviderFilteredError",
    "ProviderIncompleteError",
    "ProviderMalformedError",
    "ProviderOverloadedError",
    "ProviderQuotaError",
    "ProviderRefusedError",
    "ProviderTimeoutError",
    "SecretMapping",
    "TextChunkEvent",
    "TokenUsage",
    "ToolCallEvent",
    "ToolDefinition",
    "set_default_config_source",
]

Role = Literal["system", "user", "assistant", "tool"]
Capability = Literal["tool_choice", "response_format", "deadline"]
FinishReason = Literal["stop", "tool_calls", "length", "filtered", "unknown"]
ToolChoice = Literal["auto", "none", "required"]


class _Missing:
    """The type of :data:`MISSING`; falsy, and equal only to itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self


MISSING: Final[Any] = _Missing()
"""Marks a message that carries no tool result; ``None`` is a result."""


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool as a model sees it: a name, a description and a JSON Schema of its arguments.

    ``writes`` is not for the model: the host sets it on tools that change data, which are never called by mere text.
    """

    name: str
    description: str
    input_schema: Mapping[str, Any]
    writes: bool = False


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens of one or more provider calls.

    ``input_tokens`` includes the cached ones, ``output_tokens`` includes the thinking ones. ``reported`` is false
    when the provider said nothing: the counts are then zero and mean "unknown", not "free".
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    thinking_tokens: int = 0
    reported: bool = True

    def __add__(self, other: TokenUsage) -> TokenUsage:
        """Sum two usages; the sum is reported only if both parts were."""
        return TokenUsage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.thinking_tokens + other.thinking_tokens,
            self.reported and other.reported,
        )


@dataclass(frozen=True, slots=True)
class TextChunkEvent:
    """A fragment of assistant text, in order.

    Empty text shows nothing and is no beginning of an answer. It is a sign of life of a provider that works on what
    cannot be shown, such as thoughts or a tool call, so that its time does not run out.
    """

    content: str


@dataclass(frozen=True, slots=True)
class ToolCallEvent:
    """A complete request to run one tool.

    ``id`` is the provider's own and is only echoed back to it; the host mints the ids that clients see. ``error``
    says that the arguments could not be read ("cut off" or "not JSON", in words for the model): such a call is never
    run, the model is told instead. ``metadata`` is opaque and returns, unchanged, to the provider that made it.
    """

    id: str
    name: str
    args: Mapping[str, Any]
    error: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DoneEvent:
    """The terminal event of one provider call. A stream that ends without it is incomplete."""

    usage: TokenUsage = field(default_factory=lambda: TokenUsage(reported=False))
    finish_reason: FinishReason = "unknown"
    model: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


ChatEvent = TextChunkEvent | ToolCallEvent | DoneEvent


@dataclass(frozen=True, slots=True)
class Message:
    """One entry of provider-neutral history.

    * ``system`` and ``user``: ``content``. A user's may begin with what the application tells of its data, between
      ``<managers>`` tags and followed by an empty line.
    * ``assistant``: ``content`` (may be empty) and the ``tool_calls`` that it requested.
    * ``tool``: the answer to one call: ``tool_call_id``, ``tool_name``, ``tool_result`` (any JSON value) and
      ``content`` (that value as JSON text, between tags such as ``<data-1f0c9a3b>`` that mark it as data for the
      model, and perhaps a line of what to do with it: send this text, not the value).

    ``provider`` names the provider that produced an assistant message, and ``metadata`` is what it wants back.
    """

    role: str
    content: str
    tool_calls: tuple[ToolCallEvent, ...] = ()
    tool_call_id: str | None = None
    tool_name: str | None = None
    tool_result: Any = MISSING
    provider: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOptions:
    """What one call may ask of a provider that declares the capability of the same name.

    ``tool_choice``: "none" asks for an answer in words; the tools are still passed, the adapter decides whether its
    wire format needs them. ``response_format``: a JSON Schema for the text. ``deadline``: the seconds that are left
    of the turn; ``None`` if its time is not limited.
    """

    tool_choice: ToolChoice = "auto"
    response_format: Mapping[str, Any] | None = None
    deadline: float | None = None


@runtime_checkable
class Provider(Protocol):
    """The least that a provider is: the specification's example class satisfies it."""

    def complete(self, messages: list[Message], tools: list[ToolDefinition]) -> AsyncIterator[ChatEvent]:
        """Stream text, tool calls and one :class:`DoneEvent`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckWarning:
    """What ``manage.py check`` warns of under ``id``, as it may be right elsewhere. ``hint`` holds the line to type."""

    id: str
    message: str
    hint: str


class SecretMapping(Mapping[str, Any]):
    """A read-only copy of a configuration whose ``repr`` gives nothing away.

    Of text it shows the type alone: addresses hold passwords, keys are misspelt, plugins name secrets as they like.
    Numbers and truth values are shown, unless their key speaks of a secret.
    """

    __slots__ = ("_values",)
    _SECRET_WORDS: ClassVar = frozenset(
        {"key", "apikey", "token", "secret", "password", "credential", "credentials", "authorization"}
    )
    _WORD: ClassVar = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        shown = ", ".join(f"{key!r}: {self._shown(key, value)}" for key, value in self._values.items())
        return f"SecretMapping({{{shown}}})"

    @classmethod
    def _shown(cls, key: str, value: object) -> str:
        harmless = isinstance(value, int | float | SecretMapping) or value is None
        return repr(value) if harmless and not cls._is_secret(key) else f"<{type(value).__name__}>"

    @classmethod
    def _is_secret(cls, key: object) -> bool:
        """Whether a whole word inside the key says so: ``apiKey`` and ``API-KEY`` do, ``monkey`` does not."""
        return not cls._SECRET_WORDS.isdisjoint(word.lower() for word in cls._WORD.findall(str(key)))


_config_source: Callable[[], Mapping[str, Any]] = dict


def set_default_config_source(source: Callable[[], Mapping[str, Any]]) -> None:
    """Tell zero-argument providers where ``provider_config`` is. Called once by the composition root."""
    global _config_source  # noqa: PLW0603 (one hook for the composition root, instead of an import of it)
    _config_source = source


class BaseLLMProvider:
    """Configuration shared by the built-in providers; deriving from it is optional.

    An instance serves one turn and is never closed: what must be, such as a client with its connections, belongs into
    a :class:`~gm_chat.providers.pool.ClientPool`.
    Built without arguments a provider reads the chat's ``provider_config``; :meth:`from_config` takes exactly the
    mapping it is given, ``{}`` included, and never looks at the settings.
    """

    capabilities: ClassVar[frozenset[Capability]] = frozenset()
    required_extra: ClassVar[str | None] = None

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        self._provider_config = SecretMapping(_config_source() if config is None else config)

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Build a provider from a copy of ``config`` alone."""
        return cls(dict(config))

    @property
    def provider_config(self) -> Mapping[str, Any]:
        """The read-only configuration of this instance; secrets are masked in its ``repr`` only."""
        return self._provider_config

    @classmethod
    def check_configuration(cls, config: Mapping[str, Any] | None = None) -> Sequence[CheckWarning] | None:
        """Raise if ``config`` (default: the chat's) cannot work: ``ImportError`` for the SDK, ``ValueError`` else.

        Return warnings of what may not: the check runs on machines, too, that build the project and never call anyone.
        """

    def complete(
        self,
        messages: list[Message],  # noqa: ARG002 (a subclass reads them)
        tools: list[ToolDefinition],  # noqa: ARG002
        *,
        options: CallOptions | None = None,  # noqa: ARG002
    ) -> AsyncIterator[ChatEvent]:
        """Stream one completion. ``options`` holds only what :attr:`capabilities` declares."""
        raise TypeError(f"{type(self).__name__} does not define complete(messages, tools)")


class ProviderError(Exception):
    """A provider could not complete a call.

    ``str(error)`` is for the operator and may quote the vendor; clients get a generic message for ``code``.
    ``retry_after`` is in seconds, ``None`` when the vendor gave no usable hint. ``retryable`` says whether the same
    request may succeed a little later; each kind has its own answer, which one error may contradict.
    """

    code: ClassVar[str] = "unavailable"
    retryable: bool = True

    def __init__(self, detail: str, *, retry_after: float | None = None, retryable: bool | None = None) -> None:
        super().__init__(detail)
        self.retry_after = retry_after
        if retryable is not None:
            self.retryable = retryable


class ProviderAuthenticationError(ProviderError):
    """The key is missing, wrong, or lacks the permission."""

    code = "authentication"
    retryable = False


class ProviderQuotaError(ProviderError):
    """The vendor's rate limit or quota is exhausted."""

    code = "quota"


class ProviderOverloadedError(ProviderError):
    """The vendor has no capacity at the moment."""

    code = "overloaded"


class ProviderContextError(ProviderError):
    """The conversation does not fit the model's context window."""

    code = "context_too_long"
    retryable = False


class ProviderRefusedError(ProviderError):
    """The model refused to answer."""

    code = "refused"
    retryable = False


class ProviderFilteredError(ProviderError):
    """A content filter stopped the answer."""

    code = "filtered"
    retryable = False


class ProviderMalformedError(ProviderError):
    """The server sent what its wire format does not allow, or something ambiguous."""

    code = "malformed"
    retryable = False


class ProviderIncompleteError(ProviderError):
    """The stream ended without its terminal marker; nothing that it carried may be run."""

    code = "incomplete"


class ProviderTimeoutError(ProviderError, TimeoutError):
    """No event came within ``timeout_seconds`` or ``stream_timeout_seconds``."""

    code = "timeout"
    retryable = False
