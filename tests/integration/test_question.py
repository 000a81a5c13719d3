"""A question, from a client's bytes to rows of the database and back: every real part but the language model."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db.backends.utils import CursorWrapper
from django.test import AsyncClient, Client
from testproject.shop.models import Material, Part

from gm_chat.persistence.threads import run_db
from gm_chat.testing.scripted import ScriptedProvider, call

pytestmark = pytest.mark.django_db(transaction=True)

QUERY = call("query", manager="PartManager", fields=["name", "material__name"], filters={"material__name": "Aluminium"})


@pytest.fixture
def parts() -> None:
    aluminium = Material.objects.create(name="Aluminium", density=2.7)
    steel = Material.objects.create(name="Steel", density=7.8)
    Part.objects.create(number="P-1", name="Bracket", material=aluminium)
    Part.objects.create(number="P-2", name="Bolt", material=steel)


@pytest.fixture
def user() -> Any:
    return get_user_model().objects.create_superuser("alice", password="x")


def ask(client: Client, text: str = "Which parts use aluminium?") -> dict[str, Any]:
    response = client.post("/chat/", {"text": text}, content_type="application/json")
    assert response.status_code == 200
    body: dict[str, Any] = response.json()
    return body


def test_an_answer_rests_on_rows(parts: None, user: Any, client: Client) -> None:
    client.force_login(user)
    with ScriptedProvider.playing([QUERY], ["Bracket ", "does."]) as script:
        body = ask(client)
    kinds = [event["type"] for event in body["events"]]
    assert kinds == ["tool_call", "tool_result", "text_chunk", "text_chunk", "done"]
    assert body["events"][1]["result"] == {
        "data": [{"name": "Bracket", "material": {"name": "Aluminium"}}],
        "total_count": 1,
        "has_more": False,
    }
    assert body["answer"] == "Bracket does."
    assert script.requests[1].results[0]["total_count"] == 1
    assert [event["seq"] for event in body["events"]] == [1, 2, 3, 4, 5]
    assert {event["turn_id"] for event in body["events"]} == {body["turn_id"]}


def test_the_next_message_remembers_the_last(parts: None, user: Any, client: Client) -> None:
    client.force_login(user)
    with ScriptedProvider.playing([QUERY], ["Bracket."]):
        ask(client)
    with ScriptedProvider.playing(["As I said."]) as script:
        ask(client, "And again?")
    history = script.requests[0].messages
    assert [message.role for message in history] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert history[2].tool_calls[0].name == "query"
    assert history[3].tool_result["total_count"] == 1
    assert history[5].content == "And again?"


def test_a_visitor_sees_public_managers_only(parts: None, client: Client) -> None:
    with ScriptedProvider.playing([QUERY], ["I cannot."]):
        body = ask(client)
    error = body["events"][1]["result"]["error"]
    assert error["code"] == "unknown_manager"
    assert "PartManager" not in error.get("allowed", [])


async def test_the_same_events_stream(parts: None, user: Any) -> None:
    client = AsyncClient()
    await client.aforce_login(user)
    with ScriptedProvider.playing([QUERY], ["Bracket."]):
        response = await client.post(
            "/chat/stream/",
            {"text": "Which?"},
            content_type="application/json",
            headers={"accept": "text/event-stream"},
        )
        text = b"".join([chunk async for chunk in response]).decode()
    frames = [frame for frame in text.split("\n\n") if frame.startswith("data:")]
    events = [json.loads(frame.split("\n")[0].removeprefix("data: ")) for frame in frames]
    assert [event["type"] for event in events] == ["tool_call", "tool_result", "text_chunk", "done"]


APART = ("django_session", "auth_", "SAVEPOINT", "BEGIN", "COMMIT", "ROLLBACK", "RELEASE", "PRAGMA")
"""Statements of sessions, authentication and transactions, which every Django view pays."""


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What all threads send to the database from here on; the pool's connections may be older than the test."""
    seen: list[str] = []
    execute = CursorWrapper.execute

    def watched(self: CursorWrapper, sql: Any, params: Any = None) -> Any:
        if not any(word in sql for word in APART):
            seen.append(sql)
        return execute(self, sql, params)

    monkeypatch.setattr(CursorWrapper, "execute", watched)
    return seen


@pytest.mark.parametrize(("rounds", "most"), [([["Hello."]], 7), ([[QUERY], ["Bracket."]], 9)])
def test_a_turn_costs_few_statements(
    parts: None, user: Any, client: Client, rounds: Any, most: int, statements: list[str]
) -> None:
    client.force_login(user)
    with ScriptedProvider.playing(["Warm."], *rounds):
        ask(client)
        statements.clear()
        ask(client)
    assert 0 < len(statements) <= most, "\n".join(statements)


async def test_the_database_pool_answers_after_a_failure() -> None:
    with pytest.raises(ZeroDivisionError):
        await run_db(lambda: 1 / 0)
    assert await run_db(Material.objects.count) == 0
