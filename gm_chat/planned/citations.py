"""What an answer rests on, for clients: which calls, and which records of theirs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from gm_chat.planned.excerpts import called

if TYPE_CHECKING:
    from gm_chat.planned.evidence import EvidenceRecord, EvidenceStore

__all__ = ["MAX_RECORDS", "citations"]

MAX_RECORDS: Final = 20
"""Ids of rows that one citation names."""


def citations(evidence_ids: Iterable[str], store: EvidenceStore) -> list[dict[str, Any]]:
    """Return a citation for each piece of evidence, then for the rows that its calculations were made of.

    A look-up is cited as ``{evidence_id, task_id, kind, call_id, name, args}``: ``call_id`` is that of the events
    ``tool_call`` and ``tool_result``. A query adds ``total_count`` and ``records``, the ids of its first rows, where it
    has them. A calculation is cited as ``{evidence_id, task_id, kind, operation, value, of}`` with ids of evidence.
    """
    found: dict[str, dict[str, Any]] = {}
    waiting = list(evidence_ids)
    while waiting:
        record = store.get(waiting.pop(0))
        if record is None or record.evidence_id in found:
            continue
        found[record.evidence_id] = citation = _citation(record)
        waiting += citation.get("of", ())
    return list(found.values())


def _citation(record: EvidenceRecord) -> dict[str, Any]:
    head: dict[str, Any] = {"evidence_id": record.evidence_id, "task_id": record.task_id, "kind": record.kind}
    payload = record.payload()
    if record.kind == "calculation":
        of = list(dict.fromkeys(operand["evidence_id"] for operand in payload["operands"]))
        return {**head, "operation": payload["operation"], "value": payload["value"], "of": of}
    call = called(record)
    if isinstance(call, Mapping):
        head |= {"name": call.get("name"), "args": call.get("args")}
    if "call_id" in record.provenance:
        head["call_id"] = record.provenance["call_id"]
    return head | _rows(payload)


def _rows(payload: Any) -> dict[str, Any]:
    if not isinstance(payload, Mapping) or not isinstance(payload.get("data"), list):
        return {}
    ids = [row["id"] for row in payload["data"] if isinstance(row, Mapping) and "id" in row]
    rows: dict[str, Any] = {"records": ids[:MAX_RECORDS]} if ids else {}
    if "total_count" in payload:
        rows["total_count"] = payload["total_count"]
    return rows
