"""What the ledger knows: each turn's usage by model, also when its conversation is gone."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.utils import timezone
from testproject.stored import ANONYMOUS, closed, opened

from gm_chat.engine.ports import Progress
from gm_chat.models import ChatConversation, ChatTurn, ChatUsage
from gm_chat.persistence.cleanup import prune
from gm_chat.persistence.conversations import DjangoTurnStore
from gm_chat.persistence.ledger import Used, entries
from gm_chat.persistence.rows import pack_progress, sha256_hex, unpack_progress
from gm_chat.providers.base import TokenUsage

pytestmark = pytest.mark.django_db(transaction=True)

TODAY = date(2030, 3, 31)
NOON = datetime(2030, 3, 31, 12, tzinfo=UTC)


def counts(input_tokens: int, output_tokens: int, *, cached: int = 0, reported: bool = True) -> dict[str, Any]:
    return {
        "input_tokens": input_tokens,
        "output_tokens": output_tokens,
        "cached_tokens": cached,
        "thinking_tokens": 0,
        "reported": reported,
    }


def spend(conversation: ChatConversation, id: str, at: datetime = NOON, **spent: Any) -> None:
    turn = ChatTurn.objects.create(id=id, conversation=conversation, owner_key=sha256_hex("k"), spent=spent)
    ChatTurn.objects.filter(pk=turn.pk).update(created=at)


@pytest.fixture
def conversation() -> ChatConversation:
    user = get_user_model()._default_manager.create(username="ada")
    return ChatConversation.objects.create(user=user, updated=timezone.now())


def ledger(since: date = TODAY, until: date = TODAY) -> list[tuple[Any, ...]]:
    return [(str(item.day), item.actor, item.conversation, item.model, item.used) for item in entries(since, until)]


async def test_a_turn_that_is_closed_leaves_what_it_spent() -> None:
    store = DjangoTurnStore()
    turn = closed("t1", await opened(store, "t1", "Hello", ANONYMOUS), spent={"a/b": TokenUsage(10, 5, 4, 0, False)})
    await store.close_turn(turn)
    row = await ChatTurn.objects.aget(pk="t1")
    assert row.spent == {"a/b": counts(10, 5, cached=4, reported=False)}


def test_a_paused_turn_goes_on_counting_by_model() -> None:
    progress = Progress(rounds=1, usage=TokenUsage(3, 4), spent={"a/b": TokenUsage(3, 4, reported=False)})
    assert unpack_progress(pack_progress(progress)) == progress
    before = {name: value for name, value in pack_progress(progress).items() if name != "spent"}
    assert unpack_progress(before).spent == {}, "a turn that an earlier version paused"


def test_entries_are_by_day_actor_conversation_and_model(conversation: ChatConversation) -> None:
    visitor = ChatConversation.objects.create(session_key="secret", updated=timezone.now())
    spend(conversation, "t1", **{"openai/small": counts(10, 5, cached=2), "ollama": counts(0, 0, reported=False)})
    spend(conversation, "t2")
    spend(visitor, "t3", ollama=counts(7, 1))
    user = f"user:{conversation.user_id}"
    mark = f"session:{sha256_hex('k')[:12]}"
    assert sorted(ledger(), key=str) == sorted(
        [
            ("2030-03-31", user, conversation.pk, "openai/small", Used(1, 0, 10, 2, 5)),
            ("2030-03-31", user, conversation.pk, "ollama", Used(1, 1)),
            ("2030-03-31", mark, visitor.pk, "ollama", Used(1, 0, 7, 0, 1)),
        ],
        key=str,
    )


def test_days_are_the_project_s(conversation: ChatConversation, settings: Any) -> None:
    settings.TIME_ZONE = "Europe/Berlin"
    # The last hour of the 30th there, and the first of the 31st, on which the clocks change.
    for id, at in (("t1", datetime(2030, 3, 30, 22, 59, tzinfo=UTC)), ("t2", datetime(2030, 3, 30, 23, tzinfo=UTC))):
        spend(conversation, id, at, m=counts(1, 1))
    spend(conversation, "t3", datetime(2030, 3, 31, 21, 59, tzinfo=UTC), m=counts(1, 1))
    spend(conversation, "t4", datetime(2030, 3, 31, 22, tzinfo=UTC), m=counts(1, 1))
    assert [line[0] for line in ledger()] == ["2030-03-31"] * 2
    assert [line[0] for line in ledger(TODAY - timedelta(1), TODAY + timedelta(1))] == [
        "2030-03-30",
        *["2030-03-31"] * 2,
        "2030-04-01",
    ]


@pytest.mark.parametrize("how", ["the conversation", "its user", "the clean-up"])
def test_what_is_deleted_stays_counted(conversation: ChatConversation, how: str) -> None:
    spend(conversation, "t1", a=counts(10, 5, cached=2), b=counts(0, 0, reported=False))
    spend(conversation, "t2", a=counts(1, 1))
    spend(conversation, "t3", NOON - timedelta(1), a=counts(100, 100))
    number, user = conversation.pk, f"user:{conversation.user_id}"
    before = {line[3]: 0 for line in ledger()}
    match how:
        case "the conversation":
            conversation.delete()
        case "its user":
            get_user_model()._default_manager.all().delete()
        case _:
            prune(stale_before=timezone.now() + timedelta(1), now=timezone.now())
    assert not ChatTurn.objects.exists()
    assert set(before) == {"a", "b"}
    assert sorted(ledger(), key=str) == [
        ("2030-03-31", user, number, "a", Used(2, 0, 11, 2, 6)),
        ("2030-03-31", user, number, "b", Used(1, 1)),
    ]
    unknown = ChatUsage.objects.get(model="b")
    assert (unknown.input_tokens, unknown.cached_tokens, unknown.output_tokens) == (None, None, None)
    assert len(ledger(TODAY - timedelta(1))) == 3


def test_a_conversation_without_turns_leaves_nothing(conversation: ChatConversation) -> None:
    conversation.delete()
    assert not ChatUsage.objects.exists()
