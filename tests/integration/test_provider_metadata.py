"""Two providers take turns in one stored conversation: what is private to one comes back to it, and to nobody else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from django.contrib.auth import get_user_model
from django.test import AsyncClient

from gm_chat.models import ChatMessage
from gm_chat.providers.base import BaseLLMProvider, CallOptions, DoneEvent, TextChunkEvent, TokenUsage, ToolCallEvent

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from gm_chat.providers.base import ChatEvent, Message, ToolDefinition

pytestmark = pytest.mark.django_db(transaction=True)

QUERY = {"manager": "PartManager", "fields": ["name"]}
CREATE = {"mutation": "createMaterial", "input": {"name": "Zinc", "density": 7.1}}


class Signing(BaseLLMProvider):
    """Signs what it says, as vendors do with thoughts and calls, and keeps what it is shown."""

    tool: ClassVar[tuple[str, Mapping[str, Any]]] = ("query", QUERY)
    seen: ClassVar[list[list[Message]]]
    count: ClassVar[int]

    def __init_subclass__(cls) -> None:
        cls.seen, cls.count = [], 0

    async def complete(
        self, messages: list[Message], tools: list[ToolDefinition], *, options: CallOptions | None = None
    ) -> AsyncIterator[ChatEvent]:
        own = type(self)
        own.seen.append(messages)
        own.count += 1
        signature = {"signature": f"{own.__name__} {own.count} \u00e9\u2028", "deep": {"list": [1, None, True, 0.5]}}
        if messages[-1].role == "user":
            name, args = self.tool
            yield TextChunkEvent("Let me see.")
            yield ToolCallEvent(f"{own.__name__}-id", name, args, metadata=signature)  # the same id in each turn
        else:
            yield TextChunkEvent("So it is.")
        yield DoneEvent(TokenUsage(1, 1), "stop", metadata={"thinking": [signature]})


class Anna(Signing):
    pass


class Gina(Signing):
    pass


@pytest.fixture(autouse=True)
def _fresh() -> None:
    for provider in (Anna, Gina):
        provider.seen, provider.count = [], 0


def chat_of(provider: type[Signing], **more: Any) -> dict[str, Any]:
    return {"enabled": True, "provider": f"{__name__}.{provider.__name__}", "resume_grace_seconds": 0, **more}


async def client() -> AsyncClient:
    browser = AsyncClient()
    await browser.aforce_login(await get_user_model()._default_manager.acreate(username="ada", is_superuser=True))
    return browser


async def post(browser: AsyncClient, path: str, body: Mapping[str, Any]) -> str:
    response: Any = await browser.post(path, json.dumps(body), content_type="application/json")
    assert response.status_code == 200
    if response.streaming:
        return b"".join([chunk async for chunk in response.streaming_content]).decode()
    return str(response.content.decode())


def private(messages: list[Message]) -> dict[str, list[Any]]:
    """By provider: the numbers of the calls whose signature came back, unharmed, on the message and its tool calls."""
    found: dict[str, list[Any]] = {}
    for message in messages:
        signed = [*message.metadata.get("thinking", ()), *(call.metadata for call in message.tool_calls)]
        for value in filter(None, signed):
            name, number, mark = value["signature"].split(" ")
            assert (mark, value["deep"]) == ("\u00e9\u2028", {"list": [1, None, True, 0.5]})
            found.setdefault(name, []).append(int(number))
    return found


def is_linked(messages: list[Message]) -> bool:
    calls = [call.id for message in messages for call in message.tool_calls]
    return len(set(calls)) == len(calls) and calls == [m.tool_call_id for m in messages if m.role == "tool"]


async def test_each_provider_gets_its_own_back_and_never_the_other_s(settings: Any) -> None:
    browser = await client()
    shown = ""
    for provider in (Anna, Gina, Anna, Gina):
        settings.GM_CHAT = chat_of(provider)
        shown += await post(browser, "/chat/", {"text": "Which parts?"})

    assert [private(messages) for messages in Anna.seen] == [
        {},
        {"Anna": [1, 1]},
        {"Anna": [1, 1, 2]},  # of the answer too, which made no call
        {"Anna": [1, 1, 2, 3, 3]},
    ]
    assert [private(messages) for messages in Gina.seen] == [
        {},
        {"Gina": [1, 1]},
        {"Gina": [1, 1, 2]},
        {"Gina": [1, 1, 2, 3, 3]},
    ]
    # What was said and looked up is everybody's, with ids that belong together.
    for messages in (Anna.seen[-1], Gina.seen[-1]):
        assert is_linked(messages)
        assert {call.name for message in messages for call in message.tool_calls} == {"query"}
    assert len([m for m in Gina.seen[-1] if m.role == "tool"]) == 4
    # An id of its own is echoed to a provider, as far as the request has it only once.
    assert [call.id for message in Anna.seen[1] for call in message.tool_calls] == ["Anna-id"]

    assert "Which parts" not in shown
    assert shown.count("Let me see.") >= 4
    assert "signature" not in shown
    assert "-id" not in shown
    rows = ChatMessage.objects.filter(role="assistant").order_by("id")
    names = [row.provider.rpartition(".")[2] async for row in rows]
    assert names == ["Anna"] * 2 + ["Gina"] * 2 + ["Anna"] * 2 + ["Gina"] * 2


@pytest.mark.parametrize("resumed_by", [Anna, Gina])
async def test_a_pause_keeps_it(settings: Any, monkeypatch: pytest.MonkeyPatch, resumed_by: type[Signing]) -> None:
    """The call that waits for its approval is signed, too, and another provider may go on with the turn."""
    monkeypatch.setattr(Signing, "tool", ("mutate", CREATE))
    rights = {"allowed_mutations": ["createMaterial"], "confirm_mutations": ["createMaterial"]}
    browser = await client()
    settings.GM_CHAT = chat_of(Anna, **rights)
    shown = await post(browser, "/chat/stream/", {"text": "Add zinc."})
    asked = [json.loads(line.removeprefix("data: ")) for line in shown.splitlines() if line.startswith("data: ")][-1]
    assert asked["type"] == "confirm_mutation"

    settings.GM_CHAT = chat_of(resumed_by, **rights)
    shown += await post(browser, "/chat/confirm/", {"confirmation_id": asked["id"], "confirmed": True})
    assert "So it is." in shown
    assert "signature" not in shown
    assert private(resumed_by.seen[-1]) == ({"Anna": [1, 1]} if resumed_by is Anna else {})
    assert is_linked(resumed_by.seen[-1])
