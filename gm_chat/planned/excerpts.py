"""What a model is shown of evidence: as much of a result as there is room for, in whole rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gm_chat.encoding import to_json

if TYPE_CHECKING:
    from gm_chat.planned.evidence import EvidenceRecord

__all__ = ["called", "excerpt"]


def called(record: EvidenceRecord) -> Any:
    """Return what was looked up: ``{"name": ..., "args": {...}}`` where the call's identity is one of ours."""
    try:
        return json.loads(record.call_identity)
    except ValueError:
        return record.call_identity


def excerpt(record: EvidenceRecord, room: int) -> Any:
    """Return a result in at most ``room`` characters of JSON: as many whole rows as fit, else its text's beginning.

    ``rows_left_out`` says how many rows are missing.
    """
    payload = record.payload()
    if len(record.payload_json) <= room:
        return payload
    rows = payload.get("data") if isinstance(payload, Mapping) else None
    if not isinstance(rows, list):
        return record.payload_json[:room]
    room -= len(to_json({**payload, "data": [], "rows_left_out": len(rows)}))
    kept: list[Any] = []
    for row in rows:
        room -= len(to_json(row)) + 1
        if room < 0:
            break
        kept.append(row)
    return {**payload, "data": kept, "rows_left_out": len(rows) - len(kept)}
