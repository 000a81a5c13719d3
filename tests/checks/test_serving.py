"""What the checks say about how a project serves the chat."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from channels.auth import AuthMiddlewareStack
from channels.consumer import AsyncConsumer
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import AllowedHostsOriginValidator
from django.apps import apps
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.core.checks import run_checks
from django.http import HttpResponse, StreamingHttpResponse
from django.test import override_settings
from django.urls import path, re_path
from django.utils.text import compress_sequence
from testproject.checking import CHAT
from testproject.planting import plant

from gm_chat.asgi import http_application, websocket_application
from gm_chat.checks import serving
from gm_chat.routing import websocket_urlpatterns

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

Run = Any


class TestRoutes:
    def test_absent_routes_come_with_the_line_to_add(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        from django.urls import NoReverseMatch

        def nowhere(name: str) -> str:
            raise NoReverseMatch

        monkeypatch.setattr(serving, "reverse", nowhere)
        found = run(chat={**CHAT, "url": "assistant"})["W004"]
        assert found.hint == 'Add to urlpatterns in testproject.urls: path("assistant/", include("gm_chat.urls")),'

    def test_a_urlconf_that_cannot_be_imported_is_django_s_finding(self, run: Run) -> None:
        with override_settings(ROOT_URLCONF="no_such_urlconf"):
            assert run() == {}

    def test_a_project_without_urls_needs_none(self, run: Run) -> None:
        with override_settings(ROOT_URLCONF=None):
            assert run() == {}

    def test_a_view_in_front_is_named(self, run: Run) -> None:
        from django.urls import include

        module = ModuleType("urlconf_with_a_page_in_front")
        patterns = [path("talk/", lambda request: HttpResponse("")), path("talk/", include("gm_chat.urls"))]
        module.urlpatterns = patterns  # type: ignore[attr-defined]  # what makes it a URLconf
        sys.modules[module.__name__] = module
        with override_settings(ROOT_URLCONF=module.__name__):
            assert "'/talk/'" in run()["W004"].msg
        del sys.modules[module.__name__]


SQLITE = "django.db.backends.sqlite3"
READY = {"transaction_mode": "IMMEDIATE", "timeout": 20, "init_command": "PRAGMA journal_mode=wal;"}


@pytest.mark.parametrize(
    ("database", "warned"),
    [
        ({"ENGINE": SQLITE, "NAME": "db.sqlite3"}, True),
        ({"ENGINE": SQLITE, "NAME": "db.sqlite3", "OPTIONS": READY}, False),
        *[
            ({"ENGINE": SQLITE, "NAME": "db", "OPTIONS": {k: v for k, v in READY.items() if k != x}}, True)
            for x in READY
        ],
        ({"ENGINE": SQLITE, "NAME": ":memory:"}, False),
        ({"ENGINE": "django.db.backends.postgresql", "NAME": "db"}, False),
    ],
)
def test_sqlite_in_its_standard_mode_is_warned_about(
    run: Run, monkeypatch: pytest.MonkeyPatch, database: dict[str, Any], warned: bool
) -> None:
    monkeypatch.setitem(serving.django_settings.DATABASES, "default", database)
    assert list(run()) == (["W005"] if warned else [])


class ChatApart:
    """A router that gives the chat another database than the rest."""

    def db_for_write(self, model: Any, **_: Any) -> str | None:
        return "chat" if model._meta.app_label == "gm_chat" else None


class TestUsersDatabase:
    @pytest.mark.parametrize(
        ("other", "told"), [({}, False), ({"NAME": "elsewhere"}, True), ({"HOST": "other.example"}, True)]
    )
    def test_the_chat_s_tables_belong_beside_the_users(
        self, run: Run, monkeypatch: pytest.MonkeyPatch, other: dict[str, Any], told: bool
    ) -> None:
        here = {"ENGINE": SQLITE, "NAME": "here"}
        databases = {"default": here, "chat": {**here, **other}}
        monkeypatch.setattr(serving, "connections", SimpleNamespace(settings=databases))
        with override_settings(DATABASE_ROUTERS=[f"{__name__}.ChatApart"]):
            found = run()
        assert list(found) == ["E012"] * told
        if told:
            assert "'chat' and the users in 'default'" in found["E012"].msg

    def test_one_that_does_not_exist_stops_no_command(self, run: Run) -> None:
        with override_settings(DATABASE_ROUTERS=[f"{__name__}.ChatApart"]):
            assert list(run()) == ["E012"]

    def test_another_database_for_both_is_fine(self, run: Run) -> None:
        class Elsewhere:
            def db_for_write(self, model: Any, **_: Any) -> str | None:
                return "other" if model._meta.app_label in {"auth", "gm_chat"} else None

        with override_settings(DATABASE_ROUTERS=[Elsewhere()]):
            assert "E012" not in run()


class Compressing:
    """A middleware that compresses whatever it gets, as one from before ``Content-Encoding: identity`` might."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        assert isinstance(response, StreamingHttpResponse)
        response.streaming_content = compress_sequence(response.streaming_content)
        response["Content-Encoding"] = "gzip"
        return response


class CompressingBroken(Compressing):
    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        raise ValueError("needs a real request")


class TestCompression:
    @pytest.mark.parametrize(
        ("path", "warned"),
        [
            ("django.middleware.gzip.GZipMiddleware", False),
            ("planted.Compressing", True),
            ("planted.CompressingBroken", False),
            ("planted.NoSuchCompressing", False),
        ],
    )
    def test_middleware_that_would_hold_a_stream_back_is_named(
        self, run: Run, monkeypatch: pytest.MonkeyPatch, path: str, warned: bool
    ) -> None:
        plant(monkeypatch, Compressing=Compressing, CompressingBroken=CompressingBroken)
        with override_settings(MIDDLEWARE=[*settings.MIDDLEWARE, path]):
            found = run()
        assert list(found) == ["W007"] * warned
        assert not warned or path in found["W007"].msg

    def test_no_other_middleware_is_tried(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        def untouchable(get_response: object) -> object:
            raise AssertionError("a check must not start it")

        plant(monkeypatch, untouchable=untouchable)
        with override_settings(MIDDLEWARE=["planted.untouchable"]):
            assert run() == {}


async def somebody_elses(scope: Any, receive: Any, send: Any) -> None:
    """An ASGI application that cannot be looked into."""


class Elsewhere(AsyncConsumer):
    pass


def websocket(*routes: Any) -> ProtocolTypeRouter:
    return ProtocolTypeRouter({"websocket": AuthMiddlewareStack(URLRouter(list(routes)))})


OTHER = re_path("^other/$", Elsewhere.as_asgi())


class TestWebSocket:
    @pytest.mark.parametrize(
        ("application", "warned"),
        [
            (get_asgi_application(), True),
            (http_application(), True),
            (ProtocolTypeRouter({"http": get_asgi_application()}), True),
            (websocket(OTHER), True),
            (AllowedHostsOriginValidator(websocket(OTHER)), True),
            (websocket(OTHER, *websocket_urlpatterns), False),
            (AllowedHostsOriginValidator(websocket(*websocket_urlpatterns)), False),
            (websocket(path("chats/", URLRouter([OTHER, *websocket_urlpatterns]))), False),
            (ProtocolTypeRouter({"websocket": websocket_application()}), False),
            (somebody_elses, False),
            (websocket(OTHER, re_path("", somebody_elses)), False),
        ],
    )
    def test_the_application_is_searched_for_the_chat(
        self, run: Run, monkeypatch: pytest.MonkeyPatch, application: object, warned: bool
    ) -> None:
        plant(monkeypatch, application=application)
        with override_settings(ASGI_APPLICATION="planted.application"):
            found = run()
        assert list(found) == ["W006"] * warned
        if warned:
            assert "'/chat/'" in found["W006"].msg
            assert "write in planted:" in str(found["W006"].hint)
            assert 'ASGI_APPLICATION = "gm_chat.asgi.application"' in str(found["W006"].hint)

    def test_the_hint_mends_it(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        plant(monkeypatch, application=get_asgi_application())
        with override_settings(ASGI_APPLICATION="planted.application"):
            hint = str(run()["W006"].hint)
            lines = [line.strip() for line in hint.splitlines()[1:]]
            exec("\n".join(lines), sys.modules["planted"].__dict__)  # noqa: S102 - as whoever follows the hint
            assert run() == {}
        with override_settings(ASGI_APPLICATION="gm_chat.asgi.application"):
            assert run() == {}

    @pytest.mark.parametrize("name", ["no_such_module.application", "planted.absent", "nonsense"])
    def test_one_that_cannot_be_imported_is_told(self, run: Run, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        plant(monkeypatch)
        with override_settings(ASGI_APPLICATION=name):
            assert "cannot be imported: " in run()["W006"].msg

    def test_a_project_that_names_none_is_left_alone(self, run: Run) -> None:
        with override_settings(ASGI_APPLICATION=None):
            assert run() == {}

    def test_an_endless_stack_ends(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        loop = SimpleNamespace()
        loop.inner = loop
        plant(monkeypatch, application=loop)
        with override_settings(ASGI_APPLICATION="planted.application"):
            assert run() == {}


class TestDeployment:
    @pytest.mark.parametrize(
        ("hosts", "origins", "warned"),
        [
            (["*"], None, True),
            (["shop.example", "*"], [], True),
            (["*"], ["https://shop.example"], False),
            (["shop.example"], None, False),
            ([], None, False),
        ],
    )
    def test_a_socket_open_to_every_website_is_told(
        self, run: Run, hosts: list[str], origins: list[str] | None, warned: bool
    ) -> None:
        with override_settings(ALLOWED_HOSTS=hosts, CACHES=REDIS):
            assert list(run.deployed({**CHAT, "allowed_origins": origins})) == ["W009"] * warned

    @pytest.mark.parametrize("chat", [{"enabled": False}, {"enabled": True, "max_results": 0}])
    def test_a_chat_that_is_off_or_broken_is_not_judged(self, run: Run, chat: dict[str, Any]) -> None:
        with override_settings(ALLOWED_HOSTS=["*"]):
            assert run.deployed(chat) == {}

    def test_manage_check_runs_them_with_deploy_only(self) -> None:
        with override_settings(ALLOWED_HOSTS=["*"]):
            found = [run_checks(tags=["gm_chat"], include_deployment_checks=deploy) for deploy in (False, True)]
            other = run_checks([apps.get_app_config("auth")], tags=["gm_chat"], include_deployment_checks=True)
        assert ["gm_chat.W009" in {item.id for item in items} for items in found] == [False, True]
        assert other == []


REDIS = {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": "redis://127.0.0.1:1"}}
