"""What nobody is left to end."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from gm_chat.models import ChatConversation, ChatPendingConfirmation, ChatTurn
from gm_chat.persistence.lapsed import end_interrupted, end_lapsed, lapse_claims

pytestmark = pytest.mark.django_db

NOW = timezone.now()
MINUTE = timedelta(minutes=1)


def turn(id: str, **values: Any) -> ChatTurn:
    conversation, _ = ChatConversation.objects.get_or_create(session_key="s", defaults={"updated": NOW})
    return ChatTurn.objects.create(id=id, conversation=conversation, active_key=id, **values)


def confirmation(id: str, of: ChatTurn, **values: Any) -> ChatPendingConfirmation:
    return ChatPendingConfirmation.objects.create(
        conversation=of.conversation, turn=of, confirmation_id=id, expires_at=NOW + MINUTE, payload="{}", **values
    )


def states() -> dict[str, str]:
    return dict(ChatTurn.objects.values_list("pk", "state"))


def test_only_what_no_process_works_on_is_ended() -> None:
    turn("dead", alive_until=NOW, events=[{"kind": "TextChunk", "content": "One"}])
    turn("alive", alive_until=NOW + MINUTE)
    turn("done", state="done", alive_until=NOW)
    confirmation("c1", turn("waiting", state="paused"))
    confirmation("c2", turn("orphan", state="paused"), state="executed")
    assert end_interrupted(ChatTurn.objects.all(), NOW) == 2
    assert states() == {"dead": "failed", "alive": "running", "done": "done", "waiting": "paused", "orphan": "failed"}
    dead = ChatTurn.objects.get(pk="dead")
    assert (dead.error_code, dead.active_key, dead.alive_until, dead.finished) == ("interrupted", None, None, NOW)
    assert [event.get("code", event.get("content")) for event in dead.events] == ["One", "interrupted"]
    assert end_interrupted(ChatTurn.objects.all(), NOW) == 0


def test_a_turn_that_shows_life_meanwhile_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    turn("slow", alive_until=NOW)

    class Lagging(type(ChatTurn.objects.all())):  # type: ignore[misc]  # a class that Django makes at run time
        """Reads the row before the pulse comes."""

        def values_list(self, *fields: Any, **options: Any) -> Any:
            rows = list(super().values_list(*fields, **options))
            ChatTurn.objects.update(alive_until=NOW + MINUTE)
            return rows

    assert end_interrupted(Lagging(ChatTurn), NOW) == 0
    assert states() == {"slow": "running"}


def test_only_claims_past_their_lease_become_unknown() -> None:
    of = turn("t")
    confirmation("leased", of, state="claimed", lease_until=NOW + MINUTE)
    confirmation("lapsed", of, state="claimed", lease_until=NOW)
    confirmation("settled", of, state="executed", lease_until=NOW)
    confirmation("pending", of)
    assert lapse_claims(ChatPendingConfirmation.objects.all(), NOW) == 1
    assert dict(ChatPendingConfirmation.objects.values_list("confirmation_id", "state")) == {
        "leased": "claimed", "lapsed": "unknown", "settled": "executed", "pending": "pending",
    }  # fmt: skip


def test_both_are_ended_for_everybody() -> None:
    confirmation("c", turn("t", alive_until=NOW), state="claimed", lease_until=NOW)
    end_lapsed()
    assert states() == {"t": "failed"}
    assert ChatPendingConfirmation.objects.get().state == "unknown"
