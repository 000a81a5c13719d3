from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth import get_user_model
from django.contrib.sessions.backends.db import SessionStore
from django.db import connection
from django.test import AsyncClient
from testproject.shop.models import Material
from testproject.socket_client import connected

from gm_chat import routing
from gm_chat.models import ChatConversation, ChatMessage, ChatPendingConfirmation, ChatTurn
from gm_chat.testing.scripted import ScriptedProvider, call
from gm_chat.transports import stage
from gm_chat.wiring import get_runtime

pytestmark = pytest.mark.django_db(transaction=True)

CHAT: dict[str, Any] = {
    "enabled": True,
    "provider": "gm_chat.testing.ScriptedProvider",
    "allowed_mutations": ["createMaterial"],
    "confirm_mutations": ["createMaterial"],
}
CREATE = call("mutate", mutation="createMaterial", input={"name": "Zinc", "density": 7.1})


@pytest.fixture(autouse=True)
def chat(settings: Any) -> Any:
    settings.GM_CHAT = CHAT
    return settings


async def log_in(name: str = "ada", *, superuser: bool = True) -> tuple[AsyncClient, dict[str, str]]:
    """A user's browser, and the cookies that a socket of it sends."""
    users = get_user_model()._default_manager
    user = await users.filter(username=name).afirst() or await users.acreate(username=name, is_superuser=superuser)
    client = AsyncClient()
    await client.aforce_login(user)
    return client, {name: morsel.value for name, morsel in client.cookies.items()}


def kinds(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events]


def codes(events: list[dict[str, Any]]) -> list[str | None]:
    return [event.get("code") for event in events if event["type"] == "error"]


async def test_turn_after_turn_over_one_socket() -> None:
    _, cookies = await log_in()
    with ScriptedProvider.playing(["Let me look. ", call("missing", a=1)], ["Nothing."], ["Bye."]) as script:
        async with connected(cookies=cookies) as socket:
            first = await socket.ask("Which parts?")
            second = await socket.ask("Thanks")
    assert kinds(first) == ["text_chunk", "tool_call", "tool_result", "text_chunk", "done"]
    assert [event["seq"] for event in first] == [1, 2, 3, 4, 5]
    assert kinds(second) == ["text_chunk", "done"]
    assert script.requests[2].messages[-1].content == "Thanks"
    assert (await ChatConversation.objects.aget()).user_id is not None


class TestHandshake:
    async def test_a_new_visitor_gets_a_session_and_keeps_it_over_http(self, async_client: AsyncClient) -> None:
        with ScriptedProvider.playing(["Hi"], ["Again"]):
            async with connected() as socket:
                await socket.ask("Hello")
            name, value = socket.headers[b"set-cookie"].decode().split(";")[0].split("=")
            assert b"HttpOnly" in socket.headers[b"set-cookie"]
            async_client.cookies[name] = value
            await async_client.post("/chat/", {"text": "And?"}, content_type="application/json")
        assert (await ChatConversation.objects.aget()).session_key == value

    @pytest.mark.parametrize("engine", ["cache", "cached_db", "file", "signed_cookies"])
    async def test_whatever_keeps_the_sessions(self, engine: str, chat: Any) -> None:
        chat.SESSION_ENGINE = f"django.contrib.sessions.backends.{engine}"
        cookies: dict[str, str] = {}
        with ScriptedProvider.playing(["Hi"], repeat=True):
            for _ in range(2):
                async with connected(cookies=cookies) as socket:
                    assert kinds(await socket.ask("Hello")) == ["text_chunk", "done"]
                    assert kinds(await socket.ask("Hello")) == ["text_chunk", "done"]
                assert (b"set-cookie" in socket.headers) is not cookies
                if not cookies:
                    name, value = socket.headers[b"set-cookie"].decode().split(";")[0].split("=", 1)
                    cookies = {name: value.strip('"')}
        assert await (await ChatConversation.objects.aget()).messages.acount() == 8

    async def test_a_visitor_whose_session_is_gone_gets_another(self) -> None:
        async with connected(cookies={"sessionid": "x" * 32}) as socket:
            assert b"set-cookie" in socket.headers

    async def test_a_known_visitor_gets_no_cookie(self) -> None:
        _, cookies = await log_in()
        async with connected(cookies=cookies) as socket:
            assert socket.headers == {}

    @pytest.mark.parametrize("origin", [None, "null", "http://evil.test", "http://testserver.evil.test", "testserver"])
    async def test_a_foreign_origin_is_told_so(self, origin: str | None, chat: Any) -> None:
        chat.ALLOWED_HOSTS = ["testserver"]
        async with connected(origin=origin) as socket:
            assert socket.headers == {}  # accepted, but nobody is made a session
            assert await socket.closed() == 4403

    async def test_a_list_of_origins_counts_at_once(self, chat: Any) -> None:
        chat.GM_CHAT = CHAT | {"allowed_origins": ["http://front.test"]}
        with ScriptedProvider.playing(["Hi"]):
            async with connected(origin="http://front.test") as socket:
                await socket.ask("Hello")
        async with connected(origin="http://testserver") as socket:
            assert await socket.closed() == 4403

    @pytest.mark.parametrize("colour", ["sync", "async"])
    async def test_a_denied_permission(self, colour: str, chat: Any) -> None:
        seen: list[Any] = []

        def deny(user: Any, scope: Any) -> bool:
            seen.append((user.is_anonymous, scope["type"], scope["path"], get_user_model()._default_manager.exists()))
            return False

        async def deny_async(user: Any, scope: Any) -> bool:
            seen.append((user.is_anonymous, scope["type"], scope["path"], False))
            return False

        chat.GM_CHAT = CHAT | {"permission": deny if colour == "sync" else deny_async}
        async with connected() as socket:
            assert await socket.closed() == 4403
        assert seen == [(True, "websocket", "/chat/", False)]

    async def test_a_chat_that_cannot_start(self, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
        async def fail(*_: Any) -> Any:
            raise RuntimeError("no database")

        monkeypatch.setattr("gm_chat.transports.handshake.run_db", fail)
        async with connected() as socket:
            assert await socket.closed() == 1011
        assert "no database" in caplog.text


class TestWhatIsHeardWhileATurnStreams:
    async def test_a_second_message_is_refused_at_once(self) -> None:
        gate = asyncio.Event()
        with ScriptedProvider.playing(["One ", gate.wait, "two"]):
            async with connected() as socket:
                await socket.say("Hello")
                assert (await socket.event())["content"] == "One "
                await socket.say("And?")
                refusal = await socket.event(1)
                gate.set()
                rest = await socket.rest()
        assert refusal["code"] == "turn_in_progress"
        assert "turn_id" not in refusal
        assert kinds(rest) == ["text_chunk", "done"]

    async def test_the_same_message_again_is_not_another(self) -> None:
        gate = asyncio.Event()
        with ScriptedProvider.playing(["One ", gate.wait, "two"]) as script:
            async with connected() as socket:
                await socket.say("Hello", id="m1")
                await socket.say("Hello", id="m1")
                gate.set()
                events = await socket.rest()
                again = await socket.ask("Hello", id="m1")
                other = await socket.ask("Something else", id="m1")
        assert kinds(events) == ["text_chunk", "text_chunk", "done"]
        assert again == events
        assert codes(other) == ["idempotency_conflict"]
        assert len(script.requests) == 1

    async def test_a_second_socket_of_the_same_visitor_is_refused_too(self) -> None:
        _, cookies = await log_in()
        gate = asyncio.Event()
        with ScriptedProvider.playing(["One ", gate.wait]):
            async with connected(cookies=cookies) as socket, connected(cookies=cookies) as other:
                await socket.say("Hello")
                await socket.event()
                assert codes(await other.ask("Hello")) == ["turn_in_progress"]
                gate.set()
                await socket.rest()

    async def test_cancel_stops_the_provider(self) -> None:
        with ScriptedProvider.playing(["One ", 60], ["Next"]) as script:
            async with connected() as socket:
                await socket.say("Hello")
                await socket.event()
                await socket.send({"type": "cancel"})
                async with asyncio.timeout(1):
                    assert codes(await socket.rest()) == ["cancelled"]
                assert script.open_streams == 0
                assert kinds(await socket.ask("And?")) == ["text_chunk", "done"]
        turn = await ChatTurn.objects.order_by("created").afirst()
        assert turn is not None
        assert turn.state == "cancelled"

    async def test_cancel_before_the_turn_is_accepted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        store = get_runtime().store
        accept, gate = store.open_turn, asyncio.Event()

        async def slow(*args: Any, **kwargs: Any) -> Any:
            await gate.wait()
            return await accept(*args, **kwargs)

        monkeypatch.setattr(store, "open_turn", slow)
        with ScriptedProvider.playing([60]):
            async with connected() as socket:
                await socket.say("Hello")
                await socket.send({"type": "cancel"})
                await asyncio.sleep(0.05)
                gate.set()
                assert codes(await socket.rest()) == ["cancelled"]

    async def test_cancel_of_nothing_is_nothing(self) -> None:
        with ScriptedProvider.playing(["Hi"]):
            async with connected() as socket:
                await socket.send({"type": "cancel"})
                assert await socket.is_silent()
                assert kinds(await socket.ask("Hello")) == ["text_chunk", "done"]

    async def test_the_next_message_may_follow_the_last_event_at_once(self) -> None:
        with ScriptedProvider.playing(["Hi"], repeat=True):
            async with connected() as socket:
                for _ in range(20):
                    assert kinds(await socket.ask("Hello")) == ["text_chunk", "done"]


class TestLeaving:
    async def test_without_grace_the_turn_ends_at_once(self, chat: Any) -> None:
        chat.GM_CHAT = CHAT | {"resume_grace_seconds": 0}
        with ScriptedProvider.playing(["One ", 60]) as script:
            async with connected() as socket:
                await socket.say("Hello")
                await socket.event()
            async with asyncio.timeout(1):
                while script.open_streams or (await ChatTurn.objects.aget()).state == "running":  # noqa: ASYNC110 - a row
                    await asyncio.sleep(0.01)
        assert (await ChatTurn.objects.aget()).state == "cancelled"

    async def test_within_the_grace_another_socket_takes_up_the_turn(self) -> None:
        _, cookies = await log_in()
        gate = asyncio.Event()
        with ScriptedProvider.playing(["One ", "two ", gate.wait, "three"]):
            async with connected(cookies=cookies) as socket:
                await socket.say("Hello")
                first = await socket.event()
            async with connected(cookies=cookies) as socket:
                await socket.send({"type": "resume", "turn_id": first["turn_id"], "after_seq": first["seq"]})
                second = await socket.event()
                gate.set()
                rest = await socket.rest()
                assert codes(await socket.ask("And?")) == ["chat_error"]  # the script is over: the socket is free
        assert [event.get("content") for event in (first, second, *rest)] == ["One ", "two ", "three", None]

    async def test_somebody_else_s_turn_is_not_there(self) -> None:
        _, cookies = await log_in()
        _, others = await log_in("bob")
        with ScriptedProvider.playing(["Hi"]):
            async with connected(cookies=cookies) as socket:
                (first, _) = await socket.ask("Hello")
        async with connected(cookies=others) as socket:
            for turn_id in (first["turn_id"], "unheard-of"):
                await socket.send({"type": "resume", "turn_id": turn_id})
                assert codes([await socket.event()]) == ["bad_event"]


class TestConfirmation:
    async def test_approved(self) -> None:
        _, cookies = await log_in()
        with ScriptedProvider.playing(["I will. ", CREATE], ["Done."]) as script:
            async with connected(cookies=cookies) as socket:
                asked = await socket.ask("Add zinc")
                assert kinds(asked) == ["text_chunk", "tool_call", "confirm_mutation"]
                assert not await Material.objects.aexists()
                assert codes(await socket.ask("And?")) == ["confirmation_pending"]
                await socket.send({"type": "confirm", "confirmation_id": asked[-1]["id"], "confirmed": True})
                rest = await socket.rest()
                await socket.send({"type": "confirm", "confirmation_id": asked[-1]["id"], "confirmed": True})
                assert codes([await socket.event()]) == ["confirmation_unavailable"]
        assert kinds(rest) == ["tool_result", "text_chunk", "done"]
        assert rest[0]["result"]["status"] == "executed"
        assert [event["seq"] for event in (*asked, *rest)] == [1, 2, 3, 4, 5, 6]
        assert rest[-1]["usage"] == {"input_tokens": 20, "output_tokens": 10}
        assert script.requests[1].results[0]["status"] == "executed"
        assert await Material.objects.acount() == 1

    async def test_a_double_click_runs_it_once(self) -> None:
        _, cookies = await log_in()
        with ScriptedProvider.playing([CREATE], ["Done."]):
            async with connected(cookies=cookies) as socket:
                asked = await socket.ask("Add zinc")
                for _ in range(2):
                    await socket.send({"type": "confirm", "confirmation_id": asked[-1]["id"], "confirmed": True})
                events = [await socket.event() for _ in range(4)]
        assert codes(events) == ["confirmation_unavailable"]
        assert sorted(kinds(events)) == ["done", "error", "text_chunk", "tool_result"]
        assert await Material.objects.acount() == 1

    async def test_rejected(self) -> None:
        _, cookies = await log_in()
        with ScriptedProvider.playing([CREATE], ["As you wish."]):
            async with connected(cookies=cookies) as socket:
                asked = await socket.ask("Add zinc")
                await socket.send({"type": "confirm", "confirmation_id": asked[-1]["id"], "confirmed": False})
                rest = await socket.rest()
        assert rest[0]["result"] == {"status": "cancelled", "reason": "user_rejected"}
        assert kinds(rest) == ["tool_result", "text_chunk", "done"]
        assert not await Material.objects.aexists()

    async def test_expired_while_the_socket_waits(self, chat: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        chat.GM_CHAT = CHAT | {"confirm_timeout_seconds": 0.3}
        monkeypatch.setattr(stage, "LAPSE_SECONDS", 0.1)
        _, cookies = await log_in()
        with ScriptedProvider.playing([CREATE], ["Next"]):
            async with connected(cookies=cookies) as socket:
                asked = await socket.ask("Add zinc")
                rest = await socket.rest()
                assert kinds(await socket.ask("And?")) == ["text_chunk", "done"]
        assert kinds(rest) == ["tool_result", "done"]
        assert rest[0]["result"] == {"status": "cancelled", "reason": "confirmation_timed_out"}
        assert rest[0]["id"] == asked[-1]["id"]
        assert (await ChatPendingConfirmation.objects.aget()).state == "expired"

    async def test_cancelled_while_it_waits(self) -> None:
        _, cookies = await log_in()
        with ScriptedProvider.playing([CREATE], ["Next"]):
            async with connected(cookies=cookies) as socket:
                await socket.ask("Add zinc")
                await socket.send({"type": "cancel"})
                rest = await socket.rest()
                assert kinds(await socket.ask("And?")) == ["text_chunk", "done"]
        assert kinds(rest) == ["tool_result", "error"]
        assert codes(rest) == ["cancelled"]
        assert not await Material.objects.aexists()

    async def test_a_reload_finds_it_again(self) -> None:
        client, cookies = await log_in()
        with ScriptedProvider.playing([CREATE], ["Done."]):
            async with connected(cookies=cookies) as socket:
                asked = await socket.ask("Add zinc")
            (waiting,) = (await client.get("/chat/confirmations/")).json()["confirmations"]
            assert waiting["id"] == asked[-1]["id"]
            async with connected(cookies=cookies) as socket:
                await socket.send({"type": "resume", "turn_id": waiting["turn_id"], "after_seq": 0})
                assert await socket.rest() == asked
                await socket.send({"type": "confirm", "confirmation_id": waiting["id"], "confirmed": True})
                assert kinds(await socket.rest()) == ["tool_result", "text_chunk", "done"]
        assert await Material.objects.acount() == 1

    async def test_somebody_else_s_confirmation(self) -> None:
        _, cookies = await log_in()
        _, others = await log_in("bob")
        with ScriptedProvider.playing([CREATE]):
            async with connected(cookies=cookies) as socket, connected(cookies=others) as other:
                asked = await socket.ask("Add zinc")
                for confirmation_id in (asked[-1]["id"], "unheard-of"):
                    await other.send({"type": "confirm", "confirmation_id": confirmation_id, "confirmed": True})
                    assert codes([await other.event()]) == ["bad_event"]
        assert not await Material.objects.aexists()


class TestWhoIsNotWelcomeAnyMore:
    async def test_a_logged_out_user(self) -> None:
        client, cookies = await log_in()
        with ScriptedProvider.playing([CREATE]):
            async with connected(cookies=cookies) as socket:
                asked = await socket.ask("Add zinc")
                await client.alogout()
                await socket.send({"type": "confirm", "confirmation_id": asked[-1]["id"], "confirmed": True})
                assert await socket.closed() == 4403
        assert not await Material.objects.aexists()

    async def test_a_user_whose_password_was_changed(self) -> None:
        _, cookies = await log_in()
        user = await get_user_model()._default_manager.aget()
        async with connected(cookies=cookies) as socket:
            user.set_password("new")
            await user.asave()
            await socket.say("Hello")
            assert await socket.closed() == 4403

    async def test_a_visitor_whose_session_is_deleted(self) -> None:
        async with connected() as socket:
            key = socket.headers[b"set-cookie"].decode().split(";")[0].split("=")[1]
            await sync_to_async(SessionStore(key).delete)()
            await socket.say("Hello")
            assert await socket.closed() == 4403

    async def test_a_permission_that_is_lost_meanwhile(self, chat: Any) -> None:
        def named_ada(user: Any, scope: Any) -> bool:
            return bool(user.username == "ada" == scope["user"].username)

        chat.GM_CHAT = CHAT | {"permission": named_ada}
        _, cookies = await log_in()
        with ScriptedProvider.playing([CREATE]):
            async with connected(cookies=cookies) as socket:
                asked = await socket.ask("Add zinc")
                await get_user_model()._default_manager.aupdate(username="eve")
                await socket.send({"type": "confirm", "confirmation_id": asked[-1]["id"], "confirmed": True})
                assert await socket.closed() == 4403
        assert not await Material.objects.aexists()

    async def test_a_right_that_is_lost_before_the_confirmation(self) -> None:
        _, cookies = await log_in()
        with ScriptedProvider.playing([CREATE], ["I could not."]):
            async with connected(cookies=cookies) as socket:
                asked = await socket.ask("Add zinc")
                await get_user_model()._default_manager.aupdate(is_superuser=False)
                await socket.send({"type": "confirm", "confirmation_id": asked[-1]["id"], "confirmed": True})
                rest = await socket.rest()
        assert "error" in rest[0]["result"]
        assert not await Material.objects.aexists()


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (b"\x00\xff", "bad_message"),
        (b'{"type": "message", "text": "Hi"}', "bad_message"),
        ("", "bad_message"),
        ("Hello", "bad_message"),
        ("[1, 2]", "bad_message"),
        ("null", "bad_message"),
        ("[" * 10_000, "bad_message"),
        ('{"a":' * 10_000 + "1" + "}" * 10_000, "bad_message"),
        ({"type": "message"}, "bad_message"),
        ({"type": "message", "text": " "}, "bad_message"),
        ({"type": "message", "text": 7}, "bad_message"),
        ({"type": "message", "text": "x" * 32_001}, "bad_message"),
        ({"type": "message", "text": "x" * 10_000_000}, "bad_message"),
        ({"type": "message", "text": "Hi", "id": 7}, "bad_message"),
        ({"text": "Hi"}, "bad_event"),
        ({"type": "shout", "text": "Hi"}, "bad_event"),
        ({"type": "confirm", "confirmation_id": "x"}, "bad_event"),
        ({"type": "confirm", "confirmation_id": "x", "confirmed": True}, "bad_event"),
        ({"type": "resume"}, "bad_event"),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_hostile_frames_get_a_clear_error_and_the_socket_lives(frame: Any, code: str) -> None:
    with ScriptedProvider.playing(["Still here."]):
        async with connected() as socket:
            await socket.send(frame)
            refusal = await socket.event()
            assert (refusal["type"], refusal["code"]) == ("error", code)
            assert refusal["message"]
            assert kinds(await socket.ask("Hello")) == ["text_chunk", "done"]


async def test_a_failure_of_ours_is_told_in_general_words_and_the_socket_lives(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with ScriptedProvider.playing(["Hi"]):
        async with connected() as socket:
            with monkeypatch.context() as patch:
                patch.setattr("gm_chat.transports.handshake.load_again", lambda *_: json.loads("secret"))
                (refusal,) = await socket.ask("Hello")
            assert refusal["code"] == "chat_error"
            assert refusal["correlation_id"] in caplog.text
            assert kinds(await socket.ask("Hello")) == ["text_chunk", "done"]


async def test_a_flood_of_frames_is_answered_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    running = most = 0
    confirm = get_runtime().runner.confirm

    async def counted(word: Any) -> Any:
        nonlocal running, most
        running += 1
        most = max(most, running)
        try:
            return await confirm(word)
        finally:
            running -= 1

    monkeypatch.setattr(get_runtime().runner, "confirm", counted)
    with ScriptedProvider.playing(["Hi"]):
        async with connected() as socket:
            for _ in range(100):
                await socket.send({"type": "confirm", "confirmation_id": "x", "confirmed": True})
            assert codes([await socket.event() for _ in range(100)]) == ["bad_event"] * 100
            assert kinds(await socket.ask("Hello")) == ["text_chunk", "done"]
    assert most <= stage.MOST_TASKS


class TestWithoutTheChatsTables:
    """Turns run, and a pending confirmation is this process's own; it can be used once."""

    @pytest.fixture
    def no_tables(self) -> Any:
        models = (ChatPendingConfirmation, ChatMessage, ChatTurn, ChatConversation)
        for model in models:
            with connection.schema_editor() as editor:
                editor.alter_db_table(model, model._meta.db_table, f"away_{model._meta.db_table}")
        yield
        for model in reversed(models):
            with connection.schema_editor() as editor:
                editor.alter_db_table(model, f"away_{model._meta.db_table}", model._meta.db_table)

    async def test_a_confirmation(self, no_tables: None) -> None:
        _, cookies = await log_in()
        with ScriptedProvider.playing([CREATE], ["Done."]):
            async with connected(cookies=cookies) as socket:
                asked = await socket.ask("Add zinc")
                assert codes(await socket.ask("And?")) == ["confirmation_pending"]
                for _ in range(2):
                    await socket.send({"type": "confirm", "confirmation_id": asked[-1]["id"], "confirmed": True})
                events = [await socket.event() for _ in range(4)]
        assert codes(events) == ["confirmation_unavailable"]
        assert sorted(kinds(events)) == ["done", "error", "text_chunk", "tool_result"]
        assert await Material.objects.acount() == 1


class TestALoginOfTheProjectsOwn:
    """A middleware that puts a user into the scope without any session, as token logins do."""

    @staticmethod
    def application(user: Any) -> Any:
        async def application(scope: Any, receive: Any, send: Any) -> None:
            await routing.chat({**scope, "user": user}, receive, send)

        return application

    async def test_the_user_asks(self) -> None:
        user = await get_user_model()._default_manager.acreate(username="ada")
        with ScriptedProvider.playing(["Hi"], repeat=True):
            async with connected(application=self.application(user)) as socket:
                assert socket.headers == {}
                assert kinds(await socket.ask("Hello")) == ["text_chunk", "done"]
                await get_user_model()._default_manager.aupdate(is_active=False)
                await socket.say("Hello")
                assert await socket.closed() == 4403
        assert (await ChatConversation.objects.aget()).user_id == user.pk

    async def test_without_anybody_it_is_an_address(self) -> None:
        with ScriptedProvider.playing(["Hi"], repeat=True):
            async with connected(application=routing.chat) as socket:
                assert kinds(await socket.ask("Hello")) == ["text_chunk", "done"]
                assert kinds(await socket.ask("Hello")) == ["text_chunk", "done"]
        assert not await ChatConversation.objects.aexists()
