"""What a turn leaves: its outcome, its events, its messages, and what it waits for."""

from __future__ import annotations

import logging

import pytest
from testproject.stored import ANONYMOUS, BOLT, PREVIEW, closed, opened, paused, tool_turn

from gm_chat.engine.events import Done, Error, TextChunk
from gm_chat.engine.ports import ClosedTurn, StoredMessage
from gm_chat.models import ChatConversation, ChatMessage, ChatPendingConfirmation, ChatTurn
from gm_chat.persistence.conversations import DjangoTurnStore
from gm_chat.persistence.rows import unpack_event
from gm_chat.plugin import TurnOutcome
from gm_chat.providers.base import TokenUsage

pytestmark = pytest.mark.django_db(transaction=True)


async def test_the_end_of_a_turn_is_recorded_with_events_that_can_be_replayed(store: DjangoTurnStore) -> None:
    turn = closed(
        "t1",
        await opened(store, "t1"),
        outcome=TurnOutcome("failed", "rate_limited"),
        usage=TokenUsage(10, 5, cached_tokens=3),
        events=(TextChunk("Hi"), Error("rate_limited", "Later.", {"retry_after_seconds": 9})),
    )
    await store.close_turn(turn)
    row = await ChatTurn.objects.aget()
    assert (row.state, row.error_code) == ("failed", "rate_limited")
    assert row.finished is not None
    assert row.usage == {
        "input_tokens": 10, "output_tokens": 5, "cached_tokens": 3, "thinking_tokens": 0, "reported": True,
    }  # fmt: skip
    assert tuple(unpack_event(event) for event in row.events) == turn.events


async def test_usage_that_was_not_reported_is_null(store: DjangoTurnStore) -> None:
    await store.close_turn(closed("t1", await opened(store, "t1"), usage=TokenUsage(reported=False)))
    assert (await ChatTurn.objects.aget()).usage is None


async def test_messages_form_a_tree_of_turns(store: DjangoTurnStore) -> None:
    for turn_id in ("t1", "t2"):
        await store.close_turn(closed(turn_id, await opened(store, turn_id, turn_id), *tool_turn()))
    rows = [row async for row in ChatMessage.objects.order_by("pk").values_list("pk", "parent_id")]
    (q1, none), *answers1, (q2, before), _a, _b, _c = rows
    assert none is None
    assert [parent for _, parent in answers1] == [q1] * 3
    assert before == answers1[-1][0]
    assert [parent for _, parent in rows[-3:]] == [q2] * 3


async def test_a_question_that_was_deleted_meanwhile_leaves_its_answers_without_a_parent(
    store: DjangoTurnStore,
) -> None:
    turn = await opened(store, "t1")
    await ChatMessage.objects.all().adelete()
    await store.close_turn(closed("t1", turn))
    assert (await ChatTurn.objects.aget()).state == "done"
    (answer,) = [row async for row in ChatMessage.objects.all()]
    assert (answer.content, answer.parent_id) == ("Hi", None)


async def test_another_process_finds_the_question_itself(store: DjangoTurnStore) -> None:
    turn = await opened(store, "t1")
    await DjangoTurnStore().close_turn(closed("t1", turn))
    rows = [row async for row in ChatMessage.objects.order_by("pk").values_list("pk", "parent_id")]
    assert rows == [(rows[0][0], None), (rows[1][0], rows[0][0])]


async def test_a_turn_that_left_no_message_is_closed_too(store: DjangoTurnStore) -> None:
    turn = await opened(store, "t1")
    await store.close_turn(
        ClosedTurn(
            turn_id="t1",
            conversation_id=turn.conversation_id,
            messages=(),
            outcome=TurnOutcome("cancelled"),
            usage=TokenUsage(),
            events=(),
        )
    )
    assert (await ChatTurn.objects.aget()).state == "cancelled"
    assert await ChatMessage.objects.acount() == 1


async def test_a_second_end_changes_nothing(store: DjangoTurnStore, caplog: pytest.LogCaptureFixture) -> None:
    turn = await opened(store, "t1")
    await store.close_turn(closed("t1", turn))
    with caplog.at_level(logging.WARNING, "gm_chat.persistence"):
        await store.close_turn(closed("t1", turn, outcome=TurnOutcome("failed")))
    assert (await ChatTurn.objects.aget()).state == "done"
    assert await ChatMessage.objects.acount() == 2
    assert "'t1' was not running" in caplog.text


async def test_an_end_after_the_conversation_is_gone_is_only_told(
    store: DjangoTurnStore, caplog: pytest.LogCaptureFixture
) -> None:
    turn = await opened(store, "t1")
    await ChatConversation.objects.all().adelete()
    await store.close_turn(closed("t1", turn))
    assert "'t1' was not running" in caplog.text


async def test_unsafe_text_is_made_safe_everywhere(store: DjangoTurnStore) -> None:
    nasty = "a\x00b\ud800c 😀 \u2028 שלום"
    turn = await opened(store, "t1", nasty)
    call = {"id": nasty, "name": nasty, "args": {nasty: nasty}}
    said = StoredMessage(role="assistant", content=nasty, tool_calls=[call], metadata={"x": nasty})
    result = StoredMessage(
        role="tool", content=nasty, tool_call_id=nasty, tool_name=nasty, tool_result={"n": float("nan"), "t": nasty}
    )
    await store.close_turn(closed("t1", turn, said, result, events=(TextChunk(nasty), Done(TokenUsage()))))
    history = (await opened(store, "t2")).history
    clean = "a\ufffdb\ufffdc 😀 \u2028 שלום"
    assert [message.content for message in history] == [clean] * 3
    assert history[1].tool_calls == ({"id": clean, "name": clean, "args": {clean: clean}},)
    assert history[2].tool_result == {"n": None, "t": clean}


async def test_a_pause_keeps_the_turn_open_and_what_it_waits_for(store: DjangoTurnStore) -> None:
    turn = await paused(store)
    assert turn.pending is not None
    row = await ChatTurn.objects.aget()
    assert (row.state, row.finished, row.alive_until) == ("paused", None, None)
    assert row.active_key == row.owner_key
    assert tuple(unpack_event(event) for event in row.events) == turn.events
    waits = await ChatPendingConfirmation.objects.aget()
    assert (waits.confirmation_id, waits.mutation_name, waits.state) == ("c1", "createPart", "pending")
    assert (waits.owner_key, waits.turn_id, waits.expires_at) == (row.owner_key, "t1", turn.pending.expires_at)
    assert waits.payload == '{"name":"Bolt","price":"9.90","weight":1e+16}'
    assert await store.pending(ANONYMOUS) == [type(turn.pending)(
        id="c1", mutation="createPart", input=BOLT, expires_at=turn.pending.expires_at,
        progress=turn.pending.progress, turn_id="t1", preview=PREVIEW,
    )]  # fmt: skip
