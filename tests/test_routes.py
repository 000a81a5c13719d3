"""The chat's routes, as a project gets them: at startup, by include, and after every kind of change."""

import os
import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import AsyncClient, Client, override_settings
from django.test.utils import override_script_prefix
from django.urls import (
    NoReverseMatch,
    Resolver404,
    URLResolver,
    clear_url_caches,
    get_resolver,
    include,
    path,
    re_path,
    resolve,
    reverse,
)
from django.urls.resolvers import RegexPattern

from gm_chat import routes, urls

CHAT = {"enabled": True, "provider": "gm_chat.testing.ScriptedProvider"}


def page(request: HttpRequest, **_: Any) -> HttpResponse:
    return HttpResponse("a page of the project")


@pytest.fixture
def project(request: pytest.FixtureRequest) -> Iterator[str]:
    """A URLconf with the given patterns, under a name that Django can import."""
    name = "urlconf_of_a_test"
    module = ModuleType(name)
    patterns: list[Any] = []
    module.urlpatterns = patterns  # type: ignore[attr-defined]  # what makes it a URLconf
    sys.modules[name] = module
    patterns += request.param()
    with override_settings(ROOT_URLCONF=name):
        yield name
    del sys.modules[name]


def chat_resolvers() -> list[URLResolver]:
    return [
        item for item in get_resolver().url_patterns if isinstance(item, URLResolver) and item.app_name == "gm_chat"
    ]


def test_enabling_the_chat_is_enough() -> None:
    assert reverse("gm_chat:chat") == "/chat/"
    assert reverse("gm_chat:stream") == "/chat/stream/"
    assert resolve("/chat/").view_name == "gm_chat:chat"
    assert Client().get("/chat/").status_code == 405


def test_they_live_where_the_setting_says() -> None:
    with override_settings(GM_CHAT={**CHAT, "url": "assistant"}):
        assert reverse("gm_chat:stream") == "/assistant/stream/"
        assert Client().get("/assistant/").status_code == 405
        with pytest.raises(Resolver404):
            resolve("/chat/")
    assert reverse("gm_chat:chat") == "/chat/"


def test_the_root_path_is_possible() -> None:
    with override_settings(GM_CHAT={**CHAT, "url": "/"}):
        assert reverse("gm_chat:chat") == "/"
        assert reverse("gm_chat:stream") == "/stream/"


@pytest.mark.parametrize("chat", [{**CHAT, "enabled": False}, {}])
def test_without_enabled_there_are_none(chat: dict[str, Any]) -> None:
    with override_settings(GM_CHAT=chat):
        with pytest.raises(NoReverseMatch):
            reverse("gm_chat:chat")
        assert Client().get("/chat/").status_code == 404
    assert reverse("gm_chat:chat") == "/chat/"


def test_invalid_settings_leave_the_project_its_pages(caplog: pytest.LogCaptureFixture) -> None:
    with override_settings(GM_CHAT={"enabled": True, "max_results": 0}), pytest.raises(NoReverseMatch):
        reverse("gm_chat:chat")
    assert "max_results" in caplog.text


@pytest.mark.parametrize("project", [lambda: [path("talk/", include("gm_chat.urls"))]], indirect=True)
def test_an_include_of_the_project_is_not_doubled(project: str) -> None:
    assert reverse("gm_chat:chat") == "/talk/"
    assert len(chat_resolvers()) == 1
    with pytest.raises(Resolver404):
        resolve("/chat/")


@pytest.mark.parametrize(
    "project",
    [
        lambda: [path("a/", include([path("b/", include("gm_chat.urls"))]))],
        lambda: [path("a/b/", include("gm_chat.urls", namespace="assistant"))],
    ],
    indirect=True,
)
def test_nor_is_a_nested_or_renamed_one(project: str) -> None:
    assert reverse("gm_chat:chat") == "/a/b/"
    with pytest.raises(Resolver404):
        resolve("/chat/")


@pytest.mark.parametrize("project", [lambda: [re_path(".*", page, name="page")]], indirect=True)
def test_a_catch_all_does_not_hide_them(project: str) -> None:
    assert resolve("/chat/").view_name == "gm_chat:chat"
    assert resolve("/other/").view_name == "page"


@pytest.mark.parametrize("project", [lambda: [path("page/", page, name="page")]], indirect=True)
def test_the_project_s_own_urlconf_stays_as_it_is(project: str) -> None:
    assert reverse("page") == "/page/"
    assert reverse("gm_chat:chat") == "/chat/"
    assert len(sys.modules[project].urlpatterns) == 1


def test_they_survive_cleared_caches() -> None:
    for _ in range(2):
        clear_url_caches()
        assert reverse("gm_chat:chat") == "/chat/"
        assert len(chat_resolvers()) == 1


def test_another_urlconf_of_a_single_request_is_left_alone() -> None:
    module = ModuleType("urlconf_of_a_request")
    module.urlpatterns = [path("page/", page)]  # type: ignore[attr-defined]  # what makes it a URLconf
    sys.modules[module.__name__] = module
    assert len(get_resolver(module.__name__).url_patterns) == 1
    del sys.modules[module.__name__]


def test_installing_twice_changes_nothing() -> None:
    before = URLResolver.__dict__["url_patterns"]
    routes.install()
    assert URLResolver.__dict__["url_patterns"] is before


async def test_they_answer_under_asgi_too() -> None:
    assert (await AsyncClient().get("/chat/")).status_code == 405
    assert (await AsyncClient().get("/nowhere/")).status_code == 404


def test_a_script_prefix_is_kept() -> None:
    with override_script_prefix("/app/"):
        assert reverse("gm_chat:stream") == "/app/chat/stream/"


def test_a_project_without_urls_is_left_alone() -> None:
    with override_settings(ROOT_URLCONF=None):
        assert URLResolver(RegexPattern(r"^/"), [path("page/", page)]).url_patterns


def test_plugins_bring_routes_below_their_name(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    host = SimpleNamespace(urls={"weather": (path("report/", page, name="report"), "no route"), "odd": (None,)})
    monkeypatch.setattr(urls, "get_runtime", lambda: SimpleNamespace(host=host))
    found = urls.plugin_routes()
    urlconf: Any = (path("chat/", include((found, "gm_chat"))),)
    assert reverse("gm_chat:weather:report", urlconf=urlconf) == "/chat/x/weather/report/"
    assert len(found) == 1
    assert "The plugin 'weather' offers 'no route' as a route" in caplog.text
    assert "The plugin 'odd' offers None" in caplog.text


def test_a_chat_that_cannot_be_built_leaves_the_project_its_pages(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> None:
        raise RuntimeError("a plugin's fault")

    monkeypatch.setattr(urls, "get_runtime", broken)
    assert urls.plugin_routes() == []
    assert "a plugin's fault" in caplog.text


def test_the_urlconf_is_imported_by_the_first_request_and_not_before() -> None:
    code = (
        "import sys, django; django.setup();"
        "assert 'testproject.urls' not in sys.modules; assert 'gm_chat.urls' not in sys.modules;"
        "from django.urls import reverse; assert reverse('gm_chat:chat') == '/chat/';"
        "assert 'testproject.urls' in sys.modules"
    )
    run_python(code)


WSGI = """
from wsgiref.util import setup_testing_defaults
from django.core.wsgi import get_wsgi_application
handler, environ, statuses = get_wsgi_application(), {"PATH_INFO": "/chat/"}, []
setup_testing_defaults(environ)
list(handler(environ, lambda status, headers: statuses.append(status)))
assert statuses == ["405 Method Not Allowed"], statuses
"""
ASGI = """
import asyncio
from asgiref.testing import ApplicationCommunicator
from django.core.asgi import get_asgi_application
handler = get_asgi_application()
async def main():
    scope = {"type": "http", "method": "GET", "path": "/chat/", "headers": [], "query_string": b""}
    client = ApplicationCommunicator(handler, scope)
    await client.send_input({"type": "http.request", "body": b""})
    start = await client.receive_output(10)
    assert start["status"] == 405, start
asyncio.run(main())
"""


@pytest.mark.parametrize("code", [WSGI, ASGI], ids=["wsgi", "asgi"])
def test_a_fresh_process_serves_them_on_its_first_request(code: str) -> None:
    run_python(code)


def run_python(code: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GM_CHAT_")}
    environment |= {"DJANGO_SETTINGS_MODULE": "testproject.settings", "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, timeout=60)
