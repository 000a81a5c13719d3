"""Between the engine's values and the columns of our tables. Everything stored passes the one encoder."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.utils import timezone

from gm_chat.encoding import canonical_json, jsonable
from gm_chat.engine.events import ConfirmMutation, Done, Error, Event, TextChunk, ToolCall, ToolResult
from gm_chat.engine.ports import Progress, StoredMessage
from gm_chat.providers.base import TokenUsage

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

__all__ = [
    "MESSAGE_COLUMNS",
    "message_from_row",
    "message_values",
    "pack_event",
    "pack_input",
    "pack_progress",
    "pack_spent",
    "pack_usage",
    "read_time",
    "sha256_hex",
    "stored_time",
    "unpack_event",
    "unpack_input",
    "unpack_progress",
]

MESSAGE_COLUMNS: Final = (
    "role",
    "content",
    "tool_calls",
    "tool_call_id",
    "tool_name",
    "tool_args",
    "tool_result",
    "provider",
    "metadata",
)
"""The columns that make a :class:`StoredMessage`, named like its fields."""

_NULLABLE_TEXT: Final = frozenset({"tool_call_id", "tool_name", "provider"})
_EVENTS: Final = {kind.__name__: kind for kind in (TextChunk, ToolCall, ToolResult, ConfirmMutation, Done, Error)}
_FIELDS: Final = {kind: tuple(field.name for field in fields(kind)) for kind in _EVENTS.values()}


def message_values(message: StoredMessage) -> dict[str, Any]:
    """Column values of a message; text and JSON are made safe for every database (no NUL, no lone surrogate)."""
    values = {name: jsonable(getattr(message, name)) for name in MESSAGE_COLUMNS}
    return {name: "" if value is None and name in _NULLABLE_TEXT else value for name, value in values.items()}


def message_from_row(row: Mapping[str, Any]) -> StoredMessage:
    """Rebuild a message from its column values."""
    return StoredMessage(
        role=row["role"],
        content=row["content"],
        tool_calls=tuple(row["tool_calls"]),
        tool_call_id=row["tool_call_id"] or None,
        tool_name=row["tool_name"] or None,
        tool_args=row["tool_args"],
        tool_result=row["tool_result"],
        provider=row["provider"] or None,
        metadata=row["metadata"],
    )


def pack_usage(usage: TokenUsage) -> dict[str, Any] | None:
    """Token counts as stored; ``None`` when the provider reported none, since zero would read as "free"."""
    return asdict(usage) if usage.reported else None


def pack_spent(spent: Mapping[str, TokenUsage]) -> dict[str, Any]:
    """Token counts by what is billed, as stored; each with whether it was reported."""
    return {jsonable(name): asdict(usage) for name, usage in spent.items()}


def stored_time(moment: datetime) -> datetime:
    """A moment as Django's databases take it: without a zone where the project has ``USE_TZ = False``."""
    return moment if settings.USE_TZ else timezone.make_naive(moment, timezone.get_default_timezone())


def read_time(stored: datetime) -> datetime:
    """The moment that :func:`stored_time` gave, with a zone."""
    return stored if timezone.is_aware(stored) else timezone.make_aware(stored, timezone.get_default_timezone())


def pack_progress(progress: Progress) -> dict[str, Any]:
    """What a turn had used of its limits, as stored."""
    return asdict(progress)


def unpack_progress(stored: Mapping[str, Any]) -> Progress:
    """The progress that :func:`pack_progress` stored."""
    spent = {name: TokenUsage(**usage) for name, usage in stored.get("spent", {}).items()}
    return Progress(**{**stored, "usage": TokenUsage(**stored["usage"]), "spent": spent})


def pack_input(arguments: Mapping[str, Any]) -> tuple[str, str]:
    """A mutation's arguments as the text that is stored, and the text's SHA-256.

    Text, since a JSON column may change numbers: PostgreSQL's makes an integer of ``1e16``.
    """
    text = canonical_json(arguments)
    return text, sha256_hex(text)


def unpack_input(text: str, sha256: str) -> dict[str, Any] | None:
    """The arguments that :func:`pack_input` stored, or ``None`` if the text is not what was stored then."""
    if sha256_hex(text) != sha256:
        return None
    arguments: dict[str, Any] = json.loads(text)
    return arguments


def sha256_hex(text: str) -> str:
    """The digest of any text, one with lone surrogates included."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def pack_event(event: Event) -> dict[str, Any]:
    """One event as stored: the name of its class and its fields. Clients see ``transports.wire``'s form instead."""
    kind = type(event)
    values = {name: getattr(event, name) for name in _FIELDS[kind]}
    if isinstance(event, Done):
        values["usage"] = asdict(event.usage)
    return {"kind": kind.__name__, **jsonable(values)}


def unpack_event(stored: Mapping[str, Any]) -> Event:
    """The event that :func:`pack_event` stored."""
    values = {name: value for name, value in stored.items() if name != "kind"}
    if stored["kind"] == Done.__name__:
        values["usage"] = TokenUsage(**values["usage"])
    event: Event = _EVENTS[stored["kind"]](**values)
    return event
