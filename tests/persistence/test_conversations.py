from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from typing import TYPE_CHECKING, Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model
from django.db import IntegrityError, OperationalError, connection, transaction
from django.db.models import QuerySet

from gm_chat.engine.events import Done, Error, TextChunk
from gm_chat.engine.ports import ClosedTurn, OpenedTurn, StoredMessage, TurnRequest
from gm_chat.models import ChatConversation, ChatMessage, ChatTurn
from gm_chat.persistence import conversations
from gm_chat.persistence.conversations import DjangoTurnStore
from gm_chat.persistence.rows import unpack_event
from gm_chat.persistence.threads import inline_database
from gm_chat.plugin import Actor, TurnOutcome
from gm_chat.providers.base import TokenUsage

if TYPE_CHECKING:
    from collections.abc import Iterator

ANONYMOUS = Actor(session_key="s" * 32)
CALL: dict[str, Any] = {"id": "c1", "name": "query", "args": {"manager": "PartManager"}}


def request(text: str = "Hello", actor: Actor = ANONYMOUS) -> TurnRequest:
    return TurnRequest(actor=actor, text=text, transport="http")


def closed(turn_id: str, opened: OpenedTurn, *messages: StoredMessage, **changes: Any) -> ClosedTurn:
    usage = changes.pop("usage", TokenUsage(10, 5))
    values: dict[str, Any] = {
        "turn_id": turn_id,
        "conversation_id": opened.conversation_id,
        "messages": messages or (StoredMessage(role="assistant", content="Hi"),),
        "outcome": TurnOutcome("done", input_tokens=usage.input_tokens, output_tokens=usage.output_tokens),
        "usage": usage,
        "events": (TextChunk("Hi"), Done(usage)),
    }
    return ClosedTurn(**values | changes)


def tool_turn(results: int = 1) -> tuple[StoredMessage, ...]:
    """Messages of a turn with one batch of calls and an answer in words."""
    calls = tuple(CALL | {"id": f"c{index}"} for index in range(results))
    return (
        StoredMessage(role="assistant", content="Let me look.", tool_calls=calls, provider="openai", metadata={"s": 1}),
        *(
            StoredMessage(
                role="tool",
                content='{"data": []}',
                tool_call_id=call["id"],
                tool_name="query",
                tool_args=call["args"],
                tool_result={"data": [], "total_count": 0},
            )
            for call in calls
        ),
        StoredMessage(role="assistant", content="None."),
    )


@pytest.fixture
def store() -> DjangoTurnStore:
    return DjangoTurnStore()


@pytest.mark.django_db(transaction=True)
class TestTurn:
    async def test_first_turn_creates_the_conversation_of_its_session(self, store: DjangoTurnStore) -> None:
        opened = await store.open_turn(request("Hello"), "t1", max_messages=20)
        conversation = await ChatConversation.objects.aget()
        assert opened == OpenedTurn(str(conversation.pk), ())
        assert (conversation.user_id, conversation.session_key, conversation.is_current) == (None, "s" * 32, True)
        turn = await ChatTurn.objects.aget()
        assert (turn.pk, turn.state, turn.events, turn.usage) == ("t1", "running", [], None)
        message = await ChatMessage.objects.aget()
        assert (message.role, message.content, message.turn_id, message.parent_id) == ("user", "Hello", "t1", None)

    async def test_history_comes_back_as_it_was_stored(self, store: DjangoTurnStore) -> None:
        opened = await store.open_turn(request("First"), "t1", max_messages=20)
        await store.close_turn(closed("t1", opened, *tool_turn(2)))
        again = await store.open_turn(request("Second"), "t2", max_messages=20)
        assert again.conversation_id == opened.conversation_id
        assert again.history == (StoredMessage(role="user", content="First"), *tool_turn(2))

    async def test_the_end_of_a_turn_is_recorded_with_events_that_can_be_replayed(self, store: DjangoTurnStore) -> None:
        opened = await store.open_turn(request(), "t1", max_messages=20)
        turn = closed(
            "t1",
            opened,
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

    async def test_usage_that_was_not_reported_is_null(self, store: DjangoTurnStore) -> None:
        opened = await store.open_turn(request(), "t1", max_messages=20)
        await store.close_turn(closed("t1", opened, usage=TokenUsage(reported=False)))
        assert (await ChatTurn.objects.aget()).usage is None

    async def test_messages_form_a_tree_of_turns(self, store: DjangoTurnStore) -> None:
        for turn_id in ("t1", "t2"):
            opened = await store.open_turn(request(turn_id), turn_id, max_messages=20)
            await store.close_turn(closed(turn_id, opened, *tool_turn()))
        rows = [row async for row in ChatMessage.objects.order_by("pk").values_list("pk", "parent_id")]
        (q1, none), *answers1, (q2, before), _a, _b, _c = rows
        assert none is None
        assert [parent for _, parent in answers1] == [q1] * 3
        assert before == answers1[-1][0]
        assert [parent for _, parent in rows[-3:]] == [q2] * 3

    async def test_a_turn_that_left_no_message_is_closed_too(self, store: DjangoTurnStore) -> None:
        opened = await store.open_turn(request(), "t1", max_messages=20)
        await store.close_turn(
            ClosedTurn(
                turn_id="t1",
                conversation_id=opened.conversation_id,
                messages=(),
                outcome=TurnOutcome("cancelled"),
                usage=TokenUsage(),
                events=(),
            )
        )
        assert (await ChatTurn.objects.aget()).state == "cancelled"
        assert await ChatMessage.objects.acount() == 1

    async def test_a_second_end_changes_nothing(self, store: DjangoTurnStore, caplog: pytest.LogCaptureFixture) -> None:
        opened = await store.open_turn(request(), "t1", max_messages=20)
        await store.close_turn(closed("t1", opened))
        with caplog.at_level(logging.WARNING, "gm_chat.persistence"):
            await store.close_turn(closed("t1", opened, outcome=TurnOutcome("failed")))
        assert (await ChatTurn.objects.aget()).state == "done"
        assert await ChatMessage.objects.acount() == 2
        assert "'t1' was not running" in caplog.text

    async def test_unsafe_text_is_made_safe_everywhere(self, store: DjangoTurnStore) -> None:
        nasty = "a\x00b\ud800c 😀 \u2028 שלום"
        opened = await store.open_turn(request(nasty), "t1", max_messages=20)
        call = {"id": nasty, "name": nasty, "args": {nasty: nasty}}
        answer = StoredMessage(role="assistant", content=nasty, tool_calls=[call], metadata={"x": nasty})
        result = StoredMessage(
            role="tool", content=nasty, tool_call_id=nasty, tool_name=nasty, tool_result={"n": float("nan"), "t": nasty}
        )
        await store.close_turn(closed("t1", opened, answer, result, events=(TextChunk(nasty), Done(TokenUsage()))))
        history = (await store.open_turn(request(), "t2", max_messages=20)).history
        clean = "a\ufffdb\ufffdc 😀 \u2028 שלום"
        assert [message.content for message in history] == [clean] * 3
        assert history[1].tool_calls == ({"id": clean, "name": clean, "args": {clean: clean}},)
        assert history[2].tool_result == {"n": None, "t": clean}


@pytest.mark.django_db(transaction=True)
class TestOwner:
    async def test_a_user_and_a_session_have_conversations_of_their_own(self, store: DjangoTurnStore) -> None:
        user = await get_user_model()._default_manager.acreate(username="ada")
        logged_in = Actor(user_id=str(user.pk), session_key="s" * 32, user=user)
        mine = await store.open_turn(request(actor=logged_in), "t1", max_messages=20)
        other = await store.open_turn(request(), "t2", max_messages=20)
        assert mine.conversation_id != other.conversation_id
        conversation = await ChatConversation.objects.aget(user=user)
        assert str(conversation.pk) == mine.conversation_id
        assert (conversation.user_id, conversation.session_key) == (user.pk, None)

    async def test_a_long_session_key_is_stored_as_its_digest(self, store: DjangoTurnStore) -> None:
        key = "k" * 65
        first = await store.open_turn(request(actor=Actor(session_key=key)), "t1", max_messages=20)
        second = await store.open_turn(request(actor=Actor(session_key=key)), "t2", max_messages=20)
        assert first.conversation_id == second.conversation_id
        assert (await ChatConversation.objects.aget()).session_key == hashlib.sha256(key.encode()).hexdigest()

    async def test_an_actor_without_user_and_session_leaves_nothing_behind(
        self, store: DjangoTurnStore, statements: list[str]
    ) -> None:
        opened = await store.open_turn(request(actor=Actor(address="10.0.0.1")), "t1", max_messages=20)
        await store.close_turn(closed("t1", opened))
        assert opened == OpenedTurn(None, ())
        assert statements == []

    async def test_a_retired_conversation_is_not_continued(self, store: DjangoTurnStore) -> None:
        await store.open_turn(request(), "t1", max_messages=20)
        await ChatConversation.objects.aupdate(current_key=None)
        assert (await store.open_turn(request(), "t2", max_messages=20)).history == ()
        assert sorted([c.is_current async for c in ChatConversation.objects.all()]) == [False, True]

    async def test_a_user_who_is_gone_is_an_error_and_not_a_retry(self, store: DjangoTurnStore) -> None:
        with pytest.raises(IntegrityError):
            await store.open_turn(request(actor=Actor(user_id="4711")), "t1", max_messages=20)
        assert not await ChatConversation.objects.aexists()


@pytest.mark.django_db(transaction=True)
class TestWindow:
    async def _turns(self, store: DjangoTurnStore, *sizes: int) -> None:
        for number, size in enumerate(sizes):
            opened = await store.open_turn(request(f"q{number}"), f"t{number}", max_messages=0)
            await store.close_turn(closed(f"t{number}", opened, *tool_turn(size)))

    async def test_it_starts_at_a_user_message_and_cuts_no_tool_group(self, store: DjangoTurnStore) -> None:
        await self._turns(store, 3, 3)  # 6 rows each
        for limit in range(7, 12):
            history = (await store.open_turn(request(actor=ANONYMOUS), f"x{limit}", max_messages=limit)).history
            await ChatMessage.objects.filter(turn_id=f"x{limit}").adelete()
            assert [message.role for message in history] == ["user", "assistant", "tool", "tool", "tool", "assistant"]
            assert history[0].content == "q1"

    async def test_a_turn_longer_than_the_window_is_kept_whole(self, store: DjangoTurnStore) -> None:
        await self._turns(store, 1, 9)
        history = (await store.open_turn(request(), "x", max_messages=5)).history
        assert history[0].content == "q1"
        assert len(history) == 12

    async def test_no_history_when_none_is_wanted(self, store: DjangoTurnStore) -> None:
        await self._turns(store, 1)
        assert (await store.open_turn(request(), "x", max_messages=0)).history == ()

    async def test_rows_without_any_user_message_are_no_window(self, store: DjangoTurnStore) -> None:
        await self._turns(store, 1)
        await ChatMessage.objects.filter(role="user").adelete()
        assert (await store.open_turn(request(), "x", max_messages=20)).history == ()

    async def test_a_conversation_that_lost_its_messages_goes_on(self, store: DjangoTurnStore) -> None:
        await self._turns(store, 1)
        await ChatMessage.objects.all().adelete()
        opened = await store.open_turn(request(), "x", max_messages=20)
        assert opened == OpenedTurn(str((await ChatConversation.objects.aget()).pk), ())


@pytest.mark.django_db(transaction=True)
class TestRaces:
    async def test_first_messages_at_once_make_one_conversation(self, store: DjangoTurnStore) -> None:
        opened = await asyncio.gather(*(store.open_turn(request(), f"t{n}", max_messages=20) for n in range(8)))
        assert len({turn.conversation_id for turn in opened}) == 1
        assert await ChatConversation.objects.acount() == 1
        assert await ChatMessage.objects.acount() == 8

    async def test_the_loser_of_a_race_joins_the_winners_conversation(
        self, store: DjangoTurnStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The other first message commits between our look and our insert: only databases with row locks allow it."""
        winner = await store.open_turn(request("winner"), "t1", max_messages=20)
        real, calls = QuerySet.update, []

        def blind_at_first(queryset: QuerySet[Any], **values: Any) -> int:
            calls.append(queryset)
            return 0 if len(calls) == 1 else real(queryset, **values)

        monkeypatch.setattr(QuerySet, "update", blind_at_first)
        loser = await store.open_turn(request("loser"), "t2", max_messages=20)
        assert loser.conversation_id == winner.conversation_id
        assert [message.content for message in loser.history] == ["winner"]


@pytest.mark.django_db(transaction=True)
class TestStatements:
    async def test_a_text_only_turn(self, store: DjangoTurnStore, statements: list[str]) -> None:
        opened = await store.open_turn(request(), "t1", max_messages=20)
        await store.close_turn(closed("t1", opened))
        assert summary(statements) == [
            "UPDATE conversation", "INSERT conversation", "INSERT turn", "INSERT message",
            "UPDATE turn", "SELECT message", "INSERT message",
        ]  # fmt: skip

    async def test_a_later_turn_with_tools_costs_no_more(self, store: DjangoTurnStore, statements: list[str]) -> None:
        for turn_id in ("t1", "t2"):
            statements.clear()
            opened = await store.open_turn(request(), turn_id, max_messages=20)
            await store.close_turn(closed(turn_id, opened, *tool_turn(5)))
        assert summary(statements) == [
            "UPDATE conversation", "SELECT message", "INSERT turn", "INSERT message",
            "UPDATE turn", "SELECT message", "INSERT message",
        ]  # fmt: skip


def summary(statements: list[str]) -> list[str]:
    """``INSERT INTO "gm_chat_chatturn" ...`` -> ``INSERT turn``."""
    table = re.compile(r"gm_chat_chat(\w+)")
    return [f"{sql.split(None, 1)[0]} {table.findall(sql)[0]}" for sql in statements]


@pytest.mark.django_db(transaction=True)
class TestMissingTables:
    @pytest.fixture
    def without_tables(self) -> Iterator[None]:
        with connection.schema_editor() as editor:
            editor.alter_db_table(ChatConversation, "gm_chat_chatconversation", "away")
        yield
        with connection.schema_editor() as editor:
            editor.alter_db_table(ChatConversation, "away", "gm_chat_chatconversation")

    def test_turns_run_without_persistence_and_the_log_says_so_once(
        self, store: DjangoTurnStore, without_tables: None, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.WARNING, "gm_chat.persistence"), inline_database(), transaction.atomic():
            for turn_id in ("t1", "t2"):
                opened = async_to_sync(store.open_turn)(request(), turn_id, max_messages=20)
                assert opened == OpenedTurn(None, ())
                async_to_sync(store.close_turn)(closed(turn_id, opened))
            # The transaction around the turn is still usable.
            get_user_model()._default_manager.create(username="ada")
        assert get_user_model()._default_manager.filter(username="ada").exists()
        assert len(caplog.records) == 1
        assert "lacks gm_chat_chatconversation" in caplog.text
        assert "manage.py migrate" in caplog.text

    def test_tables_lost_during_a_turn_do_not_break_its_end(self, store: DjangoTurnStore, without_tables: None) -> None:
        with inline_database():
            async_to_sync(store.close_turn)(closed("t1", OpenedTurn("1", ())))

    async def test_any_other_database_error_is_raised(
        self, store: DjangoTurnStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def locked(*_args: Any) -> None:
            raise OperationalError("database is locked")

        monkeypatch.setattr(conversations, "_open", locked)
        with pytest.raises(OperationalError, match="locked"):
            await store.open_turn(request(), "t1", max_messages=20)
