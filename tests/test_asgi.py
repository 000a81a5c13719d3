from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from channels.routing import URLRouter
from django.db import connection
from testproject.socket_client import connected

import gm_chat.asgi
from gm_chat.asgi import websocket_application
from gm_chat.routing import chat, websocket_urlpatterns
from gm_chat.testing.scripted import ScriptedProvider

ROOT = Path(__file__).resolve().parents[1]


def run(code: str, **environment: str) -> str:
    """What a fresh process prints."""
    path = os.pathsep.join([str(ROOT / "tests"), str(ROOT)])
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=os.environ | {"PYTHONPATH": path, "DJANGO_SETTINGS_MODULE": "testproject.settings"} | environment,
        capture_output=True, text=True, check=True, timeout=30,
    ).stdout.strip()  # fmt: skip


@pytest.mark.django_db(transaction=True)
class TestReadyMade:
    async def test_it_serves_both_protocols(self) -> None:
        with ScriptedProvider.playing(["Hi"]):
            async with connected(application=gm_chat.asgi.application) as socket:
                assert [event["type"] for event in await socket.ask("Hello")] == ["text_chunk", "done"]
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        messages = [{"type": "http.request", "body": b""}]

        async def receive() -> Any:
            return messages.pop() if messages else await asyncio.Event().wait()

        scope = {"type": "http", "method": "GET", "path": "/chat/", "query_string": b"", "headers": []}
        await gm_chat.asgi.application(scope, receive, send)
        assert sent[0]["status"] == 405

    async def test_it_waits_for_turns_when_the_server_stops(self) -> None:
        inbox: asyncio.Queue[Any] = asyncio.Queue()
        outbox: asyncio.Queue[Any] = asyncio.Queue()
        life = asyncio.create_task(gm_chat.asgi.application({"type": "lifespan"}, inbox.get, outbox.put))
        await inbox.put({"type": "lifespan.startup"})
        assert await outbox.get() == {"type": "lifespan.startup.complete"}
        gate = asyncio.Event()
        with ScriptedProvider.playing(["One ", gate.wait]) as script:
            async with connected() as socket:
                await socket.say("Hello")
                await socket.event()
                await inbox.put({"type": "lifespan.shutdown"})
                await asyncio.sleep(0.05)
                assert outbox.empty()
                gate.set()
                assert await asyncio.wait_for(outbox.get(), 5) == {"type": "lifespan.shutdown.complete"}
            assert script.open_streams == 0
        await life

    async def test_managers_and_catalogs_are_there_before_the_first_request(self, settings: Any) -> None:
        read: list[str] = []

        def catalog() -> dict[str, Any]:
            asyncio.run(asyncio.sleep(0))  # an error on a thread that runs an event loop
            read.append(connection.vendor)
            return {}

        settings.GM_CHAT = {**settings.GM_CHAT, "planned": {"catalog": catalog}}
        inbox: asyncio.Queue[Any] = asyncio.Queue()
        outbox: asyncio.Queue[Any] = asyncio.Queue()
        life = asyncio.create_task(gm_chat.asgi.lifespan({"type": "lifespan"}, inbox.get, outbox.put))
        for step in ("startup", "shutdown"):
            await inbox.put({"type": f"lifespan.{step}"})
            assert await outbox.get() == {"type": f"lifespan.{step}.complete"}
            assert len(read) == 1
        await life

    async def test_a_chat_that_cannot_be_built_does_not_keep_the_server_from_starting(
        self, settings: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        settings.GM_CHAT = {"enabled": "perhaps"}
        inbox: asyncio.Queue[Any] = asyncio.Queue()
        outbox: asyncio.Queue[Any] = asyncio.Queue()
        life = asyncio.create_task(gm_chat.asgi.lifespan({"type": "lifespan"}, inbox.get, outbox.put))
        for step in ("startup", "shutdown"):
            await inbox.put({"type": f"lifespan.{step}"})
            assert await outbox.get() == {"type": f"lifespan.{step}.complete"}
        await life
        assert "the chat cannot be built" in caplog.text

    async def test_the_collector_leaves_what_lives_as_long_as_the_server_alone(self) -> None:
        inbox: asyncio.Queue[Any] = asyncio.Queue()
        outbox: asyncio.Queue[Any] = asyncio.Queue()
        gc.unfreeze()
        life = asyncio.create_task(gm_chat.asgi.lifespan({"type": "lifespan"}, inbox.get, outbox.put))
        await inbox.put({"type": "lifespan.startup"})
        await outbox.get()
        assert gc.get_freeze_count() > 1_000
        await inbox.put({"type": "lifespan.shutdown"})
        await life
        gc.unfreeze()

    def test_there_is_nothing_else(self) -> None:
        with pytest.raises(AttributeError, match="no attribute 'wsgi'"):
            gm_chat.asgi.wsgi  # noqa: B018 - asking for it is the test


@pytest.mark.django_db(transaction=True)
class TestPath:
    async def test_it_is_that_of_http_read_when_a_socket_is_opened(self, settings: Any) -> None:
        application = websocket_application()
        for url, path in (("/assistant/", "/assistant/"), ("a/b", "/a/b"), ("/chat/", "/chat"), ("/", "/")):
            settings.GM_CHAT = settings.GM_CHAT | {"url": url}
            with ScriptedProvider.playing(["Hi"]):
                async with connected(path=path, application=application) as socket:
                    await socket.ask("Hello")

    @pytest.mark.parametrize("path", ["/", "/chat/stream/", "/chatter/", "/other/"])
    async def test_other_paths_are_refused(self, path: str) -> None:
        with pytest.raises(AssertionError, match=r"websocket\.close"):
            async with connected(path=path):
                pass

    async def test_a_chat_that_is_not_enabled_has_none(self, settings: Any) -> None:
        settings.GM_CHAT = settings.GM_CHAT | {"enabled": False}
        with pytest.raises(AssertionError, match=r"websocket\.close"):
            async with connected():
                pass

    async def test_a_router_of_the_project(self) -> None:
        from channels.auth import AuthMiddlewareStack

        application = AuthMiddlewareStack(URLRouter(websocket_urlpatterns))
        with ScriptedProvider.playing(["Hi"]):
            async with connected(application=application) as socket:
                await socket.ask("Hello")

    async def test_origins_are_checked_in_any_router(self, settings: Any) -> None:
        settings.ALLOWED_HOSTS = ["testserver"]
        async with connected(origin="http://evil.test", application=chat) as socket:
            assert await socket.closed() == 4403


class TestImports:
    def test_routing_needs_neither_settings_nor_apps(self) -> None:
        code = """
            import os
            del os.environ["DJANGO_SETTINGS_MODULE"]
            from gm_chat.routing import websocket_urlpatterns
            from gm_chat.asgi import websocket_application
            from django.conf import settings
            print(settings.configured, len(websocket_urlpatterns))
        """
        assert run(code) == "False 1"

    def test_a_project_s_module_may_import_us_first(self) -> None:
        code = """
            from gm_chat.asgi import websocket_application
            from channels.routing import ProtocolTypeRouter
            from django.core.asgi import get_asgi_application
            application = ProtocolTypeRouter({"http": get_asgi_application(), "websocket": websocket_application()})
            print(sorted(application.application_mapping))
        """
        assert run(code) == "['http', 'websocket']"

    def test_the_ready_made_application_sets_django_up(self) -> None:
        code = """
            from gm_chat.asgi import application
            from gm_chat import asgi
            from django.apps import apps
            print(apps.ready, asgi.application is application, sorted(application.application_mapping))
        """
        assert run(code) == "True True ['http', 'lifespan', 'websocket']"

    @pytest.mark.parametrize("value", ["stock.application", "gm_chat.asgi.application"])
    def test_commands_run_whatever_asgi_application_says(self, value: str, tmp_path: Path) -> None:
        (tmp_path / "stock.py").write_text(
            "from django.core.asgi import get_asgi_application\napplication = get_asgi_application()\n"
        )
        (tmp_path / "stock_settings.py").write_text(
            f"from testproject.settings import *\nASGI_APPLICATION = {value!r}\n"
        )
        path = os.pathsep.join([str(tmp_path), str(ROOT / "tests"), str(ROOT)])
        code = """
            from django.core.management import execute_from_command_line
            execute_from_command_line(["manage.py", "check"])
            print("ran")
        """
        assert "ran" in run(code, PYTHONPATH=path, DJANGO_SETTINGS_MODULE="stock_settings")
