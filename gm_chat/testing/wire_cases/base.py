"""The shape of a wire case, and how the bytes of one are put together."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from gm_chat.providers.base import TokenUsage
from gm_chat.testing.wire_cases.kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gm_chat.providers.base import FinishReason, ProviderError

__all__ = ["ARGS", "AS_TEXT", "IN_TEXT", "PAGE", "QUERY", "UNREPORTED", "USAGE", "WireCase", "compact", "lines", "sse"]

USAGE: Final = TokenUsage(12, 3)
"""What a case reports and expects unless it says otherwise."""
UNREPORTED: Final = TokenUsage(reported=False)
ARGS: Final = {"manager": "Größe 🎉"}
QUERY: Final = ("query", ARGS)
"""The call that most cases with a call have."""
AS_TEXT: Final = '```json\n{"name": "query", "arguments": {"manager": "Größe 🎉"}}\n```'
"""The same call as models write it that do not know how to call."""
IN_TEXT: Final = {"tool_call_format": "text"}
PAGE: Final = b"<!doctype html>\n<html><body>Please log in: data: {}</body></html>\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class WireCase:
    """Bytes that a server has sent in the field, and what an adapter must make of them.

    Either the stream is complete and means ``text``, ``calls`` (name and arguments), for each call the beginning of
    its error in ``errors`` (none: no call has one), ``finish`` and ``usage``; or it is one of ``failure``, exact
    types of :class:`~gm_chat.providers.base.ProviderError`, after ``text`` and without any call.
    """

    name: str
    """A key of ``KINDS``, with ``": variant"`` where a format has several cases of the kind."""
    body: bytes
    text: str = ""
    calls: Sequence[tuple[str, Mapping[str, Any]]] = ()
    errors: Sequence[str] = ()
    finish: FinishReason = "stop"
    usage: TokenUsage | None = USAGE
    """``None``: what is reported says too little to be held to."""
    failure: tuple[type[ProviderError], ...] = ()
    status: int = 200
    content_type: str | None = None
    """``None`` for the one of the format."""
    breaks: bool = False
    """Whether the connection breaks at the end, instead of being closed."""
    headers: Mapping[str, str] = field(default_factory=dict)
    retry_after: tuple[float, float] | None = None
    """The bounds, in seconds, of the failure's hint; ``None``: it has none."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """Further keys of the provider's configuration."""
    question: str | None = None
    """What is asked, where the case depends on it."""
    warning: str | None = None
    """A regular expression for what the operator must be told in the log."""
    returns: Sequence[Any] = ()
    """JSON values that the next request to this provider must hold, unchanged: its opaque metadata."""

    def __post_init__(self) -> None:
        if self.name.partition(":")[0] not in KINDS:
            raise ValueError(f"the wire case {self.name!r} is of no kind in gm_chat.testing.wire_cases.kinds.KINDS")

    @property
    def kind(self) -> str:
        """What goes wrong, in words that hold for every format."""
        return KINDS[self.name.partition(":")[0]]


def compact(value: object) -> str:
    """JSON as servers write it: without blanks, and with every character as itself."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def sse(*events: object, names: bool = False) -> bytes:
    """Server-sent events: JSON objects, or text that is sent as it is. ``names``: each is named after its ``type``."""
    return b"".join(_event(event, names=names) for event in events)


def _event(event: Any, *, names: bool) -> bytes:
    if isinstance(event, str):
        return event.encode()
    name = f"event: {event['type']}\n" if names else ""
    return f"{name}data: {compact(event)}\n\n".encode()


def lines(*objects: object) -> bytes:
    """JSON lines: objects, or text that is sent as it is."""
    return b"".join(item.encode() if isinstance(item, str) else f"{compact(item)}\n".encode() for item in objects)
