"""What the audit of a planned turn may say: an allow-list of fields for each kind of event, and the form of each field.

Ids that a planner chose and the identities of calls are told as hashes; results, names of managers, plans, profiles,
credentials and exceptions are not told at all. :mod:`gm_chat.audit` redacts what comes through, like everything else.
(Specification: "Planned read orchestration", "Settings, errors, and audit helpers".)
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from gm_chat.doors import current_runtime
from gm_chat.errors import PLANNED_REASONS

__all__ = ["PLANNED_FIELDS", "emit_planned_audit_event", "planned_audit_event", "planned_audit_lineage_id"]

MAX_LINEAGE_CHARACTERS: Final = 128


def planned_audit_lineage_id(value: object) -> str | None:
    """Return the same opaque id for the same id of a planner: the SHA-256 of a text of 1 to 128 characters."""
    if not isinstance(value, str) or not 0 < len(value) <= MAX_LINEAGE_CHARACTERS:
        return None
    return _sha256(value)


def emit_planned_audit_event(
    event_type: str, payload: Mapping[str, Any], *, sink: Callable[[dict[str, Any]], object] | None = None
) -> None:
    """Hand the allowed part of a planned turn's diagnostics to ``sink``, else to the chat's audit sinks.

    ``event_type`` is one of :data:`PLANNED_FIELDS`; of any other nothing is told. The chat's sinks get it at the
    audit level ``all``, after redaction, and nobody waits for them.
    """
    event = planned_audit_event(event_type, payload)
    if event is None:
        return
    if sink is None:
        current_runtime().audit.planned(event)
    else:
        sink(event)


def planned_audit_event(event_type: str, payload: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return ``{"event_type": "planned_<event_type>", ...}`` with the fields that may be told; ``None`` for none such.

    A field that the type does not have, or whose value is not of the field's form, is left out. A
    ``canonical_call_identity`` becomes the ``call_hash``.
    """
    fields = PLANNED_FIELDS.get(event_type)
    if fields is None or not isinstance(payload, Mapping):
        return None
    identity = payload.get("canonical_call_identity")
    given = {**payload, "call_hash": _sha256(identity)} if isinstance(identity, str) else payload
    event: dict[str, Any] = {"event_type": f"planned_{event_type}"}
    for name in fields:
        value = _LINEAGE[name](given.get(name)) if name in _LINEAGE else given.get(name)
        if value is not None and (name in _LINEAGE or _FORMS[name](value)):
            event[name] = value
    return event


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def _is_amount(value: object) -> bool:
    return _is_count(value) or (type(value) is float and 0 <= value < math.inf)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_hash(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None


def _is_one_of(*allowed: str) -> Callable[[object], bool]:
    return lambda value: isinstance(value, str) and value in allowed


def _is_list_of(*allowed: str) -> Callable[[object], bool]:
    return lambda value: isinstance(value, list) and all(isinstance(item, str) and item in allowed for item in value)


def _is_counts_of(*names: str) -> Callable[[object], bool]:
    return lambda value: isinstance(value, dict) and set(value) == set(names) and all(map(_is_count, value.values()))


_LINEAGE: Final = dict.fromkeys(("plan_id", "task_id", "root_task_id", "parent_task_id"), planned_audit_lineage_id)
_FORMS: Final[Mapping[str, Callable[[object], bool]]] = {
    "role": _is_one_of("planner", "simple_executor", "complex_executor", "synthesizer", "fallback_executor"),
    # The last two: what the turn was taken for, where the settings leave that to a router.
    "route": _is_one_of("selected", "escalated", "planned", "legacy"),
    "progress": _is_one_of("evidence_added", "duplicate_rejected", "no_progress", "task_resolved", "task_blocked"),
    "stage": _is_one_of("planning", "evidence", "synthesis"),
    "terminal_reason": _is_one_of(*PLANNED_REASONS),
    "match_sources": _is_list_of(
        "exact_name",
        "exact_alias",
        "catalog_domain",
        "catalog_alias",
        "catalog_use_when",
        "schema_description",
        "schema_field",
        "schema_filter",
        "schema_relation",
    ),
    "evidence_counts": _is_counts_of("schema", "path", "query", "calculation"),
    "coverage": _is_counts_of("resolved", "total"),
    "call_hash": _is_hash,
    "reported_cost": _is_amount,
    **dict.fromkeys(("escalated", "trust_group_valid", "duplicate"), _is_flag),
    **dict.fromkeys(
        (
            "task_count",
            "candidate_count",
            "local_passes",
            "subtree_rounds_used",
            "subtree_rounds_remaining",
            "global_rounds_used",
            "global_rounds_remaining",
            "stage_latency_ms",
            "task_latency_ms",
            "input_tokens",
            "output_tokens",
        ),
        _is_count,
    ),
}

_ROUNDS: Final = ("subtree_rounds_used", "subtree_rounds_remaining", "global_rounds_used", "global_rounds_remaining")
_USAGE: Final = ("role", "input_tokens", "output_tokens", "reported_cost")
_CALL: Final = ("plan_id", "task_id", "duplicate", "call_hash")

PLANNED_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "plan": ("plan_id", "role", "trust_group_valid", "task_count"),
    "task_progress": (
        *_LINEAGE,
        *_USAGE,
        *_ROUNDS,
        "duplicate",
        "match_sources",
        "call_hash",
        "progress",
        "local_passes",
        "stage_latency_ms",
        "task_latency_ms",
        "evidence_counts",
        "coverage",
        "terminal_reason",
    ),
    "route": ("plan_id", "task_id", "root_task_id", "role", "route", "escalated", "trust_group_valid"),
    "candidate": ("plan_id", "task_id", "match_sources", "candidate_count", "local_passes"),
    "tool_call": _CALL,
    "tool_result": (*_CALL, "progress", "evidence_counts"),
    "budget": ("plan_id", "task_id", *_ROUNDS),
    "latency": ("plan_id", "task_id", "stage", "stage_latency_ms", "task_latency_ms"),
    "usage": ("plan_id", "task_id", *_USAGE),
    "evidence": ("plan_id", "task_id", "progress", "evidence_counts"),
    "coverage": ("plan_id", "coverage", "terminal_reason"),
    "terminal": ("plan_id", "coverage", "terminal_reason"),
}
"""What an event of a planned turn may hold, by its type without the prefix ``planned_``."""
