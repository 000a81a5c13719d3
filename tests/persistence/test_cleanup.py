from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
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
    values = {"mutation_name": "createPart", "payload": "{}", "payload_sha256": "", "expires_at": NOW + HOUR}
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


def test_confirmations_with_an_outcome_go_and_those_that_wait_or_are_unknown_stay() -> None:
    fresh = conversation(1, age=HOUR)
    for state in ("executed", "failed", "rejected", "expired"):
        confirmation(fresh, state, state=state, resolved_at=NOW)
    confirmation(fresh, "pending")
    confirmation(fresh, "overdue", expires_at=NOW)  # for somebody to end, who then tells of it
    confirmation(fresh, "unknown", state="unknown", expires_at=NOW)
    confirmation(fresh, "claimed", state="claimed", lease_until=NOW + HOUR, expires_at=NOW)
    confirmation(fresh, "lapsed", state="claimed", lease_until=NOW, expires_at=NOW)
    assert prune(stale_before=NOW - HOUR * 24, now=NOW, batch_size=3) == Pruned(0, 4)
    assert dict(ChatPendingConfirmation.objects.values_list("confirmation_id", "state")) == {
        "pending": "pending", "overdue": "pending", "unknown": "unknown", "claimed": "claimed", "lapsed": "unknown",
    }  # fmt: skip


def test_even_an_unknown_outcome_goes_with_its_conversation() -> None:
    confirmation(conversation(1, age=HOUR * 30), "unknown", state="unknown")
    assert prune(stale_before=NOW - HOUR * 24, now=NOW) == Pruned(1, 0)
    assert not ChatPendingConfirmation.objects.exists()


def test_turns_of_dead_processes_are_ended() -> None:
    conversation(1, age=HOUR)
    ChatTurn.objects.update(active_key="k", alive_until=NOW - HOUR)
    prune(stale_before=NOW - HOUR * 24, now=NOW)
    assert ChatTurn.objects.get().error_code == "interrupted"


def test_a_dry_run_counts_what_would_go_and_changes_nothing() -> None:
    confirmation(conversation(1, age=HOUR * 30), "old", state="executed")
    fresh = conversation(2, age=HOUR)
    confirmation(fresh, "new", state="executed")
    confirmation(fresh, "overdue", expires_at=NOW)
    confirmation(fresh, "lapsed", state="claimed", lease_until=NOW)
    before = list(ChatPendingConfirmation.objects.order_by("pk").values())
    assert prune(stale_before=NOW - HOUR * 24, now=NOW, dry_run=True) == Pruned(1, 2)
    assert ChatConversation.objects.count() == 2
    assert list(ChatPendingConfirmation.objects.order_by("pk").values()) == before


def test_constraints_hold_on_every_database() -> None:
    first = conversation(1, age=HOUR)
    with pytest.raises(IntegrityError), transaction.atomic():
        ChatConversation.objects.create(session_key="x", current_key=first.current_key, updated=NOW)
    user = get_user_model()._default_manager.create(username="ada")
    with pytest.raises(IntegrityError), transaction.atomic():
        ChatConversation.objects.create(user=user, session_key="x", updated=NOW)
    confirmation(first, "c1")
    with pytest.raises(IntegrityError), transaction.atomic():
        confirmation(first, "c1")
    ChatTurn.objects.create(id="a", conversation=first, owner_key="o", active_key="o", request_key="k")
    for doubled in ({"active_key": "o"}, {"owner_key": "o", "request_key": "k"}):
        with pytest.raises(IntegrityError), transaction.atomic():
            ChatTurn.objects.create(id="b", conversation=first, **doubled)
    for number in range(2):
        ChatTurn.objects.create(id=f"n{number}", conversation=first, owner_key="o")
        ChatConversation.objects.create(session_key="x", current_key=None, updated=NOW)
