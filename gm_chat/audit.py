"""What an audit may say: redaction, truncation and the four event shapes. Pure: no clock, no Django, no sink.

A secret is recognised in two ways. By its key, where a configured term must be a whole word of it: ``client_secret``,
``apiKey`` and ``API-KEY`` are secret for ``secret`` and ``key``; ``tokenizer``, ``monkey`` and ``input_tokens`` are not
for ``token`` and ``key``. And by its look, inside any text: bearer tokens, passwords in URLs, ``password=...``,
vendors' keys (``sk-...``). (Specification: "Audit settings".)
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from gm_chat.encoding import UnencodableError, jsonable, to_json
from gm_chat.planned_audit import emit_planned_audit_event, planned_audit_lineage_id

if TYPE_CHECKING:
    from gm_chat.plugin.context import TurnContext

__all__ = [
    "DEFAULT_MAX_RESULT_SIZE",
    "DEFAULT_REDACT_FIELDS",
    "REDACTED",
    "AuditEvent",
    "AuditLevel",
    "AuditPolicy",
    "assistant_message_event",
    "emit_planned_audit_event",
    "planned_audit_lineage_id",
    "tool_call_event",
    "tool_result_event",
    "user_message_event",
]

AuditLevel = Literal["off", "messages", "all"]
AuditEvent = dict[str, Any]

REDACTED: Final = "[redacted]"
DEFAULT_REDACT_FIELDS: Final = ("password", "secret", "token", "key", "credential")
DEFAULT_MAX_RESULT_SIZE: Final = 4096
"""Characters of JSON that a tool's result may take in an event."""

_ALWAYS_SECRET: Final = ("passwd", "passphrase", "passwords", "secrets", "credentials", "apikey")
"""Spellings of the default terms that are one word of their own and never innocent, unlike ``tokens``."""

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_AUTHORIZATION: Final = re.compile(
    r"\b(authorization[\"']?\s*[:=]\s*[\"']?(?:bearer|basic|token)\s+)[^\s\"',;]+", re.IGNORECASE
)
# A short word in lower case after "bearer" is English, not a token.
_BEARER: Final = re.compile(r"\b((?i:bearer)\s+)(?![a-z]{1,15}\.?(?:[\s\"',;:)!?]|$))[\w.~+/=-]{6,}")
_URL_PASSWORD: Final = re.compile(r"(://[^\s/?#:@]*:)[^\s/?#]*@")
_VENDOR_KEY: Final = re.compile(r"\bsk-[\w-]{16,}")
_SUSPICIOUS: Final = re.compile(r"[:=]|sk-|(?i:bearer)")
_ASSIGNMENT: Final = re.compile(r"(?<![\w-])([A-Za-z][\w-]{0,63})(=)(\"[^\"]*\"|'[^']*'|[^\s&;,\"']+)")
_JSON_MEMBER: Final = re.compile(r"\"([\w-]{1,64})(\"\s*:\s*)(\"(?:[^\"\\]|\\.)*\")")


def _words(name: str) -> tuple[str, ...]:
    return tuple(word.lower() for word in _WORD.findall(name))


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPolicy:
    """How much is audited and how it is cleaned; see :meth:`from_settings` for the settings behind it."""

    level: AuditLevel = "off"
    max_result_size: int = DEFAULT_MAX_RESULT_SIZE
    redact_fields: tuple[str, ...] = DEFAULT_REDACT_FIELDS

    @classmethod
    def from_settings(cls, audit: Mapping[str, Any]) -> Self:
        """The policy of the chat setting ``audit``. ``enabled: False`` is the level ``off``."""
        return cls(
            level=audit["level"] if audit["enabled"] else "off",
            max_result_size=audit["max_result_size"],
            redact_fields=tuple(audit["redact_fields"]),
        )

    @property
    def messages(self) -> bool:
        """Whether user and assistant messages are audited."""
        return self.level != "off"

    @property
    def tools(self) -> bool:
        """Whether tool activity is audited."""
        return self.level == "all"

    def is_secret(self, key: str) -> bool:
        """Whether a configured term stands in the key as whole words."""
        return _is_secret(key, self.redact_fields)

    def redact(self, value: Any) -> Any:
        """A copy of a JSON value without its secrets."""
        match value:
            case Mapping():
                return {key: REDACTED if self.is_secret(key) else self.redact(item) for key, item in value.items()}
            case list():
                return [self.redact(item) for item in value]
            case str():
                return self.redact_text(value)
            case _:
                return value

    def redact_text(self, text: str) -> str:
        """The text without what looks like a secret in it."""
        if not _SUSPICIOUS.search(text):  # nearly all values of a large result
            return text
        text = _AUTHORIZATION.sub(rf"\1{REDACTED}", text)
        text = _BEARER.sub(rf"\1{REDACTED}", text)
        text = _URL_PASSWORD.sub(rf"\1{REDACTED}@", text)
        text = _VENDOR_KEY.sub(REDACTED, text)
        text = _ASSIGNMENT.sub(self._hide_member, text)
        return _JSON_MEMBER.sub(self._hide_json_member, text)

    def clean(self, value: Any) -> Any:
        """``value`` as JSON without secrets; what has no JSON form is named by its type."""
        try:
            return self.redact(jsonable(value))
        except UnencodableError:
            return f"[{type(value).__name__} without a JSON form]"

    def clean_result(self, result: Any) -> dict[str, Any]:
        """The members ``result`` and ``result_truncated`` of an event.

        A result whose JSON is longer than ``max_result_size`` characters becomes the beginning of that JSON, a text.
        """
        cleaned = self.clean(result)
        text = to_json(cleaned)
        if len(text) <= self.max_result_size:
            return {"result": cleaned, "result_truncated": False}
        return {"result": text[: self.max_result_size], "result_truncated": True}

    def _hide_member(self, found: re.Match[str]) -> str:
        key, sign, _ = found.groups()
        return f"{key}{sign}{REDACTED}" if self.is_secret(key) else found.group()

    def _hide_json_member(self, found: re.Match[str]) -> str:
        key, colon, _ = found.groups()
        return f'"{key}{colon}"{REDACTED}"' if self.is_secret(key) else found.group()


@functools.lru_cache(maxsize=4096)
def _is_secret(key: str, terms: tuple[str, ...]) -> bool:
    words = _words(key)
    return any(_contains(words, _words(term)) for term in (*terms, *_ALWAYS_SECRET))


def _contains(words: tuple[str, ...], term: tuple[str, ...]) -> bool:
    length = len(term)
    return length > 0 and any(words[start : start + length] == term for start in range(len(words) - length + 1))


def user_message_event(context: TurnContext, policy: AuditPolicy, *, at: float) -> AuditEvent:
    """An accepted message. ``at`` is a ``time.time()`` value, here and below."""
    return {**_head("user_message", context, at), "content": policy.clean(context.text)}


def assistant_message_event(context: TurnContext, content: str, policy: AuditPolicy, *, at: float) -> AuditEvent:
    """A complete text of the assistant."""
    return {**_head("assistant_message", context, at), "content": policy.clean(content)}


def tool_call_event(
    context: TurnContext,
    name: str,
    args: Mapping[str, Any],
    policy: AuditPolicy,
    *,
    at: float,
    call_id: str | None = None,
) -> AuditEvent:
    """A tool that is about to run; ``call_id`` is the id that clients see, where it is known."""
    return {
        **_head("tool_call", context, at),
        "call_id": call_id,
        "tool_name": name,
        "args": policy.clean(args),
    }


def tool_result_event(
    context: TurnContext, name: str, result: Any, policy: AuditPolicy, *, at: float, call_id: str | None = None
) -> AuditEvent:
    """What the tool answered."""
    return {
        **_head("tool_result", context, at),
        "call_id": call_id,
        "tool_name": name,
        **policy.clean_result(result),
    }


def _head(event_type: str, context: TurnContext, at: float) -> AuditEvent:
    return {
        "event_type": event_type,
        "at": datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds"),
        "turn_id": context.turn_id,
        "conversation_id": context.conversation_id,
        "actor": _actor(context),
        "transport": context.transport,
    }


def _actor(context: TurnContext) -> str:
    actor = context.actor
    if actor.user_id is None and actor.session_key:
        # Whoever reads a session key can take the session over.
        return f"session:{hashlib.sha256(actor.session_key.encode()).hexdigest()[:16]}"
    return actor.key
