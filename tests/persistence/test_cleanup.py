from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from gm_chat.models import ChatConversation, ChatMessage, ChatPendingConfirmation, ChatTurn
from gm_chat.persistence.cleanup import Pruned, prune

pytestmark = pytest.mark.django_db

NOW = timezone.now()
HOUR = timedelta(hours=1)


def conversation(number: int, *, age: timedelta) -> ChatConversation:
    made = ChatConversation.objects.create(session_key=f"s{number}", current_key=f"k{number}", updated=NOW - age)
    turn = ChatTurn.objects.create(id=f"t{number}", conversation=made)
    question = ChatMessage.objects.create(conversation=made, turn=turn, role="user")
    answer = ChatMessage.objects.create(conversation=made, turn=turn, role="assistant", parent=question)
    ChatConversation.objects.filter(pk=made.pk).update(summarized_through=answer)
    return made


def confirmation(owner: ChatConversation, name: str, **changes: Any) -> ChatPendingConfirmation:
    values = {"mutation_name": "createPart", "payload": {}, "payload_sha256": "", "expires_at": NOW + HOUR}
    turn = owner.turns.get()
    return ChatPendingConfirmation.objects.create(
        conversation=owner, turn=turn, confirmation_id=name, **values | changes
    )


def test_stale_conversations_go_with_all_they_hold_and_fresh_ones_stay() -> None:
    for number in range(5):
        confirmation(conversation(number, age=HOUR * 30), f"c{number}")
    fresh = conversation(9, age=HOUR * 2)
    assert prune(stale_before=NOW - HOUR * 24, now=NOW, batch_size=2) == Pruned(5, 0)
    assert [c.pk for c in ChatConversation.objects.all()] == [fresh.pk]
    assert ChatMessage.objects.count() == 2
    assert ChatTurn.objects.count() == 1
    assert not ChatPendingConfirmation.objects.exists()


def test_confirmations_that_nobody_can_answer_go_and_pending_ones_stay() -> None:
    fresh = conversation(1, age=HOUR)
    confirmation(fresh, "resolved", resolved_at=NOW)
    confirmation(fresh, "expired", expires_at=NOW)
    pending = confirmation(fresh, "pending")
    assert prune(stale_before=NOW - HOUR * 24, now=NOW, batch_size=1) == Pruned(0, 2)
    assert list(ChatPendingConfirmation.objects.all()) == [pending]


def test_a_dry_run_counts_the_same_and_deletes_nothing() -> None:
    confirmation(conversation(1, age=HOUR * 30), "old", resolved_at=NOW)
    confirmation(conversation(2, age=HOUR), "new", resolved_at=NOW)
    assert prune(stale_before=NOW - HOUR * 24, now=NOW, dry_run=True) == Pruned(1, 1)
    assert ChatConversation.objects.count() == 2
    assert prune(stale_before=NOW - HOUR * 24, now=NOW) == Pruned(1, 1)


def test_constraints_hold_on_every_database() -> None:
    first = conversation(1, age=HOUR)
    with pytest.raises(IntegrityError), transaction.atomic():
        ChatConversation.objects.create(session_key="x", current_key=first.current_key, updated=NOW)
    with pytest.raises(IntegrityError), transaction.atomic():
        ChatConversation.objects.create(updated=NOW)
    confirmation(first, "c1")
    with pytest.raises(IntegrityError), transaction.atomic():
        confirmation(first, "c1")
    for _ in range(2):
        ChatConversation.objects.create(session_key="x", current_key=None, updated=NOW)
