"""Planned turns in a real project: what they cost, and what the audit and a client that comes back learn of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import AsyncClient
from testproject.plans import ONE, answer, complete
from testproject.shop.models import Material

from gm_chat.testing.scripted import ScriptedProvider, call
from gm_chat.wiring import get_runtime

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = (
    [ONE],
    [call("query", manager="MaterialManager", fields=["id", "name"])],
    [complete()],
    [answer("Zinc.")],
)
AUDITED: list[dict[str, Any]] = []


@pytest.fixture
async def browser(settings: Any) -> AsyncClient:
    AUDITED.clear()
    settings.GM_CHAT = {
        "enabled": True,
        "provider": "gm_chat.testing.ScriptedProvider",
        "planned": {"enabled": True},
        "audit": {"enabled": True, "level": "all", "logger": AUDITED.append},
    }
    await Material.objects.acreate(name="Zinc", density=7.1)
    browser = AsyncClient()
    await browser.aforce_login(await get_user_model()._default_manager.acreate(username="root", is_superuser=True))
    return browser


async def say(browser: AsyncClient, text: str = "Which materials are there?") -> dict[str, Any]:
    response = await browser.post("/chat/", json.dumps({"text": text}), content_type="application/json")
    told: dict[str, Any] = response.json()
    return told


async def test_one_look_up_costs_few_characters_tools_included(browser: AsyncClient) -> None:
    with ScriptedProvider.playing(*ROUNDS) as script:
        assert (await say(browser))["answer"] == "Zinc."
    messages = [message for request in script.requests for message in request.messages]
    tools = [tool for request in script.requests for tool in request.tools]
    characters = sum(
        len(message.content) + len(json.dumps([dict(c.args) for c in message.tool_calls])) for message in messages
    )
    characters += sum(len(tool.name + tool.description + json.dumps(tool.input_schema)) for tool in tools)
    assert characters <= 11_000


async def test_a_client_that_comes_back_reads_the_same_events(browser: AsyncClient) -> None:
    with ScriptedProvider.playing(*ROUNDS):
        told = await say(browser)
    response = await browser.get(f"/chat/turns/{told['turn_id']}/events")
    text = b"".join([chunk async for chunk in response.streaming_content]).decode()  # type: ignore[union-attr]
    again = [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: ")]
    assert again == told["events"]
    assert again[-1]["orchestration"]["citations"][0]["records"] == [told["events"][1]["result"]["data"][0]["id"]]
    assert again[-1]["orchestration"]["citations"][0]["call_id"] == again[0]["id"]


async def test_the_next_turn_knows_what_was_said(browser: AsyncClient) -> None:
    with ScriptedProvider.playing(*ROUNDS, *ROUNDS) as script:
        await say(browser)
        await say(browser, "And now?")
    assert '"text":"Zinc."' in script.requests[4].messages[-1].content


async def test_the_audit_tells_of_the_turn_and_names_nothing(browser: AsyncClient) -> None:
    with ScriptedProvider.playing(*ROUNDS):
        told = await say(browser)
    await get_runtime().audit.flush()
    planned = [event for event in AUDITED if event["event_type"].startswith("planned_")]
    kinds = ("plan", "route", "tool_call", "evidence", "coverage", "terminal")
    assert {event["event_type"] for event in planned} >= {f"planned_{kind}" for kind in kinds}
    assert {event["turn_id"] for event in planned} == {told["turn_id"]}
    assert all(event["at"] for event in planned)
    assert "Material" not in json.dumps(planned)
    assert "t1" not in [value for event in planned for value in event.values()]
    # what every turn tells is told, too
    assert {"user_message", "tool_call", "tool_result", "assistant_message"} <= {
        event["event_type"] for event in AUDITED
    }
