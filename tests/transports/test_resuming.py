"""The routes beside a message: confirm, cancel, what is pending, and the events of a turn that was begun elsewhere."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model
from django.test import AsyncClient, Client
from django.urls import reverse
from testproject.shop.models import Material

from gm_chat.models import ChatConversation, ChatTurn
from gm_chat.testing.scripted import ScriptedProvider, call

pytestmark = pytest.mark.django_db(transaction=True)

CHAT: dict[str, Any] = {
    "enabled": True,
    "provider": "gm_chat.testing.ScriptedProvider",
    "allowed_mutations": ["createMaterial"],
    "confirm_mutations": ["createMaterial"],
}
TOKEN = "t" * 32


@pytest.fixture(autouse=True)
def chat(settings: Any) -> Any:
    settings.GM_CHAT = CHAT
    return settings


def create(name: str) -> Any:
    return call("mutate", mutation="createMaterial", input={"name": name, "density": 7.1})


async def browser(name: str) -> AsyncClient:
    client = AsyncClient()
    users = get_user_model()._default_manager
    await client.aforce_login(await users.acreate(username=name, is_superuser=True))
    return client


@pytest.fixture
async def ada() -> AsyncClient:
    return await browser("ada")


@pytest.fixture
async def bob() -> AsyncClient:
    return await browser("bob")


async def post(client: AsyncClient, path: str, body: Any, **extra: Any) -> Any:
    text = body if isinstance(body, bytes) else json.dumps(body)
    return await client.post(path, text, content_type="application/json", **extra)


def frames(content: bytes) -> list[dict[str, Any]]:
    lines = [line for line in content.decode().splitlines() if line.startswith("data: ")]
    return [json.loads(line.removeprefix("data: ")) for line in lines]


async def read(response: Any) -> list[dict[str, Any]]:
    assert response.status_code == 200
    return frames(b"".join([chunk async for chunk in response.streaming_content]))


async def stream(client: AsyncClient, text: str = "Add zinc", **extra: Any) -> list[dict[str, Any]]:
    return await read(await post(client, "/chat/stream/", {"text": text}, **extra))


def kinds(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events]


class TestConfirm:
    @pytest.mark.parametrize("approved", [True, False])
    async def test_the_rest_of_the_turn_comes_in_one_body(self, ada: AsyncClient, approved: bool) -> None:
        with ScriptedProvider.playing(["I will. ", create("Zinc")], ["So be ", "it."]):
            asked = await stream(ada)
            assert kinds(asked) == ["text_chunk", "tool_call", "confirm_mutation"]
            assert asked[-1]["input"] == {"name": "Zinc", "density": 7.1}
            word = {"confirmation_id": asked[-1]["id"], "confirmed": approved}
            body = (await post(ada, "/chat/confirm/", word)).json()
        assert kinds(body["events"]) == ["tool_result", "text_chunk", "text_chunk", "done"]
        assert body["events"][0]["id"] == asked[-1]["id"]
        assert body["events"][0]["name"] == "mutate"
        assert [event["seq"] for event in (*asked, *body["events"])] == [1, 2, 3, 4, 5, 6, 7]
        assert body["answer"] == "So be it."
        assert body["turn_id"] == asked[0]["turn_id"]
        assert await Material.objects.acount() == approved

    async def test_a_resumed_turn_may_ask_again(self, ada: AsyncClient) -> None:
        with ScriptedProvider.playing([create("Zinc")], [create("Tin")], ["Both."]):
            asked = await stream(ada)
            first = (await post(ada, "/chat/confirm/", {"confirmation_id": asked[-1]["id"], "confirmed": True})).json()
            assert kinds(first["events"]) == ["tool_result", "tool_call", "confirm_mutation"]
            word = {"confirmation_id": first["events"][-1]["id"], "confirmed": True}
            second = (await post(ada, "/chat/confirm/", word)).json()
        assert kinds(second["events"]) == ["tool_result", "text_chunk", "done"]
        assert await Material.objects.acount() == 2

    async def test_plain_http_cannot_ask(self, ada: AsyncClient) -> None:
        with ScriptedProvider.playing([create("Zinc")]):
            body = (await post(ada, "/chat/", {"text": "Add zinc"})).json()
        assert kinds(body["events"]) == ["tool_call", "error"]
        assert body["events"][-1]["code"] == "confirmation_required_transport"
        assert (await ada.get("/chat/confirmations/")).json() == {"confirmations": []}

    @pytest.mark.parametrize(
        "body",
        [
            b"",
            b"[1]",
            b"[" * 10_000,
            b'{"confirmation_id": "\xff", "confirmed": true}',
            {},
            {"confirmation_id": "x"},
            {"confirmation_id": 1, "confirmed": True},
            {"confirmation_id": "unheard-of", "confirmed": True},
            {"confirmation_id": "x", "confirmed": "yes"},
        ],
        ids=str,
    )
    async def test_malformed_and_unknown_are_a_bad_event(self, ada: AsyncClient, body: Any) -> None:
        response = await post(ada, "/chat/confirm/", body)
        assert response.status_code == 200
        (event,) = response.json()["events"]
        assert (event["type"], event["code"]) == ("error", "bad_event")

    async def test_somebody_else_s_is_not_told_from_an_unknown_one(self, ada: AsyncClient, bob: AsyncClient) -> None:
        with ScriptedProvider.playing([create("Zinc")]):
            asked = await stream(ada)
            bodies = [
                (await post(bob, "/chat/confirm/", {"confirmation_id": id, "confirmed": True})).content
                for id in (asked[-1]["id"], "unheard-of")
            ]
        assert bodies[0] == bodies[1]
        assert not await Material.objects.aexists()

    async def test_used_and_expired_ones_are_unavailable(self, ada: AsyncClient, chat: Any) -> None:
        chat.GM_CHAT = CHAT | {"confirm_timeout_seconds": 0.2}
        with ScriptedProvider.playing([create("Zinc")], ["Done."], [create("Tin")]):
            for wait, after in ((0, ["tool_result", "text_chunk", "done"]), (0.3, ["error"])):
                asked = await stream(ada)
                await asyncio.sleep(wait)
                word = {"confirmation_id": asked[-1]["id"], "confirmed": True}
                first = (await post(ada, "/chat/confirm/", word)).json()["events"]
                assert kinds(first) == after
                (event,) = (await post(ada, "/chat/confirm/", word)).json()["events"]
                assert event["code"] == "confirmation_unavailable"
        assert await Material.objects.acount() == 1

    async def test_a_denied_permission(self, ada: AsyncClient, chat: Any) -> None:
        with ScriptedProvider.playing([create("Zinc")]):
            asked = await stream(ada)
        chat.GM_CHAT = CHAT | {"permission": lambda user, scope: False}
        response = await post(ada, "/chat/confirm/", {"confirmation_id": asked[-1]["id"], "confirmed": True})
        assert (response.status_code, response.json()) == (403, {"detail": "Forbidden"})


class TestPending:
    async def test_own_ones_only(self, ada: AsyncClient, bob: AsyncClient) -> None:
        with ScriptedProvider.playing([create("Zinc")]):
            asked = await stream(ada)
        (waiting,) = (await ada.get("/chat/confirmations/")).json()["confirmations"]
        assert waiting.pop("expires_at")
        assert waiting == {
            "id": asked[-1]["id"],
            "mutation": "createMaterial",
            "input": {"name": "Zinc", "density": 7.1},
            "preview": asked[-1]["preview"],
            "turn_id": asked[-1]["turn_id"],
        }
        for client in (bob, AsyncClient()):
            assert (await client.get("/chat/confirmations/")).json() == {"confirmations": []}

    async def test_looking_makes_nobody_a_session(self, async_client: AsyncClient) -> None:
        response = await async_client.get("/chat/confirmations/")
        assert response.cookies == {}
        assert response["Cache-Control"] == "no-store"


class TestCancel:
    async def test_a_running_turn(self, ada: AsyncClient) -> None:
        with ScriptedProvider.playing(["One ", 60]) as script:
            response = await post(ada, "/chat/stream/", {"text": "Hello"})
            chunks = response.streaming_content.__aiter__()
            (first,) = frames(await anext(chunks))
            cancelled = await post(ada, "/chat/cancel/", {"turn_id": first["turn_id"]})
            assert script.open_streams == 0
            rest = frames(b"".join([chunk async for chunk in chunks]))
        assert (cancelled.status_code, cancelled.json()) == (200, {"cancelled": True})
        assert [event["code"] for event in rest] == ["cancelled"]
        turn = await ChatTurn.objects.aget()
        assert turn.state == "cancelled"
        assert "One " in [message.content async for message in turn.messages.all()]
        assert (await post(ada, "/chat/cancel/", {"turn_id": turn.pk})).json() == {"cancelled": False}

    async def test_a_paused_turn(self, ada: AsyncClient) -> None:
        with ScriptedProvider.playing([create("Zinc")], ["Next"]):
            asked = await stream(ada)
            assert (await post(ada, "/chat/cancel/", {"turn_id": asked[0]["turn_id"]})).json() == {"cancelled": True}
            assert kinds(await stream(ada)) == ["text_chunk", "done"]
        word = {"confirmation_id": asked[-1]["id"], "confirmed": True}
        (event,) = (await post(ada, "/chat/confirm/", word)).json()["events"]
        assert event["code"] == "confirmation_unavailable"
        assert not await Material.objects.aexists()

    async def test_unknown_and_foreign_turns_are_not_found(self, ada: AsyncClient, bob: AsyncClient) -> None:
        with ScriptedProvider.playing(["Hi"]):
            turn_id = (await stream(ada))[0]["turn_id"]
        answers = [await post(bob, "/chat/cancel/", {"turn_id": id}) for id in (turn_id, "unheard-of", "x" * 500)]
        assert {answer.status_code for answer in answers} == {404}
        assert len({answer.content for answer in answers}) == 1

    @pytest.mark.parametrize("body", [b"", b"[1]", {}, {"turn_id": 7}], ids=str)
    async def test_malformed(self, ada: AsyncClient, body: Any) -> None:
        response = await post(ada, "/chat/cancel/", body)
        assert response.status_code == 400
        assert response.json()["code"] == "bad_event"


class TestEventsOfATurn:
    async def test_of_an_ended_one_from_any_place(self, ada: AsyncClient) -> None:
        with ScriptedProvider.playing(["One ", "two ", "three"]):
            events = await stream(ada)
        url = reverse("gm_chat:turn_events", args=[events[0]["turn_id"]])
        assert url == f"/chat/turns/{events[0]['turn_id']}/events"
        assert await read(await ada.get(url)) == events
        assert await read(await ada.get(url, {"after": "2"})) == events[2:]
        assert await read(await ada.get(url, headers={"Last-Event-ID": "3"})) == events[3:]
        assert await read(await ada.get(url, {"after": "1"}, headers={"Last-Event-ID": "3"})) == events[3:]
        for after in ("4", "99"):
            response = await ada.get(url, headers={"Last-Event-ID": after})
            assert (response.status_code, response.content) == (204, b"")  # an EventSource does not ask again

    async def test_live_while_it_runs(self, ada: AsyncClient) -> None:
        gate = asyncio.Event()
        with ScriptedProvider.playing(["One ", gate.wait, "two"]):
            response = await post(ada, "/chat/stream/", {"text": "Hello"})
            chunks = response.streaming_content.__aiter__()
            (first,) = frames(await anext(chunks))
            response.close()
            again = await ada.get(f"/chat/turns/{first['turn_id']}/events", headers={"Last-Event-ID": "1"})
            assert (again.status_code, again["Content-Type"]) == (200, "text/event-stream; charset=utf-8")
            assert again["Content-Encoding"] == "identity"
            gate.set()
            rest = await read(again)
        assert [event.get("content") for event in rest] == ["two", None]
        assert (await ChatTurn.objects.aget()).state == "done"

    async def test_a_paused_one_ends_at_its_question(self, ada: AsyncClient) -> None:
        with ScriptedProvider.playing([create("Zinc")]):
            asked = await stream(ada)
        url = f"/chat/turns/{asked[0]['turn_id']}/events"
        assert await read(await ada.get(url)) == asked
        assert (await ada.get(url, {"after": "2"})).status_code == 204

    async def test_unknown_and_foreign_ones_are_not_found(self, ada: AsyncClient, bob: AsyncClient) -> None:
        with ScriptedProvider.playing(["Hi"]):
            turn_id = (await stream(ada))[0]["turn_id"]
        answers = [
            await client.get(f"/chat/turns/{id}/events")
            for client in (bob, AsyncClient())
            for id in (turn_id, "unheard-of")
        ]
        assert {answer.status_code for answer in answers} == {404}
        assert len({answer.content for answer in answers}) == 1

    @pytest.mark.parametrize("after", ["-1", "x", "1.5", "٣", "9" * 30, "1 "])
    async def test_a_place_that_is_none(self, ada: AsyncClient, after: str) -> None:
        assert (await ada.get("/chat/turns/t1/events", {"after": after})).status_code == 400

    async def test_a_denied_permission(self, ada: AsyncClient, chat: Any) -> None:
        chat.GM_CHAT = CHAT | {"permission": lambda user, scope: False}
        assert (await ada.get("/chat/turns/t1/events")).status_code == 403
        assert (await ada.get("/chat/confirmations/")).status_code == 403
        assert (await post(ada, "/chat/cancel/", {"turn_id": "t1"})).status_code == 403

    def test_wsgi_is_told(self) -> None:
        assert Client().get("/chat/turns/t1/events").status_code == 501


@pytest.mark.parametrize("path", ["/chat/", "/chat/stream/"])
class TestTheSameMessageAgain:
    async def ask(self, client: AsyncClient, path: str, body: Any, **extra: Any) -> list[dict[str, Any]]:
        response = await post(client, path, body, **extra)
        events: list[dict[str, Any]] = await read(response) if response.streaming else response.json()["events"]
        return events

    @pytest.mark.parametrize("place", ["header", "body"])
    async def test_joins_the_first_one(self, ada: AsyncClient, path: str, place: str) -> None:
        gate = asyncio.Event()
        body = {"text": "Hello"} | ({"id": "m1"} if place == "body" else {})
        extra: Any = {"headers": {"Idempotency-Key": "m1"}} if place == "header" else {}
        with ScriptedProvider.playing(["One ", gate.wait, "two"]) as script:
            both = [asyncio.create_task(self.ask(ada, path, body, **extra)) for _ in range(2)]
            await asyncio.sleep(0.2)
            gate.set()
            first, second = await asyncio.gather(*both)
            third = await self.ask(ada, path, body, **extra)
        assert first == second == third
        assert kinds(first) == ["text_chunk", "text_chunk", "done"]
        assert len(script.requests) == 1
        assert await (await ChatConversation.objects.aget()).messages.acount() == 2

    async def test_with_another_text_it_is_a_conflict(self, ada: AsyncClient, path: str) -> None:
        with ScriptedProvider.playing(["Hi"]):
            await self.ask(ada, path, {"text": "Hello", "id": "m1"})
            (event,) = await self.ask(ada, path, {"text": "Other", "id": "m1"})
        assert event["code"] == "idempotency_conflict"

    async def test_of_somebody_else_it_is_another(self, ada: AsyncClient, bob: AsyncClient, path: str) -> None:
        with ScriptedProvider.playing(["One"], ["Two"]):
            first = await self.ask(ada, path, {"text": "Hello", "id": "m1"})
            second = await self.ask(bob, path, {"text": "Hello", "id": "m1"})
        assert first[0]["turn_id"] != second[0]["turn_id"]

    async def test_an_id_that_is_none(self, ada: AsyncClient, path: str) -> None:
        (event,) = await self.ask(ada, path, {"text": "Hello", "id": 7})
        assert event["code"] == "bad_message"
        (event,) = await self.ask(ada, path, {"text": "Hello"}, headers={"Idempotency-Key": "x" * 200})
        assert event["code"] == "bad_message"

    async def test_another_message_meanwhile_is_refused(self, ada: AsyncClient, path: str) -> None:
        gate = asyncio.Event()
        with ScriptedProvider.playing(["One ", gate.wait]):
            first = asyncio.create_task(self.ask(ada, path, {"text": "Hello"}))
            await asyncio.sleep(0.2)
            (event,) = await self.ask(ada, path, {"text": "Hello"})
            gate.set()
            await first
        assert event["code"] == "turn_in_progress"


@pytest.mark.parametrize(
    ("path", "method"),
    [
        ("/chat/confirm/", "get"),
        ("/chat/cancel/", "get"),
        ("/chat/confirmations/", "post"),
        ("/chat/turns/t1/events", "post"),
    ],
)
async def test_other_methods(async_client: AsyncClient, path: str, method: str) -> None:
    assert (await getattr(async_client, method)(path)).status_code == 405


@pytest.mark.parametrize("path", ["/chat/confirm/", "/chat/cancel/"])
async def test_a_missing_csrf_token(path: str, settings: Any) -> None:
    settings.MIDDLEWARE = [name for name in settings.MIDDLEWARE if "Csrf" not in name]
    client = AsyncClient(enforce_csrf_checks=True)
    assert (await post(client, path, {})).status_code == 403
    client.cookies["csrftoken"] = TOKEN
    assert (await post(client, path, {}, headers={"X-CSRFToken": TOKEN})).status_code in {200, 400}


def test_a_wsgi_server_confirms_cancels_and_lists(chat: Any) -> None:
    """What paused under ASGI can be taken up by a process that serves WSGI."""
    user = get_user_model()._default_manager.create_superuser("ada")
    asgi, wsgi = AsyncClient(), Client()
    for client in (asgi, wsgi):
        client.force_login(user)
    with ScriptedProvider.playing([create("Zinc")], ["Done."], [create("Tin")]):
        asked = async_to_sync(stream)(asgi)
        (waiting,) = wsgi.get("/chat/confirmations/").json()["confirmations"]
        word = {"confirmation_id": waiting["id"], "confirmed": True}
        body = wsgi.post("/chat/confirm/", word, content_type="application/json").json()
        assert kinds(body["events"]) == ["tool_result", "text_chunk", "done"]
        assert body["events"][0]["seq"] == asked[-1]["seq"] + 1
        turn = async_to_sync(stream)(asgi)[0]["turn_id"]
        answer = wsgi.post("/chat/cancel/", {"turn_id": turn}, content_type="application/json")
        assert answer.json() == {"cancelled": True}
    assert Material.objects.count() == 1


async def test_who_logged_out_has_no_turn_and_no_confirmation_any_more(ada: AsyncClient) -> None:
    with ScriptedProvider.playing([create("Zinc")]):
        asked = await stream(ada)
    await ada.alogout()
    word = {"confirmation_id": asked[-1]["id"], "confirmed": True}
    (event,) = (await post(ada, "/chat/confirm/", word)).json()["events"]
    assert event["code"] == "bad_event"
    assert (await ada.get("/chat/confirmations/")).json() == {"confirmations": []}
    assert (await ada.get(f"/chat/turns/{asked[0]['turn_id']}/events")).status_code == 404
    assert (await post(ada, "/chat/cancel/", {"turn_id": asked[0]["turn_id"]})).status_code == 404
    assert not await Material.objects.aexists()


async def test_one_anonymous_session_does_not_see_another_s_turn() -> None:
    own, other = AsyncClient(), AsyncClient()
    with ScriptedProvider.playing(["Hi"], repeat=True):
        events = await stream(own)
        await stream(other)
    url = f"/chat/turns/{events[0]['turn_id']}/events"
    assert await read(await own.get(url)) == events
    assert (await other.get(url)).status_code == 404
