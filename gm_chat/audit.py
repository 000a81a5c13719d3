"""What an audit may say: the policy, truncation and the event shapes. Pure: no clock, no Django, no sink.

:mod:`gm_chat.redaction` says what a secret is. (Specification: "Audit settings".)
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from gm_chat.encoding import UnencodableError, jsonable, to_json
from gm_chat.planned_audit import emit_planned_audit_event, planned_audit_lineage_id
from gm_chat.redaction import REDACTED, is_secret_key, redact, redact_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gm_chat.plugin.context import Actor, TurnContext

__all__ = [
    "DEFAULT_MAX_RESULT_SIZE",
    "DEFAULT_REDACT_FIELDS",
    "REDACTED",
    "AuditEvent",
    "AuditLevel",
    "AuditPolicy",
    "assistant_message_event",
    "audited_actor",
    "emit_planned_audit_event",
    "planned_audit_lineage_id",
    "tool_call_event",
    "tool_result_event",
    "user_message_event",
]

AuditLevel = Literal["off", "messages", "all"]
AuditEvent = dict[str, Any]

DEFAULT_REDACT_FIELDS: Final = ("password", "secret", "token", "key", "credential")
DEFAULT_MAX_RESULT_SIZE: Final = 4096
"""Characters of JSON that a tool's result may take in an event."""


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
        return is_secret_key(key, self.redact_fields)

    def redact(self, value: Any) -> Any:
        """A copy of a JSON value without its secrets."""
        return redact(value, self.redact_fields)

    def redact_text(self, text: str) -> str:
        """The text without what looks like a secret in it."""
        return redact_text(text, self.redact_fields)

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


def planned_event(context: TurnContext, event: Mapping[str, Any], *, at: float) -> AuditEvent:
    """An event of :mod:`gm_chat.planned_audit`, with the turn that it belongs to."""
    return {**_head("", context, at), **event}


def _head(event_type: str, context: TurnContext, at: float) -> AuditEvent:
    return {
        "event_type": event_type,
        "at": datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds"),
        "turn_id": context.turn_id,
        "conversation_id": context.conversation_id,
        "actor": audited_actor(context.actor),
        "transport": context.transport,
    }


def audited_actor(actor: Actor) -> str:
    """How audit events name an actor: a user by id, a session by a digest of its key."""
    if actor.user_id is None and actor.session_key:
        # Whoever reads a session key can take the session over.
        return f"session:{hashlib.sha256(actor.session_key.encode()).hexdigest()[:16]}"
    return actor.key
