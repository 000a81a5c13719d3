"""Deleting what the table holds of one actor, for ``manage.py chat_forget``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db import router

from gm_chat_audit_logging.models import AuditRecord

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["forget_actor"]

BATCH_SIZE: Final = 1000


def forget_actor(actor: str, export: Callable[[Any], None] | None, *, dry_run: bool) -> int:
    """Delete, or in a dry run count, the actor's events, and return how many; ``export`` takes them before they go."""
    rows = AuditRecord.objects.using(router.db_for_write(AuditRecord))
    count, last = 0, 0
    while batch := list(rows.filter(actor=actor, pk__gt=last).order_by("pk")[:BATCH_SIZE]):
        last = batch[-1].pk
        if export is not None:
            export(batch)
        count += len(batch) if dry_run else rows.filter(pk__in=[row.pk for row in batch]).delete()[0]
    return count
