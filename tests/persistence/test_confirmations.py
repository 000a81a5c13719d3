"""Approvals: claimed once, run as stored, ended once; nothing of another's is there."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import DatabaseError
from django.utils import timezone
from testproject.stored import ANONYMOUS, BOLT, STRANGER, answer, closed, confirmation, opened, paused, waiting

from gm_chat.engine.events import Done, ToolResult
from gm_chat.engine.failures import TurnStopped
from gm_chat.engine.ports import ConfirmationLapsed, OpenedTurn, ResumedTurn, StoredMessage
from gm_chat.models import ChatConversation, ChatMessage, ChatPendingConfirmation, ChatTurn
from gm_chat.persistence import confirmations
from gm_chat.persistence.conversations import DjangoTurnStore
from gm_chat.persistence.rows import unpack_event
from gm_chat.plugin import Actor

pytestmark = pytest.mark.django_db(transaction=True)

TIMED_OUT = {"status": "cancelled", "reason": "confirmation_timed_out"}


async def claimed(store: DjangoTurnStore, id: str = "c1", *, lease_seconds: float = 60, **changes: Any) -> ResumedTurn:
    return await store.claim(confirmation(id, **changes), max_messages=20, lease_seconds=lease_seconds)


async def refused(store: DjangoTurnStore, id: str = "c1", **changes: Any) -> str:
    with pytest.raises(TurnStopped) as stopped:
        await claimed(store, id, **changes)
    return stopped.value.event.code


async def state(id: str = "c1") -> str:
    return (await ChatPendingConfirmation.objects.aget(confirmation_id=id)).state


class TestClaim:
    async def test_it_gives_back_all_that_the_turn_needs_to_go_on(self, store: DjangoTurnStore) -> None:
        await store.close_turn(closed("t0", await opened(store, "t0", "Before")))
        turn = await paused(store, text="Create a bolt")
        resumed = await claimed(store)
        assert turn.pending is not None
        assert (resumed.turn_id, resumed.conversation_id, resumed.text) == ("t1", turn.conversation_id, "Create a bolt")
        assert [message.content for message in resumed.history] == ["Before", "Hi", "Create a bolt", "One bolt."]
        assert resumed.history[-1].tool_calls[0]["id"] == "c1"
        assert resumed.events == turn.events
        assert (resumed.pending.id, resumed.pending.turn_id, resumed.pending.mutation) == ("c1", "t1", "createPart")
        assert resumed.pending.input == BOLT
        assert isinstance(resumed.pending.input["weight"], float)
        assert resumed.pending.progress == turn.pending.progress
        row = await ChatTurn.objects.aget(pk="t1")
        assert (row.state, row.cancel_requested) == ("running", False)
        assert row.alive_until is not None

    @pytest.mark.parametrize("window", [0, 1, 2])
    async def test_a_narrow_window_holds_the_waiting_turn_whole(self, store: DjangoTurnStore, window: int) -> None:
        await store.close_turn(closed("t0", await opened(store, "t0", "Before")))
        await paused(store)
        resumed = await store.claim(confirmation(), max_messages=window, lease_seconds=60)
        assert [message.content for message in resumed.history] == ["Create a bolt", "One bolt."]

    async def test_of_eight_at_once_one_wins(self, store: DjangoTurnStore) -> None:
        await paused(store)
        results = await asyncio.gather(*(claimed(store) for _ in range(8)), return_exceptions=True)
        assert sum(isinstance(result, ResumedTurn) for result in results) == 1
        codes = [result.event.code for result in results if isinstance(result, TurnStopped)]
        assert codes == ["confirmation_unavailable"] * 7

    @pytest.mark.parametrize("approved", [True, False])
    async def test_an_id_counts_once_whatever_the_word(self, store: DjangoTurnStore, approved: bool) -> None:
        await paused(store)
        resumed = await claimed(store, approved=approved)
        await store.settle(resumed, state="executed" if approved else "rejected", answer=answer())
        assert await refused(store) == await refused(store, approved=False) == "confirmation_unavailable"

    @pytest.mark.parametrize("id", ["c2", "", "C 1", "c1\x00", "\ud800", "c" * 5000])
    async def test_unknown_ids_are_all_alike(self, store: DjangoTurnStore, id: str) -> None:
        await paused(store)
        assert await refused(store, id) == "bad_event"

    @pytest.mark.parametrize("actor", [STRANGER, Actor(user_id="1"), Actor(), Actor(address="10.0.0.1")])
    async def test_anothers_confirmation_does_not_exist(self, store: DjangoTurnStore, actor: Actor) -> None:
        await paused(store)
        assert await refused(store, actor=actor) == "bad_event"
        assert not await store.pending(actor)
        assert not await store.expire(actor, now=timezone.now() + timedelta(days=1))
        assert await state() == "pending"

    @pytest.mark.parametrize(
        "change",
        [
            {"payload": '{"name":"Nut","price":"9.90","weight":1e+16}'},
            {"payload": "{}"},
            {"payload": "not JSON"},
            {"payload_sha256": "0" * 64},
        ],
    )
    async def test_what_is_not_what_was_shown_is_never_claimed(
        self, store: DjangoTurnStore, change: dict[str, str]
    ) -> None:
        await paused(store, expires_at=timezone.now() + timedelta(minutes=1))
        await ChatPendingConfirmation.objects.aupdate(**change)
        assert await refused(store) == "confirmation_unavailable"
        assert await state() == "pending"
        assert await store.pending(ANONYMOUS) == []
        (expired,) = await store.expire(ANONYMOUS, now=timezone.now() + timedelta(minutes=2))
        assert expired.pending.input == {}

    async def test_a_turn_that_waits_no_more_keeps_its_mutation_from_running(self, store: DjangoTurnStore) -> None:
        await paused(store)
        await ChatTurn.objects.aupdate(state="cancelled")
        assert await refused(store) == "confirmation_unavailable"

    async def test_after_its_time_it_is_for_somebody_to_end(self, store: DjangoTurnStore) -> None:
        await paused(store, expires_at=timezone.now())
        with pytest.raises(ConfirmationLapsed):
            await claimed(store)
        assert await state() == "pending"
        await store.expire(ANONYMOUS)
        assert await refused(store) == "confirmation_unavailable"

    async def test_a_claim_without_an_outcome_reads_unknown_and_is_final(self, store: DjangoTurnStore) -> None:
        await paused(store)
        await claimed(store, lease_seconds=0)
        assert await refused(store) == "confirmation_unavailable"
        assert await state() == "unknown"
        assert await refused(store) == "confirmation_unavailable"
        assert await store.expire(now=timezone.now() + timedelta(days=1)) == []

    async def test_looking_at_what_waits_stores_it_too(self, store: DjangoTurnStore) -> None:
        await paused(store)
        await claimed(store, lease_seconds=0)
        assert await store.pending(STRANGER) == []
        assert await state() == "claimed"
        assert await store.pending(ANONYMOUS) == []
        assert await state() == "unknown"

    async def test_it_counts_as_activity_of_the_conversation(self, store: DjangoTurnStore) -> None:
        await paused(store)
        await ChatConversation.objects.aupdate(updated=timezone.now() - timedelta(days=30))
        await claimed(store)
        assert (await ChatConversation.objects.aget()).updated > timezone.now() - timedelta(minutes=1)


class TestSettle:
    @pytest.mark.parametrize("outcome", ["executed", "failed", "rejected"])
    async def test_the_outcome_and_the_answer_are_there_at_once(self, store: DjangoTurnStore, outcome: Any) -> None:
        await paused(store)
        await store.settle(await claimed(store), state=outcome, answer=answer())
        row = await ChatPendingConfirmation.objects.aget()
        assert row.state == outcome
        assert row.resolved_at is not None
        question, _, last = [message async for message in ChatMessage.objects.order_by("pk")]
        assert (last.role, last.tool_call_id, last.parent_id) == ("tool", "c1", question.pk)
        assert last.tool_result == {"status": "executed", "data": {"id": 7}}

    async def test_the_turn_goes_on_to_its_end(self, store: DjangoTurnStore) -> None:
        turn = await paused(store)
        resumed = await claimed(store)
        await store.settle(resumed, state="executed", answer=answer())
        await store.close_turn(
            closed("t1", OpenedTurn(resumed.conversation_id, ()), events=(*turn.events, Done(turn.usage)))
        )
        again = await opened(store, "t2")
        assert [message.role for message in again.history] == ["user", "assistant", "tool", "assistant"]

    async def test_a_resumed_turn_may_wait_again(self, store: DjangoTurnStore) -> None:
        await paused(store)
        resumed = await claimed(store)
        await store.settle(resumed, state="executed", answer=answer())
        await store.close_turn(waiting("t1", "c2", OpenedTurn(resumed.conversation_id, ())))
        assert [pending.id for pending in await store.pending(ANONYMOUS)] == ["c2"]
        assert (await claimed(store, "c2")).pending.id == "c2"

    async def test_an_outcome_after_the_lease_is_better_than_none(self, store: DjangoTurnStore) -> None:
        await paused(store)
        resumed = await claimed(store, lease_seconds=0)
        await store.pending(ANONYMOUS)
        assert await state() == "unknown"
        await store.settle(resumed, state="executed", answer=answer())
        assert await state() == "executed"
        assert await ChatMessage.objects.filter(role="tool").acount() == 1

    async def test_a_second_outcome_changes_nothing(
        self, store: DjangoTurnStore, caplog: pytest.LogCaptureFixture
    ) -> None:
        await paused(store)
        resumed = await claimed(store)
        await store.settle(resumed, state="executed", answer=answer())
        with caplog.at_level(logging.WARNING, "gm_chat.persistence"):
            await store.settle(resumed, state="failed", answer=answer())
        assert await state() == "executed"
        assert await ChatMessage.objects.filter(role="tool").acount() == 1
        assert "'c1' was not claimed" in caplog.text


class TestExpire:
    async def test_it_ends_the_turn_and_tells_who_waited_for_what(self, store: DjangoTurnStore) -> None:
        turn = await paused(store, expires_at=timezone.now())
        (expired,) = await store.expire(ANONYMOUS)
        assert (expired.turn_id, expired.conversation_id) == ("t1", turn.conversation_id)
        assert (expired.actor, expired.text) == (ANONYMOUS, "Create a bolt")
        assert (expired.pending.id, expired.pending.input) == ("c1", BOLT)
        row = await ChatTurn.objects.aget()
        assert (row.state, row.active_key, row.error_code) == ("done", None, "")
        assert row.finished is not None
        assert turn.pending is not None
        assert tuple(map(unpack_event, row.events)) == (
            *turn.events,
            ToolResult("c1", "mutate", TIMED_OUT),
            Done(turn.pending.progress.usage),
        )
        *_, last = (await opened(store, "t2")).history
        assert last == StoredMessage(
            role="tool", tool_call_id="c1", tool_name="mutate", tool_result=TIMED_OUT,
            tool_args={"mutation": "createPart", "input": BOLT},
        )  # fmt: skip

    async def test_it_is_handed_out_once_however_many_ask(self, store: DjangoTurnStore) -> None:
        await paused(store, expires_at=timezone.now())
        stores = [DjangoTurnStore() for _ in range(8)]
        handed = await asyncio.gather(*(each.expire(ANONYMOUS if n % 2 else None) for n, each in enumerate(stores)))
        assert [len(expired) for expired in handed if expired] == [1]
        assert await ChatMessage.objects.filter(role="tool").acount() == 1
        assert len((await ChatTurn.objects.aget()).events) == 5

    async def test_a_claim_and_the_end_of_the_time_exclude_each_other(self, store: DjangoTurnStore) -> None:
        expires_at = timezone.now() + timedelta(minutes=1)
        for n in range(4):
            actor = Actor(session_key=f"s{n}")
            await paused(store, f"t{n}", f"c{n}", actor, expires_at=expires_at)
            won, expired = await asyncio.gather(
                store.claim(confirmation(f"c{n}", actor), max_messages=20, lease_seconds=60),
                store.expire(actor, now=expires_at),
                return_exceptions=True,
            )
            assert isinstance(won, ResumedTurn) != bool(expired)

    async def test_what_still_has_time_or_is_anothers_stays(self, store: DjangoTurnStore) -> None:
        await paused(store, "t1", "c1", ANONYMOUS)
        await paused(store, "t2", "c2", STRANGER, expires_at=timezone.now())
        assert await store.expire(ANONYMOUS) == []
        assert [expired.pending.id for expired in await store.expire()] == ["c2"]
        assert await state("c1") == "pending"

    async def test_everybodys_come_with_their_actors(self, store: DjangoTurnStore) -> None:
        user = await get_user_model()._default_manager.acreate(username="ada")
        past = timezone.now()
        await paused(store, "t1", "c1", Actor(user_id=str(user.pk), session_key="abc", user=user), expires_at=past)
        await paused(store, "t2", "c2", STRANGER, expires_at=past)
        first, second = await store.expire()
        assert (first.actor, first.actor.user) == (Actor(user_id=str(user.pk)), user)
        assert second.actor == STRANGER

    async def test_what_was_ended_before_a_failure_is_handed_out(
        self, store: DjangoTurnStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        for n in range(3):
            await paused(store, f"t{n}", f"c{n}", Actor(session_key=f"s{n}"), expires_at=timezone.now())
        real = confirmations.timed_out

        def fails_at_the_second(pending: Any) -> StoredMessage:
            if pending.id == "c1":
                raise DatabaseError("gone")
            return real(pending)

        monkeypatch.setattr(confirmations, "timed_out", fails_at_the_second)
        assert [expired.pending.id for expired in await store.expire()] == ["c0"]
        assert "left for the next time" in caplog.text
        with pytest.raises(DatabaseError):
            await store.expire()
        assert [await state(f"c{n}") for n in range(3)] == ["expired", "pending", "pending"]
        assert (await ChatTurn.objects.aget(pk="t1")).state == "paused"


async def test_what_waits_is_listed_oldest_first(store: DjangoTurnStore) -> None:
    turn = await paused(store, "t1", "c1")
    await paused(store, "t2", "c2", STRANGER)
    (mine,) = await store.pending(ANONYMOUS)
    assert turn.pending is not None
    assert (mine.id, mine.turn_id, mine.expires_at) == ("c1", "t1", turn.pending.expires_at)
    await ChatPendingConfirmation.objects.aupdate(expires_at=timezone.now())
    assert await store.pending(ANONYMOUS) == []
