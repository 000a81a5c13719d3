"""The table of audit events: append-only, and independent of the chat's tables, so that it outlives them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

from django.db import models
from django.utils import timezone

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["AuditRecord"]


class AuditRecord(models.Model):
    """One audit event. The columns beside ``event`` repeat parts of it, to find it by."""

    created = models.DateTimeField(default=timezone.now, db_index=True)
    event_type = models.CharField(max_length=40)
    turn_id = models.CharField(max_length=64, blank=True, db_index=True)
    actor = models.CharField(max_length=200, blank=True, db_index=True)
    # Text, not a JSON column: what was taken is kept to the letter, its order included, in every database.
    event = models.TextField()

    class Meta:
        verbose_name = "audit event"
        ordering: ClassVar[list[str]] = ["-id"]

    def __str__(self) -> str:
        """Say what happened, and when."""
        return f"{self.event_type} at {self.created:%Y-%m-%d %H:%M:%S}"

    @classmethod
    def of(cls, event: Mapping[str, Any], line: str) -> AuditRecord:
        """The row of an event, whose JSON is ``line``; not saved yet."""
        return cls(
            event_type=_fit(event["event_type"], 40),
            turn_id=_fit(event.get("turn_id"), 64),
            actor=_fit(event.get("actor"), 200),
            event=line,
        )

    @property
    def data(self) -> dict[str, Any]:
        """The event itself."""
        parsed: dict[str, Any] = json.loads(self.event)
        return parsed


def _fit(value: object, length: int) -> str:
    return "" if value is None else str(value).replace("\0", "")[:length]
