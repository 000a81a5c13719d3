"""A long conversation over HTTP: what the model gets to read, how often it is asked for a summary, and who pays."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from gm_chat.models import ChatConversation, ChatMessage
from gm_chat.providers.base import ProviderError
from gm_chat.testing.scripted import ScriptedProvider, ScriptedRequest, call, done

if TYPE_CHECKING:
    from gm_chat.testing.scripted import Script

pytestmark = pytest.mark.django_db(transaction=True)

SECRET = "The gear is called Zeta-9."


def is_summary(request: ScriptedRequest) -> bool:
    return request.system.startswith("You keep the memory")


def answer(request: ScriptedRequest) -> list[Any]:
    """Answer briefly; summarize by telling which messages were read."""
    if not is_summary(request):
        return ["Noted.", done(10, 1)]
    told = [json.loads(line) for line in request.messages[1].content.split("\n")]
    users = [line["user"] for line in told if "user" in line]
    before = [line["memory"] for line in told if "memory" in line]
    return [" | ".join([*before, *users]), done(100, 50)]


def talk(client: Client, script: Script, turns: int) -> list[dict[str, Any]]:
    bodies = []
    for _ in range(turns):
        number = ChatMessage.objects.filter(role="user").count()
        response = client.post("/chat/", {"text": f"message {number}"}, content_type="application/json")
        bodies.append(response.json())
        assert bodies[-1]["events"][-1]["type"] == "done", bodies[-1]
    return bodies


def test_nothing_is_forgotten_and_a_summary_comes_once_in_ten_messages(client: Client) -> None:
    with ScriptedProvider.playing(answer, repeat=True) as script:
        for number in range(40):
            before = len(script.requests)
            body = talk(client, script, 1)[0]
            asked = script.requests[before:]
            shown = asked[-1]
            told = "\n".join(message.content for message in shown.messages)
            assert [f"message {earlier}" for earlier in range(number) if f"message {earlier}" not in told] == []
            assert len([message for message in shown.messages if message.role != "system"]) <= 21
            spent = (10, 1) if len(asked) == 1 else (110, 51)
            usage = body["events"][-1]["usage"]
            assert (usage["input_tokens"], usage["output_tokens"]) == spent
    summaries = [request for request in script.requests if is_summary(request)]
    assert 1 < len(summaries) <= ChatMessage.objects.count() / 10
    assert len(script.requests) == 40 + len(summaries)


def test_the_summary_stands_between_prompt_and_window(client: Client) -> None:
    with ScriptedProvider.playing(answer, repeat=True) as script:
        talk(client, script, 20)
    messages = script.requests[-1].messages
    assert [message.role for message in messages[:3]] == ["system", "system", "user"]
    assert json.loads(messages[1].content.partition("\n")[2]).startswith("message 0 | message 1 |")


def test_one_that_fails_leaves_the_plain_window(client: Client) -> None:
    def failing(request: ScriptedRequest) -> list[Any]:
        return [ProviderError("no summaries today")] if is_summary(request) else answer(request)

    with ScriptedProvider.playing(failing, repeat=True) as script:
        bodies = talk(client, script, 24)
    assert all(body["answer"] == "Noted." for body in bodies)
    assert [message.role for message in script.requests[-1].messages[:2]] == ["system", "user"]
    assert ChatConversation.objects.get().summary_text == ""
    failed = [body for body in bodies if body["events"][-1]["usage"].get("reported") is False]
    assert len(failed) == sum(map(is_summary, script.requests)) <= 48 / 10


def test_a_summary_takes_a_round(client: Client, settings: Any) -> None:
    settings.GM_CHAT = {**settings.GM_CHAT, "max_total_rounds_per_message": 2}
    with ScriptedProvider.playing(answer, repeat=True) as script:
        talk(client, script, 11)

    def looking(request: ScriptedRequest) -> list[Any]:
        return answer(request) if is_summary(request) else [call("search_managers", query="part")]

    with ScriptedProvider.playing(looking, repeat=True) as script:
        body = client.post("/chat/", {"text": "Look."}, content_type="application/json").json()
    assert [is_summary(request) for request in script.requests] == [True, False]
    assert body["events"][-1]["code"] == "turn_limit"


def test_a_summary_is_its_owner_s_alone(client: Client) -> None:
    with ScriptedProvider.playing(answer, repeat=True) as script:
        client.post("/chat/", {"text": SECRET}, content_type="application/json")
        talk(client, script, 20)
    assert SECRET in ChatConversation.objects.get().summary_text
    with ScriptedProvider.playing(answer, repeat=True) as script:
        talk(Client(), script, 1)
    assert all(SECRET not in message.content for message in script.requests[-1].messages)
