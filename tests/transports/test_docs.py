"""docs/transports.md says what is: its commands are run, its events are compared, its codes are provoked."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from channels.routing import ProtocolTypeRouter
from django.contrib.auth import get_user_model
from django.test import AsyncClient, Client
from django.urls import get_resolver
from testproject.socket_client import ENDS, connected

from gm_chat.engine.events import ConfirmMutation, Done, Error, Event, LoggedEvent, TextChunk, ToolCall, ToolResult
from gm_chat.errors import PLANNED_REASONS, PUBLIC_MESSAGES
from gm_chat.models import ChatTurn
from gm_chat.providers.base import TokenUsage
from gm_chat.testing.scripted import ScriptedProvider, call, done
from gm_chat.transports.wire import logged_object

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "transports.md").read_text()
CHAT: dict[str, Any] = {
    "enabled": True,
    "provider": "gm_chat.testing.ScriptedProvider",
    "allowed_mutations": ["createMaterial"],
}
ANSWER = ["Frame and ", "gear.", done(10, 5)]
BOLT = call("mutate", mutation="createMaterial", input={"name": "Bolt", "density": 7.1})
PREVIEW = {
    "action": "create",
    "manager": "MaterialManager",
    "tried": True,
    "changes": [{"field": "name", "new": "Bolt"}, {"field": "density", "new": 7.1}],
}
TOKEN = "t" * 32
EXAMPLES = [json.loads(line) for line in re.findall(r"```jsonl\n(.*?)```", TEXT, re.DOTALL)[0].splitlines()]
UNPROVOKED = {"permission_denied", "interrupted"}


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def shown(key: str) -> list[dict[str, Any]]:
    """The documented JSON that has this key."""
    return [value for value in map(json.loads, blocks("json")) if key in value]


def alike(text: str) -> str:
    """Ids and times as they are documented."""
    text = re.sub(r'("turn_id": ?)"\w+"', r'\1"8c1f"', text)
    text = re.sub(r'("expires_at": ?)"[^"]+"', r'\1"2030-01-02T12:00:30+00:00"', text)
    text = re.sub(r'("id": ?)"\w{32}"', r'\1"call-1"', text)
    return re.sub(r'("data": ?\{"id": ?)\d+', r"\g<1>7", text)


@pytest.fixture
def session(settings: Any, transactional_db: None) -> str:
    settings.GM_CHAT = CHAT | {"confirm_mutations": ["createMaterial"]}
    user = get_user_model()._default_manager.create_superuser("ada")
    client = Client()
    client.force_login(user)
    return client.cookies["sessionid"].value


def run(route: str, server: str, session: str, **replaced: str) -> str:
    """Run the documented command of a route against a server, with its example ids replaced; return its output."""
    (command,) = [block for block in blocks("sh") if f"8000{route} " in block and "Idempotency" not in block]
    for example, real in replaced.items():
        assert f"{example}=" in command
        command = re.sub(rf"^{example}=.*$", f"{example}={real}", command, flags=re.MULTILINE)
    return subprocess.run(
        ["bash", "-euc", command.replace("http://127.0.0.1:8000", server)],
        env=os.environ | {"SESSION": session}, capture_output=True, text=True, check=True, timeout=20,
    ).stdout  # fmt: skip


def post(session: str, path: str, body: Any) -> Any:
    client = Client()
    client.cookies["sessionid"] = session
    return client.post(path, body, content_type="application/json")


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
class TestCommands:
    def test_a_message(self, server: str, session: str) -> None:
        with ScriptedProvider.playing(ANSWER):
            output = run("/chat/", server, session)
        assert json.loads(alike(output)) == shown("events")[0]

    def test_the_same_message_again(self, server: str, session: str) -> None:
        (command,) = [block for block in blocks("sh") if "Idempotency" in block]
        with ScriptedProvider.playing(ANSWER) as script:
            first, second = [
                subprocess.run(
                    ["bash", "-euc", command.replace("http://127.0.0.1:8000", server)],
                    env=os.environ | {"SESSION": session}, capture_output=True, text=True, check=True, timeout=20,
                ).stdout
                for _ in range(2)
            ]  # fmt: skip
        assert first == second
        assert len(script.requests) == 1

    def test_a_stream_and_its_rest(self, server: str, session: str) -> None:
        with ScriptedProvider.playing(ANSWER):
            assert alike(run("/chat/stream/", server, session)).strip() == blocks("text")[0].strip()
        with ScriptedProvider.playing(ANSWER):
            turn_id = post(session, "/chat/", {"text": "Hello"}).json()["turn_id"]
        output = run("/chat/turns/$TURN/events", server, session, TURN=turn_id)
        assert alike(output).strip() == blocks("text")[1].strip()

    def test_an_approval(self, server: str, session: str) -> None:
        with ScriptedProvider.playing([BOLT], ["Bolt is there."]):
            self.pause(server, session)
            waiting = run("/chat/confirmations/", server, session)
            confirmation = json.loads(waiting)["confirmations"][0]["id"]
            output = run("/chat/confirm/", server, session, CONFIRMATION=confirmation)
        assert json.loads(alike(waiting)) == shown("confirmations")[0]
        assert json.loads(alike(output)) == shown("events")[1]

    def test_a_cancel(self, server: str, session: str) -> None:
        with ScriptedProvider.playing([BOLT]):
            self.pause(server, session)
        assert run("/chat/cancel/", server, session, TURN=ChatTurn.objects.get().pk) == '{"cancelled":true}'
        assert '`{"cancelled": true}`' in TEXT

    def pause(self, server: str, session: str) -> None:
        command = [
            "curl", "-sN", f"{server}/chat/stream/", "-b", f"csrftoken={TOKEN}; sessionid={session}",
            "-H", f"X-CSRFToken: {TOKEN}", "-H", "Content-Type: application/json", "-d", '{"text": "Add a bolt"}',
        ]  # fmt: skip
        output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout
        assert "confirm_mutation" in output


@pytest.mark.django_db(transaction=True)
def test_the_client_of_a_socket(server: str, session: str) -> None:
    (code,) = [block for block in blocks("python") if "websockets.connect" in block]
    code = code.replace("127.0.0.1:8000", server.removeprefix("http://"))
    with ScriptedProvider.playing(ANSWER):
        output = subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"SESSION": session}, capture_output=True, text=True, check=True, timeout=20,
        ).stdout  # fmt: skip
    assert output.splitlines() == ["text_chunk Frame and ", "text_chunk gear.", "done "]


@pytest.mark.parametrize("code", [block for block in blocks("python") if "ProtocolTypeRouter" in block])
@pytest.mark.django_db(transaction=True)
async def test_the_modules_that_serve_it(code: str) -> None:
    module: dict[str, Any] = {}
    exec(code, module)  # noqa: S102 - our own documentation
    assert isinstance(module["application"], ProtocolTypeRouter)
    with ScriptedProvider.playing(["Hi"]):
        async with connected(application=module["application"]) as socket:
            assert [event["type"] for event in await socket.ask("Hello")] == ["text_chunk", "done"]


@pytest.mark.parametrize(
    "event",
    [
        ToolCall("call-1", "query", {"manager": "PartManager"}),
        ToolResult("call-1", "query", {"data": []}),
        ConfirmMutation("call-1", "createMaterial", {"name": "Bolt", "density": 7.1}, PREVIEW),
        TextChunk("No part does."),
        Done(TokenUsage(100, 20)),
        Error("rate_limited", PUBLIC_MESSAGES["rate_limited"], {"retry_after_seconds": 3600}),
    ],
    ids=lambda event: type(event).__name__,
)
def test_each_event_is_shown_as_it_is_sent(event: Event) -> None:
    kind = logged_object(LoggedEvent("", 0, event))["type"]
    (documented,) = [value for value in shown("type") if value["type"] == kind]
    assert documented == logged_object(LoggedEvent("8c1f", documented["seq"], event))


def test_every_route_is_listed() -> None:
    routes = {str(pattern.pattern) for pattern in get_resolver("gm_chat.urls").url_patterns}
    listed = set(re.findall(r"^\| `(?:GET|POST) /chat/(\S*)` \|", TEXT, re.MULTILINE))
    assert {route.replace("<id>", "<str:turn_id>") for route in listed} == routes


def test_every_error_code_that_exists_is_explained_and_tried_out() -> None:
    explained = set(re.findall(r"^\| `(\w+)` \|", TEXT, re.MULTILINE))
    assert explained == PUBLIC_MESSAGES.keys() - set(PLANNED_REASONS)
    assert {example["code"] for example in EXAMPLES} == explained - UNPROVOKED


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("example", EXAMPLES, ids=[example["code"] for example in EXAMPLES])
async def test_each_code_can_be_provoked_as_shown(example: dict[str, Any], settings: Any) -> None:
    settings.GM_CHAT = CHAT | {"provider_config": {"script": example["script"]}} | example["settings"]
    client = AsyncClient()
    await client.aforce_login(await get_user_model()._default_manager.acreate(username="ada", is_superuser=True))
    if example.get("http"):
        (message,) = example["send"]
        response = await client.post("/chat/", json.dumps(message), content_type="application/json")
        assert response.json()["events"][-1]["code"] == example["code"]
        return
    seen: list[dict[str, Any]] = []
    async with connected(cookies={"sessionid": client.cookies["sessionid"].value}) as socket:
        for frame in example["send"]:
            asked = next((event["id"] for event in seen if event["type"] == "confirm_mutation"), "")
            await socket.send(json.dumps(frame).replace("$confirmation", asked))
            while not seen or seen[-1]["type"] not in ENDS or frame is example["send"][-1]:
                try:
                    seen.append(await socket.event(0.5))
                except TimeoutError:
                    break
                if seen[-1].get("code") == example["code"]:
                    return
    raise AssertionError(seen)
