"""Prepared statements say and give what Django's own would, on every database."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, IntegrityError, connections
from django.db.models import BigIntegerField, CharField, DateTimeField, QuerySet
from django.utils import timezone

from gm_chat.models import ChatConversation, ChatMessage, ChatTurn
from gm_chat.persistence.prepared import Parameter, PreparedQuery, insert, insert_one, update

pytestmark = [
    pytest.mark.django_db(transaction=True, databases="__all__"),
    pytest.mark.parametrize(
        "alias", ["sqlite", "postgres", "postgres-binding", "mariadb"], indirect=True, scope="module"
    ),
]

JSON: Any = {"z": [1, 2.5, None, True], "ä": "100% 'quoted' \"“”\" 😀\n", "a": {"deep": []}}


@pytest.fixture
def conversation(alias: str) -> Any:
    return ChatConversation.objects.using(alias).create(session_key="s", current_key="k", updated=timezone.now())


@pytest.fixture
def turn(alias: str, conversation: ChatConversation) -> Any:
    return ChatTurn.objects.using(alias).create(id="t", conversation=conversation, owner_key="k")


def message(turn: ChatTurn, **values: Any) -> dict[str, Any]:
    place = {"conversation_id": turn.conversation_id, "turn_id": turn.pk, "created": timezone.now()}
    return place | {"role": "user", **values}


class TestQuery:
    def rows(self) -> QuerySet[ChatMessage, Any]:
        fields = ("pk", "content", "tool_result", "tool_calls", "created", "turn__usage", "conversation__summary_text")
        return ChatMessage.objects.order_by("-pk").values(*fields)

    def prepared(self) -> PreparedQuery:
        key = Parameter("key", CharField())
        since, above = Parameter("since", DateTimeField()), Parameter("above", BigIntegerField())
        owner = ChatConversation.objects.filter(current_key=key).values("pk")[:1]
        rows = self.rows().filter(conversation_id=owner, created__gt=since, pk__gt=above, content__contains="5%")
        return PreparedQuery(rows[:2])

    def test_its_rows_are_the_querysets(self, alias: str, turn: ChatTurn) -> None:
        ChatTurn.objects.using(alias).update(usage=JSON)
        insert(alias, ChatMessage, [message(turn, content=f"5% of {n}", tool_result=JSON) for n in range(4)])
        query = self.prepared()
        expected = list(self.rows().using(alias))
        above, since = expected[-1]["pk"], timezone.now() - timedelta(minutes=1)
        assert query.fetch(alias, key="k", since=since, above=0) == expected[:2]
        assert query.fetch(alias, key="k", since=since, above=expected[1]["pk"]) == expected[:1]
        assert query.fetch(alias, key="other", since=since, above=above) == []
        assert query.fetch(alias, key="k", since=timezone.now(), above=above) == []

    def test_each_connection_composes_it_once(
        self, alias: str, turn: ChatTurn, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        composed: list[str] = []
        real = PreparedQuery._compile
        monkeypatch.setattr(PreparedQuery, "_compile", lambda *args: (composed.append(alias), real(*args))[1])
        query = self.prepared()

        def fetch() -> None:
            query.fetch(alias, key="k", since=timezone.now(), above=0)

        def elsewhere() -> None:
            fetch()
            fetch()
            connections[alias].close()

        fetch()
        fetch()
        connections[alias].close()
        fetch()  # the server is reached anew, by the same connection of Django's
        assert len(composed) == 1
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        assert len(composed) == 2

    def test_a_value_that_is_missing_is_named(self, alias: str) -> None:
        with pytest.raises(KeyError, match="above"):
            self.prepared().fetch(alias, key="k", since=timezone.now())

    def test_wrappers_and_the_log_see_it(self, alias: str) -> None:
        seen: list[str] = []

        def wrapper(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
            seen.append(sql)
            return execute(sql, params, many, context)

        connection = connections[alias]
        connection.ensure_connection()
        connection.force_debug_cursor = True
        try:
            with connection.execute_wrapper(wrapper):
                self.prepared().fetch(alias, key="k", since=timezone.now(), above=7)
        finally:
            connection.force_debug_cursor = False
        assert [sql.split()[0] for sql in seen] == ["SELECT"]
        assert connection.queries[-1]["sql"].startswith("SELECT")


class TestInsert:
    def test_rows_are_what_the_model_would_have_saved(self, alias: str, turn: ChatTurn) -> None:
        now = timezone.now()
        values = {"tool_args": JSON, "tool_calls": [JSON], "content": JSON["ä"], "tool_result": "text", "created": now}
        insert(alias, ChatMessage, [message(turn, role="assistant"), message(turn, **values)])
        saved = ChatMessage(**message(turn, **values))
        saved.save(using=alias, force_insert=True)
        plain, mine, its = ChatMessage.objects.using(alias).order_by("pk").values()
        assert {**plain, "id": 0, "created": None} == {
            **{field.attname: field.get_default() for field in ChatMessage._meta.concrete_fields},
            **message(turn, role="assistant", id=0, created=None),
        }
        assert {**mine, "id": 0, "created": None} == {**its, "id": 0, "created": None}
        assert (mine["created"], mine["tool_args"]) == (now, JSON)
        assert ChatMessage.objects.using(alias).filter(tool_args__a__deep=[]).count() == 2

    def test_more_than_the_database_takes_at_once_are_several_statements(
        self, alias: str, turn: ChatTurn, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sent: list[str] = []

        def wrapper(execute: Any, sql: str, *rest: Any) -> Any:
            sent.append(sql)
            return execute(sql, *rest)

        rows = [message(turn, content=str(n)) for n in range(5)]
        with connections[alias].execute_wrapper(wrapper):
            insert(alias, ChatMessage, rows)
            monkeypatch.setattr(connections[alias].ops, "bulk_batch_size", lambda *_: 2)
            insert(alias, ChatMessage, rows)
        assert [sql.count("(%s, ") for sql in sent] == [5, 2, 2, 1]
        stored = ChatMessage.objects.using(alias).order_by("pk").values_list("content", flat=True)
        assert list(stored) == ["0", "1", "2", "3", "4"] * 2

    def test_one_row_gives_its_key_also_where_inserts_return_no_columns(
        self, alias: str, turn: ChatTurn, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        keys = [insert_one(alias, ChatMessage, message(turn))]
        if connections[alias].vendor != "postgresql":  # which always returns them
            monkeypatch.setitem(vars(connections[alias].features), "can_return_columns_from_insert", False)
            keys.append(insert_one(alias, ChatMessage, message(turn)))
        assert keys == list(ChatMessage.objects.using(alias).order_by("pk").values_list("pk", flat=True))

    def test_what_the_database_refuses_is_djangos_error(self, alias: str, turn: ChatTurn) -> None:
        again = {"id": turn.pk, "conversation_id": turn.conversation_id, "owner_key": "k", "created": timezone.now()}
        with pytest.raises(IntegrityError):
            insert(alias, ChatTurn, [again])
        with pytest.raises(DatabaseError):
            insert(alias, ChatTurn, [again | {"id": "x" * 10, "owner_key": None}])
        assert ChatTurn.objects.using(alias).count() == 1


class TestUpdate:
    def test_rows_that_match_are_changed_and_counted(self, alias: str, turn: ChatTurn) -> None:
        now = timezone.now()
        values = {"usage": JSON, "events": [JSON], "state": "done", "active_key": None, "finished": now}
        assert update(alias, ChatTurn, values, id="t", state="paused") == 0
        assert update(alias, ChatTurn, values, id="t", state="running") == 1
        changed = ChatTurn.objects.using(alias).values(*values).get()
        assert changed == values
        assert update(alias, ChatTurn, values, id="t", state="done") == 1, "MySQL by itself counts what it changed"

    def test_a_column_may_be_changed_by_which_rows_are_found(self, alias: str, turn: ChatTurn) -> None:
        assert update(alias, ChatTurn, {"state": "done"}, state="running") == 1
        assert update(alias, ChatTurn, {"state": "done"}, state="running") == 0

    def test_relations_are_columns_too(self, alias: str, turn: ChatTurn) -> None:
        other = ChatConversation.objects.using(alias).create(session_key="x", updated=timezone.now())
        assert update(alias, ChatTurn, {"conversation_id": other.pk}, conversation_id=turn.conversation_id) == 1
        assert ChatTurn.objects.using(alias).get().conversation_id == other.pk


def test_times_without_a_zone(alias: str, settings: Any) -> None:
    settings.USE_TZ, settings.TIME_ZONE = False, "Asia/Tokyo"
    connections[alias].close()
    for cached in ("timezone", "timezone_name"):
        vars(connections[alias]).pop(cached, None)
    try:
        now = timezone.now()
        key = insert_one(alias, ChatConversation, {"session_key": "s", "created": now, "updated": now})
        later = now + timedelta(hours=1)
        assert update(alias, ChatConversation, {"updated": later}, id=key, updated=now) == 1
        since = Parameter("since", DateTimeField())
        query = PreparedQuery(ChatConversation.objects.filter(updated__gt=since).values("created", "updated"))
        assert query.fetch(alias, since=now) == [{"created": now, "updated": later}]
        assert query.fetch(alias, since=later) == []
    finally:
        connections[alias].close()
        for cached in ("timezone", "timezone_name"):
            vars(connections[alias]).pop(cached, None)
