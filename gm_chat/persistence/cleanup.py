"""What ``chat_cleanup`` deletes: conversations that nobody continues, confirmations that have their outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from django.db.models import Q, QuerySet

from gm_chat.models import ChatConversation, ChatPendingConfirmation
from gm_chat.persistence.database import chat_database
from gm_chat.persistence.lapsed import end_lapsed
from gm_chat.persistence.rate_counts import prune_counts

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
    """Delete conversations without activity since ``stale_before``, and the others' confirmations with an outcome.

    Confirmations that wait, or whose outcome is unknown, stay as long as their conversation. Those past ``now`` count
    in a dry run; otherwise whoever calls has ended them before (``TurnStore.expire``), so that somebody is told.

    Each batch is a transaction of its own, so that a large clean-up never holds a lock for long. A conversation that
    is continued meanwhile survives. Counts of windows that are over go, too.
    Source: specification, "Persistence and cleanup".
    """
    database = chat_database()
    stale = ChatConversation.objects.using(database).filter(updated__lt=stale_before)
    state = ChatPendingConfirmation.State
    resolved = Q(state__in=(state.EXECUTED, state.FAILED, state.REJECTED, state.EXPIRED))
    expired = Q(state=state.PENDING, expires_at__lte=now)
    fresh = ChatPendingConfirmation.objects.using(database).filter(conversation__updated__gte=stale_before)
    if dry_run:
        return Pruned(stale.count(), fresh.filter(resolved | expired).count())
    end_lapsed()
    prune_counts(now.timestamp())
    return Pruned(_in_batches(stale, batch_size), _in_batches(fresh.filter(resolved), batch_size))


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
