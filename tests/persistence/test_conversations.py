"""The store as a whole: whom it serves, what it costs, and what it does where its tables are missing."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model
from django.db import OperationalError, connection, transaction
from django.utils import timezone
from testproject.stored import (
    ANONYMOUS,
    BOLT,
    STRANGER,
    answer,
    closed,
    confirmation,
    opened,
    paused,
    request,
    tool_turn,
)

from gm_chat.engine.failures import TurnStopped
from gm_chat.engine.ports import JoinedTurn, OpenedTurn, Pulse, StoredTurn
from gm_chat.models import ChatConversation, ChatMessage, ChatPendingConfirmation, ChatTurn
from gm_chat.persistence import following, opening
from gm_chat.persistence.conversations import DjangoTurnStore
from gm_chat.persistence.threads import inline_database
from gm_chat.plugin import Actor

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.django_db(transaction=True)


def summary(statements: list[str]) -> list[str]:
    """``INSERT INTO "gm_chat_chatturn" ...`` -> ``INSERT turn``."""
    table = re.compile(r"(?:FROM|INTO|UPDATE) .gm_chat_chat(\w+)")
    return [f"{sql.split(None, 1)[0]} {table.findall(without_subqueries(sql))[0]}" for sql in statements]


def without_subqueries(sql: str) -> str:
    while (shorter := re.sub(r"\([^()]*\)", "", sql)) != sql:
        sql = shorter
    return sql


async def test_an_actor_without_user_and_session_leaves_nothing_behind(
    store: DjangoTurnStore, statements: list[str]
) -> None:
    nobody = Actor(address="10.0.0.1")
    for turn_id in ("t1", "t2"):  # which may well run at the same time: an address is not a person
        assert await opened(store, turn_id, actor=nobody) == OpenedTurn(None, ())
        assert await store.pulse(turn_id, []) == Pulse()
    for turn_id in ("t1", "t2"):
        await store.close_turn(closed(turn_id, OpenedTurn(None, ())))
    assert await store.read_turn("t1", nobody, after_seq=0) is None
    assert not await store.request_cancel("t1", nobody)
    assert statements == []


async def test_a_turn_that_is_closed_during_a_pulse_leaves_nothing_in_memory(
    store: DjangoTurnStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cancellation that comes while the turn waits for its last pulse."""
    closes, pulse = threading.Event(), following.pulse

    def late(*args: Any, **kwargs: Any) -> Pulse:
        assert closes.wait(5)
        return pulse(*args, **kwargs)

    monkeypatch.setattr(following, "pulse", late)
    turn = await opened(store, "t1")
    beat = asyncio.create_task(store.pulse("t1", []))
    await asyncio.sleep(0)
    await store.close_turn(closed("t1", turn))
    closes.set()
    assert (await beat).cancel is True
    assert (store._shown, store._questions, store._without_rows) == ({}, {}, set())


async def test_a_project_without_time_zones_waits_and_expires_alike(settings: Any, statements: list[str]) -> None:
    """``statements`` brings new threads, whose connections know of the setting."""
    settings.USE_TZ, settings.TIME_ZONE = False, "Asia/Tokyo"
    store = DjangoTurnStore()
    now = datetime.now(tz=UTC)
    await paused(store, "t1", "c1", expires_at=now + timedelta(minutes=5))
    await paused(store, "t2", "c2", STRANGER, expires_at=now - timedelta(seconds=1))
    (waits,) = await store.pending(ANONYMOUS)
    assert abs(waits.expires_at - now - timedelta(minutes=5)) < timedelta(seconds=1)
    assert [expired.pending.id for expired in await store.expire()] == ["c2"]
    resumed = await store.claim(confirmation(), max_messages=20, lease_seconds=60)
    await store.settle(resumed, state="executed", answer=answer())
    assert await store.pulse("t1", []) == Pulse()
    assert await store.read_turn("t1", ANONYMOUS, after_seq=9) == StoredTurn(True, ())
    assert await store.expire(now=now + timedelta(minutes=6)) == []


class TestStatements:
    async def test_a_text_only_turn(self, store: DjangoTurnStore, statements: list[str]) -> None:
        await store.close_turn(closed("t1", await opened(store, "t1")))
        assert summary(statements) == [
            "UPDATE conversation", "INSERT conversation", "INSERT turn", "INSERT message",
            "UPDATE turn", "INSERT message",
        ]  # fmt: skip

    async def test_a_later_turn_with_tools_and_a_key_costs_no_more(self, statements: list[str]) -> None:
        store = DjangoTurnStore(summarize_after=10)
        for turn_id in ("t1", "t2"):
            statements.clear()
            turn = await store.open_turn(request(key=turn_id), turn_id, max_messages=20)
            assert isinstance(turn, OpenedTurn)
            await store.close_turn(closed(turn_id, turn, *tool_turn(5)))
        assert summary(statements) == [
            "UPDATE conversation", "SELECT message", "INSERT turn", "INSERT message",
            "UPDATE turn", "INSERT message",
        ]  # fmt: skip

    async def test_a_pulse(self, store: DjangoTurnStore, statements: list[str]) -> None:
        await opened(store, "t1")
        statements.clear()
        await store.pulse("t1", [])
        assert summary(statements) == ["UPDATE turn", "SELECT turn"]

    async def test_a_pause_and_its_approval(self, store: DjangoTurnStore, statements: list[str]) -> None:
        turn = await opened(store, "t0")
        await store.close_turn(closed("t0", turn))
        await opened(store, "t1")
        statements.clear()
        await paused(store, "t2", "c2", STRANGER)
        assert summary(statements)[4:] == [
            "UPDATE turn", "INSERT message", "SELECT turn", "INSERT pendingconfirmation",
        ]  # fmt: skip
        statements.clear()
        resumed = await store.claim(confirmation("c2", STRANGER), max_messages=20, lease_seconds=60)
        assert summary(statements) == [
            "UPDATE pendingconfirmation", "SELECT pendingconfirmation", "UPDATE turn", "UPDATE conversation",
            "SELECT message",
        ]  # fmt: skip
        statements.clear()
        await store.settle(resumed, state="executed", answer=answer("c2"))
        assert summary(statements) == ["UPDATE pendingconfirmation", "SELECT message", "INSERT message"]


class TestMissingTables:
    @pytest.fixture
    def without_tables(self) -> Iterator[None]:
        models = (ChatPendingConfirmation, ChatMessage, ChatTurn, ChatConversation)
        for model in models:
            with connection.schema_editor() as editor:
                editor.alter_db_table(model, model._meta.db_table, f"away_{model._meta.db_table}")
        yield
        for model in reversed(models):
            with connection.schema_editor() as editor:
                editor.alter_db_table(model, f"away_{model._meta.db_table}", model._meta.db_table)

    def test_turns_run_without_persistence_and_the_log_says_so_once(
        self, store: DjangoTurnStore, without_tables: None, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.WARNING, "gm_chat.persistence"), inline_database(), transaction.atomic():
            for turn_id in ("t1", "t2"):
                turn = async_to_sync(opened)(store, turn_id)
                assert turn == OpenedTurn(None, ())
                assert async_to_sync(store.pulse)(turn_id, []) == Pulse()
                async_to_sync(store.close_turn)(closed(turn_id, turn))
            # The transaction around the turn is still usable.
            get_user_model()._default_manager.create(username="ada")
        assert get_user_model()._default_manager.filter(username="ada").exists()
        assert len(caplog.records) == 1
        assert "lacks gm_chat_chatconversation" in caplog.text
        assert "manage.py migrate" in caplog.text

    async def test_a_confirmation_lives_in_memory_and_counts_once(
        self, store: DjangoTurnStore, without_tables: None
    ) -> None:
        await paused(store)
        with pytest.raises(TurnStopped, match="confirmation_pending"):
            await opened(store, "t2")
        assert [pending.id for pending in await store.pending(ANONYMOUS)] == ["c1"]
        assert await store.pending(STRANGER) == []
        with pytest.raises(TurnStopped, match="bad_event"):
            await store.claim(confirmation("c1", STRANGER), max_messages=20, lease_seconds=60)
        resumed = await store.claim(confirmation(), max_messages=20, lease_seconds=60)
        assert (resumed.conversation_id, resumed.pending.input) == (None, BOLT)
        with pytest.raises(TurnStopped, match="confirmation_unavailable"):
            await store.claim(confirmation(), max_messages=20, lease_seconds=60)
        await store.settle(resumed, state="executed", answer=answer())
        assert await store.request_cancel("t1", ANONYMOUS) is True
        assert (await store.pulse("t1", [])).cancel is True
        await store.close_turn(closed("t1", OpenedTurn(None, ())))
        found = await store.read_turn("t1", ANONYMOUS, after_seq=0)
        assert found is not None
        assert (found.running, len(found.events)) == (False, 2)
        assert (await opened(store, "t3")).history == ()

    async def test_expiry_and_keys_work_in_memory_too(self, store: DjangoTurnStore, without_tables: None) -> None:
        await paused(store, expires_at=timezone.now())
        assert [expired.pending.id for expired in await store.expire()] == ["c1"]
        assert await store.expire(now=timezone.now() + timedelta(days=1)) == []
        await store.open_turn(request(key="k"), "t2", max_messages=20)
        assert await store.open_turn(request(key="k"), "t3", max_messages=20) == JoinedTurn("t2")

    def test_tables_lost_during_a_turn_do_not_break_its_end(self, store: DjangoTurnStore, without_tables: None) -> None:
        with inline_database():
            async_to_sync(store.close_turn)(closed("t1", OpenedTurn("1", ())))

    async def test_any_other_database_error_is_raised(
        self, store: DjangoTurnStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def locked(*_args: Any, **_options: Any) -> None:
            raise OperationalError("database is locked")

        monkeypatch.setattr(opening, "open_turn", locked)
        with pytest.raises(OperationalError, match="locked"):
            await opened(store, "t1")
