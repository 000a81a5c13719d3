"""Accepting messages: whose conversation, which window, and what is refused."""

from __future__ import annotations

import asyncio
import hashlib
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import IntegrityError
from django.utils import timezone
from testproject.stored import (
    ANONYMOUS,
    STRANGER,
    closed,
    confirmation,
    opened,
    paused,
    request,
)

from gm_chat.engine.failures import TurnStopped
from gm_chat.engine.ports import ConfirmationLapsed, JoinedTurn, OpenedTurn
from gm_chat.models import ChatConversation, ChatMessage, ChatPendingConfirmation, ChatTurn
from gm_chat.persistence import opening
from gm_chat.persistence.conversations import DjangoTurnStore
from gm_chat.persistence.prepared import update
from gm_chat.plugin import Actor

pytestmark = pytest.mark.django_db(transaction=True)


async def refused(store: DjangoTurnStore, **changes: Any) -> str:
    """The code with which the store refuses a message."""
    with pytest.raises(TurnStopped) as stopped:
        await store.open_turn(request(**changes), "refused", max_messages=20)
    assert not await ChatTurn.objects.filter(pk="refused").aexists()
    return stopped.value.event.code


class TestOwner:
    async def test_the_first_message_creates_the_conversation_of_its_session(self, store: DjangoTurnStore) -> None:
        turn = await opened(store, "t1", "Hello")
        conversation = await ChatConversation.objects.aget()
        assert turn == OpenedTurn(str(conversation.pk), ())
        assert (conversation.user_id, conversation.session_key, conversation.is_current) == (None, "s" * 32, True)
        row = await ChatTurn.objects.aget()
        assert (row.pk, row.state, row.events, row.usage) == ("t1", "running", [], None)
        assert row.active_key == row.owner_key == conversation.current_key
        assert row.alive_until is not None
        assert timedelta(seconds=14) < row.alive_until - timezone.now() <= timedelta(seconds=15)
        message = await ChatMessage.objects.aget()
        assert (message.role, message.content, message.turn_id, message.parent_id) == ("user", "Hello", "t1", None)

    async def test_a_user_and_a_session_have_conversations_of_their_own(self, store: DjangoTurnStore) -> None:
        user = await get_user_model()._default_manager.acreate(username="ada")
        mine = await opened(store, "t1", actor=Actor(user_id=str(user.pk), session_key="s" * 32, user=user))
        other = await opened(store, "t2")
        assert mine.conversation_id != other.conversation_id
        conversation = await ChatConversation.objects.aget(user=user)
        assert str(conversation.pk) == mine.conversation_id
        assert (conversation.user_id, conversation.session_key) == (user.pk, None)

    async def test_a_long_session_key_is_stored_as_its_digest(self, store: DjangoTurnStore) -> None:
        key = "k" * 65
        first = await opened(store, "t1", actor=Actor(session_key=key))
        await store.close_turn(closed("t1", first))
        second = await opened(store, "t2", actor=Actor(session_key=key))
        assert first.conversation_id == second.conversation_id
        assert (await ChatConversation.objects.aget()).session_key == hashlib.sha256(key.encode()).hexdigest()

    async def test_a_retired_conversation_is_not_continued(self, store: DjangoTurnStore) -> None:
        await store.close_turn(closed("t1", await opened(store, "t1")))
        await ChatConversation.objects.aupdate(current_key=None)
        assert (await opened(store, "t2")).history == ()
        assert sorted([c.is_current async for c in ChatConversation.objects.all()]) == [False, True]

    async def test_a_user_who_is_gone_is_an_error_and_not_a_retry(self, store: DjangoTurnStore) -> None:
        with pytest.raises(IntegrityError):
            await opened(store, "t1", actor=Actor(user_id="4711"))
        assert not await ChatConversation.objects.aexists()


class TestOneTurnAtATime:
    async def test_a_second_message_waits_for_the_end_of_the_first(self, store: DjangoTurnStore) -> None:
        first = await opened(store, "t1")
        assert await refused(store, text="Second") == "turn_in_progress"
        assert await ChatMessage.objects.acount() == 1
        await opened(store, "elsewhere", actor=STRANGER)
        await store.close_turn(closed("t1", first))
        assert [m.content for m in (await opened(store, "t2")).history] == ["Hello", "Hi"]

    @pytest.mark.parametrize("state", ["done", "failed", "cancelled"])
    async def test_every_end_makes_way(self, store: DjangoTurnStore, state: Any) -> None:
        first = await opened(store, "t1")
        ended = closed("t1", first)
        await store.close_turn(closed("t1", first, outcome=type(ended.outcome)(state)))
        assert (await ChatTurn.objects.aget()).active_key is None
        await opened(store, "t2")

    async def test_a_turn_whose_process_died_makes_way_as_interrupted(self, store: DjangoTurnStore) -> None:
        await opened(DjangoTurnStore(alive_seconds=0), "t1", "Lost")
        again = await opened(store, "t2")
        assert [message.content for message in again.history] == ["Lost"]
        dead = await ChatTurn.objects.aget(pk="t1")
        assert (dead.state, dead.error_code, dead.active_key) == ("failed", "interrupted", None)
        assert dead.finished is not None
        assert [event["kind"] for event in dead.events] == ["Error"]

    async def test_a_turn_that_waits_for_approval_is_in_the_way(self, store: DjangoTurnStore) -> None:
        await paused(store)
        assert await refused(store) == "confirmation_pending"

    async def test_the_end_of_its_time_is_told_apart_until_it_is_ended(self, store: DjangoTurnStore) -> None:
        await paused(store, expires_at=timezone.now())
        with pytest.raises(ConfirmationLapsed):
            await opened(store, "t2")
        await store.expire(ANONYMOUS)
        await opened(store, "t2")

    async def test_a_turn_with_nothing_to_wait_for_is_not_in_the_way_for_ever(self, store: DjangoTurnStore) -> None:
        await paused(store)
        await ChatPendingConfirmation.objects.all().adelete()
        await opened(store, "t2")
        assert (await ChatTurn.objects.aget(pk="t1")).error_code == "interrupted"

    async def test_a_resumed_turn_is_in_the_way_again(self, store: DjangoTurnStore) -> None:
        await paused(store)
        await store.claim(confirmation(), max_messages=20, lease_seconds=60)
        assert await refused(store) == "turn_in_progress"


class TestKeys:
    async def test_a_repeated_request_joins_its_turn_running_paused_or_ended(self, store: DjangoTurnStore) -> None:
        again = request("Hello", key="k1")
        first = await store.open_turn(again, "t1", max_messages=20)
        assert isinstance(first, OpenedTurn)
        assert await store.open_turn(again, "t2", max_messages=20) == JoinedTurn("t1")
        await store.close_turn(closed("t1", first))
        assert await store.open_turn(again, "t2", max_messages=20) == JoinedTurn("t1")
        await paused(store, "t3")
        assert await store.open_turn(again, "t2", max_messages=20) == JoinedTurn("t1")
        assert await ChatTurn.objects.acount() == 2

    async def test_another_text_under_the_same_key_is_refused(self, store: DjangoTurnStore) -> None:
        await store.open_turn(request("Hello", key="k1"), "t1", max_messages=20)
        assert await refused(store, text="Hello!", key="k1") == "idempotency_conflict"

    async def test_keys_are_the_actors_own_and_tell_letters_apart(self, store: DjangoTurnStore) -> None:
        first = await store.open_turn(request("Hello", key="k1"), "t1", max_messages=20)
        assert isinstance(first, OpenedTurn)
        await store.close_turn(closed("t1", first))
        for turn_id, actor, key in (("t2", STRANGER, "k1"), ("t3", ANONYMOUS, "K1")):
            turn = await store.open_turn(request("Other", actor, key), turn_id, max_messages=20)
            assert isinstance(turn, OpenedTurn)
            await store.close_turn(closed(turn_id, turn))

    async def test_any_text_is_a_key(self, store: DjangoTurnStore) -> None:
        for key in ("k\x00\ud800" * 1000, ""):
            turn = await store.open_turn(request("\ud800", key=key), f"t{len(key)}", max_messages=20)
            assert isinstance(turn, OpenedTurn)
            await store.close_turn(closed(f"t{len(key)}", turn))
            assert await store.open_turn(request("\ud800", key=key), "t", max_messages=20) == JoinedTurn(f"t{len(key)}")

    async def test_turns_without_a_key_do_not_join(self, store: DjangoTurnStore) -> None:
        for turn_id in ("t1", "t2"):
            await store.close_turn(closed(turn_id, await opened(store, turn_id)))
        assert await ChatTurn.objects.filter(request_key=None).acount() == 2


class TestRaces:
    async def test_of_first_messages_at_once_one_is_accepted(self, store: DjangoTurnStore) -> None:
        results = await asyncio.gather(
            *(store.open_turn(request(), f"t{n}", max_messages=20) for n in range(8)), return_exceptions=True
        )
        refusals = [result.event.code for result in results if isinstance(result, TurnStopped)]
        assert refusals == ["turn_in_progress"] * 7
        assert await ChatConversation.objects.acount() == await ChatMessage.objects.acount() == 1

    async def test_the_loser_of_a_race_joins_the_winners_conversation(
        self, store: DjangoTurnStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The other first message commits between our look and our insert: only databases with row locks allow it."""
        winner = await opened(store, "t1", "winner")
        await store.close_turn(closed("t1", winner))
        looks: list[Any] = []

        def blind_at_first(*args: Any, **where: Any) -> int:
            looks.append(where)
            return 0 if len(looks) == 1 else update(*args, **where)

        monkeypatch.setattr(opening, "update", blind_at_first)
        loser = await opened(store, "t2", "loser")
        assert loser.conversation_id == winner.conversation_id
        assert [message.content for message in loser.history] == ["winner", "Hi"]
        assert len(looks) == 2
