"""What ``chat_cleanup`` deletes: conversations that nobody continues, confirmations that nobody can answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.db import router, transaction
from django.db.models import Q, QuerySet

from gm_chat.models import ChatConversation, ChatPendingConfirmation

if TYPE_CHECKING:
    from datetime import datetime

__all__ = ["BATCH_SIZE", "Pruned", "prune"]

BATCH_SIZE: Final = 200


@dataclass(frozen=True, slots=True)
class Pruned:
    """How many conversations and confirmations were (or, in a dry run, would be) deleted.

    ``confirmations`` leaves out those that go with their conversation.
    """

    conversations: int
    confirmations: int


def prune(*, stale_before: datetime, now: datetime, dry_run: bool = False, batch_size: int = BATCH_SIZE) -> Pruned:
    """Delete conversations without a turn since ``stale_before``, and confirmations resolved or expired at ``now``.

    Each batch is a transaction of its own, so that a large clean-up never holds a lock for long. A conversation that
    is continued meanwhile survives. Source: specification, "Persistence and cleanup".
    """
    database = router.db_for_write(ChatConversation)
    stale = ChatConversation.objects.using(database).filter(updated__lt=stale_before)
    finished = ChatPendingConfirmation.objects.using(database).filter(
        Q(resolved_at__isnull=False) | Q(expires_at__lte=now), conversation__updated__gte=stale_before
    )
    if dry_run:
        return Pruned(stale.count(), finished.count())
    return Pruned(_in_batches(stale, batch_size), _in_batches(finished, batch_size))


def _in_batches(rows: QuerySet[Any], batch_size: int) -> int:
    deleted = 0
    while True:
        with transaction.atomic(using=rows.db):
            # The lock makes a message that arrives now wait, find no conversation, and begin a new one.
            keys = list(rows.select_for_update().order_by("pk").values_list("pk", flat=True)[:batch_size])
            if not keys:
                return deleted
            QuerySet(rows.model, using=rows.db).filter(pk__in=keys).delete()
            deleted += len(keys)
