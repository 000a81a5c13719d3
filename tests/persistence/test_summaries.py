"""Which messages a summary covers, what it is made of, and that a turn pays for it only when one is due."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection
from testproject.stored import ANONYMOUS, closed, confirmation, opened, tool_turn, waiting

from gm_chat.engine.messages import assistant_row
from gm_chat.engine.past import PastMessage, SummarySource
from gm_chat.engine.ports import OpenedTurn, StoredMessage
from gm_chat.models import ChatConversation, ChatMessage, ChatTurn
from gm_chat.persistence import summaries
from gm_chat.persistence.conversations import DjangoTurnStore
from gm_chat.persistence.owner import owner_of
from gm_chat.persistence.rows import message_values
from gm_chat.persistence.threads import inline_database, run_db

pytestmark = pytest.mark.django_db(transaction=True)

Exchange = tuple[StoredMessage, StoredMessage]


@pytest.fixture
def store() -> DjangoTurnStore:
    return DjangoTurnStore(summarize_after=10)


def exchange(number: int) -> Exchange:
    return (
        StoredMessage(role="user", content=f"question {number}"),
        assistant_row(f"answer {number}", (), provider="acme", metadata={}),
    )


async def stored(exchanges: int, *more: StoredMessage) -> list[int]:
    """Make a conversation of the anonymous actor's; return its messages' ids, oldest first."""
    rows = [row for number in range(exchanges) for row in exchange(number)] + list(more)
    return await run_db(_store, rows)


def _store(rows: list[StoredMessage]) -> list[int]:
    owner = owner_of(ANONYMOUS)
    assert owner is not None
    conversation, _ = ChatConversation.objects.get_or_create(
        current_key=owner.key, defaults={"session_key": owner.session_key, "updated": "2026-01-01T00:00:00Z"}
    )
    turn = ChatTurn.objects.create(pk=f"t{ChatTurn.objects.count()}-seed", conversation=conversation, state="done")
    ChatMessage.objects.bulk_create(
        [ChatMessage(conversation=conversation, turn=turn, **message_values(row)) for row in rows]
    )
    return list(ChatMessage.objects.order_by("pk").values_list("pk", flat=True))


async def conversation() -> ChatConversation:
    return await run_db(ChatConversation.objects.get)


async def ask(store: DjangoTurnStore, turn_id: str = "t", *, window: int = 20) -> OpenedTurn:
    return await opened(store, turn_id, max_messages=window)


def texts(source: SummarySource) -> list[str]:
    return [message.text for message in source.messages]


# --- when, and of what --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("exchanges", "due"), [(0, False), (10, False), (11, True)])
async def test_it_is_due_when_a_message_lies_before_the_window(
    store: DjangoTurnStore, exchanges: int, due: bool
) -> None:
    await stored(exchanges)
    turn = await ask(store)
    assert turn.summary == ""
    assert (turn.due is not None) is due


async def test_it_covers_all_but_the_newest_messages_and_is_shown_from_then_on(store: DjangoTurnStore) -> None:
    ids = await stored(15)
    turn = await ask(store)
    assert turn.due is not None
    source = await turn.due.read()
    assert texts(source) == [text for number in range(10) for text in (f"question {number}", f"answer {number}")]
    assert (source.previous, source.through, source.complete) == ("", ids[19], True)
    await turn.due.save(source, "They said much.")
    await store.close_turn(closed("t", turn))

    kept = await conversation()
    assert (kept.summary_text, kept.summarized_through_id) == ("They said much.", ids[19])
    assert kept.summary_updated_at is not None
    turn = await ask(store, "t2")
    assert (turn.summary, turn.due) == ("They said much.", None)
    assert turn.history[-1].content == "Hi"


async def test_the_next_one_takes_in_only_what_is_new(store: DjangoTurnStore) -> None:
    await stored(15)
    turn = await ask(store)
    assert turn.due is not None
    await turn.due.save(await turn.due.read(), "First.")
    await store.close_turn(closed("t", turn))
    for number in range(4):  # with the turn above, ten more messages: 22 are not covered now
        turn = await ask(store, f"t{number}")
        assert turn.due is None
        assert turn.summary == "First."
        await store.close_turn(closed(f"t{number}", turn))
    await stored(1)
    turn = await ask(store, "last")
    assert turn.due is not None
    source = await turn.due.read()
    assert source.previous == "First."
    assert texts(source)[:2] == ["question 10", "answer 10"]
    assert texts(source)[-1] == "Hi"
    assert len(source.messages) == 12


async def test_another_try_waits_for_ten_messages(store: DjangoTurnStore) -> None:
    await stored(15)
    turn = await ask(store)
    assert turn.due is not None
    await turn.due.read()  # and nothing comes of it
    await store.close_turn(closed("t", turn))
    due = []
    for number in range(5):
        turn = await ask(store, f"t{number}")
        due.append(turn.due is not None)
        await store.close_turn(closed(f"t{number}", turn))
    assert due == [False, False, False, False, True]


@pytest.mark.parametrize(("summarize_after", "due"), [(25, True), (29, True), (30, False), (100, False)])
async def test_summarize_after_messages_do_without(summarize_after: int, due: bool) -> None:
    await stored(15)
    turn = await ask(DjangoTurnStore(summarize_after=summarize_after))
    assert (turn.due is not None) is due


@pytest.mark.parametrize(("window", "first_kept"), [(1, 14), (4, 14), (12, 14), (14, 13), (16, 12)])
async def test_it_leaves_out_whole_exchanges_and_one_at_least(
    store: DjangoTurnStore, window: int, first_kept: int
) -> None:
    await stored(15)
    turn = await ask(store, window=window)
    assert turn.due is not None
    assert texts(await turn.due.read())[-1] == f"answer {first_kept - 1}"


async def test_a_long_exchange_stays_whole(store: DjangoTurnStore) -> None:
    await stored(3, StoredMessage(role="user", content="All?"), *tool_turn(40))
    turn = await ask(store)
    assert len(turn.history) == 43
    assert turn.due is not None
    source = await turn.due.read()
    assert texts(source)[:6] == [text for n in range(3) for text in (f"question {n}", f"answer {n}")]


async def test_a_store_without_the_setting_makes_none() -> None:
    await stored(40)
    assert (await ask(DjangoTurnStore())).due is None


# --- the marker ---------------------------------------------------------------------------------------------------


async def test_a_summary_whose_last_message_is_gone_is_made_anew(store: DjangoTurnStore) -> None:
    ids = await stored(15)
    await run_db(ChatConversation.objects.update, summary_text="Old.", summarized_through_id=ids[19])
    assert (await ask(store)).summary == "Old."
    await run_db(ChatTurn.objects.filter(pk="t").delete)
    await run_db(ChatMessage.objects.filter(pk=ids[19]).delete)
    turn = await ask(store, "t2")
    assert turn.summary == ""
    assert turn.due is not None
    source = await turn.due.read()
    assert source.previous == ""
    assert texts(source)[0] == "question 0"


@pytest.mark.parametrize("ahead", [True, False])
async def test_a_marker_of_another_conversation_counts_for_nothing(store: DjangoTurnStore, ahead: bool) -> None:
    def elsewhere() -> int:
        other = ChatConversation.objects.create(session_key="other", updated="2026-01-01T00:00:00Z")
        turn = ChatTurn.objects.create(pk="elsewhere", conversation=other, state="done")
        return ChatMessage.objects.create(conversation=other, turn=turn, role="user", content="Secret").pk

    foreign = 0 if ahead else await run_db(elsewhere)
    await stored(15)
    foreign = foreign or await run_db(elsewhere)
    await run_db(
        ChatConversation.objects.exclude(session_key="other").update, summary_text="X", summarized_through_id=foreign
    )
    turn = await ask(store)
    assert turn.due is not None
    source = await turn.due.read()
    assert (source.previous, texts(source)[0]) == ("", "question 0")
    assert "Secret" not in texts(source)
    await turn.due.save(source, "Mine.")
    assert await run_db(ChatConversation.objects.filter(summary_text="Mine.").count) == 1


async def test_a_marker_without_text_counts_for_nothing(store: DjangoTurnStore) -> None:
    ids = await stored(15)
    await run_db(ChatConversation.objects.update, summary_text="", summarized_through_id=ids[-1])
    assert (await ask(store)).due is not None


async def test_a_summary_that_was_overtaken_is_not_kept(store: DjangoTurnStore) -> None:
    ids = await stored(15)
    turn = await ask(store)
    assert turn.due is not None
    source = await turn.due.read()
    await run_db(ChatConversation.objects.update, summary_text="Newer.", summarized_through_id=ids[-1])
    await turn.due.save(source, "Older.")
    assert (await conversation()).summary_text == "Newer."


async def test_no_summary_reaches_another_actor(store: DjangoTurnStore) -> None:
    ids = await stored(15)
    await run_db(ChatConversation.objects.update, summary_text="Mine.", summarized_through_id=ids[19])
    stranger = await opened(store, "t2", actor=type(ANONYMOUS)(session_key="x" * 32))
    assert (stranger.summary, stranger.due, stranger.history) == ("", None, ())


async def test_a_resumed_turn_knows_the_summary(store: DjangoTurnStore) -> None:
    ids = await stored(15)
    await run_db(ChatConversation.objects.update, summary_text="Old.", summarized_through_id=ids[19])
    turn = await ask(store, "t1")
    await store.close_turn(waiting("t1", "c1", turn))
    resumed = await store.claim(confirmation(), max_messages=20, lease_seconds=60)
    assert resumed.summary == "Old."


# --- bounds -------------------------------------------------------------------------------------------------------


async def test_huge_rows_are_cut_by_the_database(store: DjangoTurnStore, statements: list[str]) -> None:
    huge = "ü" * 200_000
    await stored(
        1,
        StoredMessage(role="user", content=huge),
        StoredMessage(
            role="tool", tool_call_id="c", tool_name="q" * 500, tool_args={"a": huge}, tool_result={"data": huge}
        ),
        *[row for number in range(10) for row in exchange(number)],
    )
    turn = await ask(store)
    assert turn.due is not None
    source = await turn.due.read()
    user, result = source.messages[2:4]
    assert user.text == "ü" * summaries.MAX_TEXT + "…"
    assert result.text.startswith('{"data":')
    assert result.text.endswith("…")
    assert all(len(text) <= summaries.MAX_RESULT + 1 for text in (result.text, result.tool_args))
    assert len(result.tool_name) == summaries.MAX_NAME


async def test_json_reads_as_a_model_reads_it_best(store: DjangoTurnStore) -> None:
    await stored(
        0,
        StoredMessage(role="user", content="How big?"),
        StoredMessage(
            role="tool", tool_call_id="c", tool_name="query", tool_args={"b": 1, "a": "ü"}, tool_result=["Größe", None]
        ),
        *[row for number in range(12) for row in exchange(number)],
    )
    turn = await ask(store)
    assert turn.due is not None
    assert (await turn.due.read()).messages[1] == PastMessage(
        role="tool", text='["Größe",null]', tool_name="query", tool_args='{"a":"ü","b":1}'
    )


@pytest.mark.parametrize("length", [10, 5000])
async def test_a_long_backlog_is_taken_in_from_its_newest_messages(store: DjangoTurnStore, length: int) -> None:
    rows = [StoredMessage(role="user", content=f"{number} " + "x" * length) for number in range(2_000)]
    ids = await stored(0, *rows)
    turn = await ask(store)
    assert turn.due is not None
    source = await turn.due.read()
    assert not source.complete
    assert source.through == ids[-11]
    assert texts(source)[-1].startswith("1989 ")
    assert len(source.messages) <= summaries.MAX_MESSAGES
    assert sum(map(len, texts(source))) <= summaries.MAX_CHARACTERS


async def test_text_that_no_database_takes_is_made_safe(store: DjangoTurnStore) -> None:
    await stored(15)
    turn = await ask(store)
    assert turn.due is not None
    await turn.due.save(await turn.due.read(), "a\x00b\ud800c")
    assert (await conversation()).summary_text == "a\ufffdb\ufffdc"


# --- statements ---------------------------------------------------------------------------------------------------


def kinds(statements: list[str]) -> list[str]:
    table = re.compile(r"gm_chat_chat(\w+)")
    return [f"{sql.split(None, 1)[0]} {table.findall(sql)[0]}" for sql in statements]


async def test_a_turn_pays_only_for_the_summary_that_is_due(store: DjangoTurnStore, statements: list[str]) -> None:
    ids = await stored(1000)
    await run_db(ChatConversation.objects.update, summary_text="Old.", summarized_through_id=ids[-11])
    statements.clear()
    turn = await ask(store)
    assert turn.summary == "Old."
    assert kinds(statements) == ["UPDATE conversation", "SELECT message", "INSERT turn", "INSERT message"]
    await store.close_turn(closed("t", turn))

    await stored(5)
    turn = await ask(store, "t2")
    assert turn.due is not None
    statements.clear()
    await turn.due.save(await turn.due.read(), "New.")
    assert kinds(statements) == ["UPDATE conversation", "SELECT message", "SELECT message", "UPDATE conversation"]


async def test_only_the_window_s_rows_are_read(store: DjangoTurnStore, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Any] = []
    monkeypatch.setattr("gm_chat.persistence.window.recall", lambda rows, *_, **__: (read.extend(rows), ("", None))[1])
    await stored(1000)
    await ask(store)
    assert len(read) == 21


async def test_what_a_turn_costs_does_not_grow_with_the_conversation(store: DjangoTurnStore) -> None:
    """Count the steps of SQLite's virtual machine, which no busy machine disturbs."""
    if connection.vendor != "sqlite":
        pytest.skip("only SQLite counts its steps")

    def steps(turn_id: str) -> int:
        counted = 0

        def count() -> int:
            nonlocal counted
            counted += 1
            return 0

        connection.ensure_connection()
        connection.connection.set_progress_handler(count, 10)
        try:
            with inline_database():
                turn = async_to_sync(opened)(store, turn_id)
                async_to_sync(store.close_turn)(closed(turn_id, turn))
        finally:
            connection.connection.set_progress_handler(None, 0)
        return counted

    def measure() -> list[int]:
        try:
            return [steps(f"t{number}") for number in range(3)]
        finally:
            connection.close()

    found = []
    for length in (30, 3_000):
        ids = await stored(length)
        await run_db(ChatConversation.objects.update, summary_text="Old.", summarized_through_id=ids[-11])
        found.append(min(await asyncio.to_thread(measure)))
        await run_db(ChatConversation.objects.all().delete)
    assert found[1] <= found[0] * 1.3, found
