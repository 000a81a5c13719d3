"""An audit sink that raises, blocks or falls behind, under a real server: turns go on, and what is lost is counted."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, Final

import httpx
import pytest
from testproject.deployed import DeployedProject

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TOKEN: Final = "t" * 32
CALLS: Final = 600
"""In one message of a model's: two events each, so more than the 1,000 that may wait for a sink."""

SETTINGS: Final = """\
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
SECRET_KEY = "of-no-use-to-anybody"
ALLOWED_HOSTS = ["127.0.0.1"]
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
ROOT_URLCONF = "site_project.urls"
INSTALLED_APPS = [
    "django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions", "gm_chat", "members",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
]
DATABASES = {"default": {
    "ENGINE": "django.db.backends.sqlite3", "NAME": HERE / "db.sqlite3",
    "OPTIONS": {
        "transaction_mode": "IMMEDIATE", "timeout": 20, "init_command": "PRAGMA journal_mode=WAL"
    },
}}
GM_CHAT = {
    "enabled": True,
    "provider": "gm_chat.testing.ScriptedProvider",
    "provider_config": {"script": [
        [{"call": "find_path", "args": {"from_manager": "M", "to_manager": str(n)}} for n in range(CALLS)], ["Well."],
    ]},
    "enabled_plugins": [],
    "summarize_after": 10**6,
    "audit": {"enabled": True, "level": "all", "logger": "site_project.sinks.KIND"},
}
"""

SINKS: Final = """\
import time
from pathlib import Path

RELEASED = Path(__file__).resolve().parent.parent / "released"


def raises(event):
    raise OSError("the disk is full")


def blocks(event):
    while not RELEASED.exists():
        time.sleep(0.02)
"""

SERVED: Final = """\
import json

from gm_chat.asgi import application as chat
from gm_chat.wiring import get_runtime


async def application(scope, receive, send):
    if scope["type"] != "http" or scope["path"] != "/dropped":
        return await chat(scope, receive, send)
    body = json.dumps(dict(get_runtime().audit.dropped)).encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})
"""


class Server:
    """The project under uvicorn, with one kind of sink."""

    def __init__(self, browser: httpx.Client, folder: Path) -> None:
        self.folder = folder
        self._browser = browser

    def ask(self) -> list[str]:
        answer = self._browser.post("/chat/", json={"text": "Hello"})
        assert answer.status_code == 200, answer.text
        return [event["type"] for event in answer.json()["events"]]

    def dropped(self, at_least: int) -> int:
        """How many events the sink never got, once they are so many."""
        deadline = time.monotonic() + 30
        while True:
            count: int = json.loads(self._browser.get("/dropped").text)["logger"]
            if count >= at_least:
                return count
            assert time.monotonic() < deadline, count
            time.sleep(0.05)

    def log(self) -> str:
        return (self.folder / "log").read_text()


@pytest.fixture
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    kind, calls = request.param
    settings = SETTINGS.replace("KIND", kind).replace("CALLS", str(calls))
    files = {
        "site_project/settings.py": settings,
        "site_project/sinks.py": SINKS,
        "site_project/served.py": SERVED,
        "site_project/urls.py": 'from django.urls import include, path\nurlpatterns = [path("chat/", '
        'include("gm_chat.urls"))]\n',
    }
    project = DeployedProject(tmp_path, files=files)
    project.run("migrate", "--verbosity", "0")
    cookies, headers = {"csrftoken": TOKEN}, {"X-CSRFToken": TOKEN}
    with (
        project.serve("site_project.served:application", tmp_path / "log") as url,
        httpx.Client(base_url=url, cookies=cookies, headers={**headers, "Origin": url}, timeout=30) as browser,
    ):
        yield Server(browser, tmp_path)


def turn(calls: int) -> list[str]:
    return [*["tool_call"] * calls, *["tool_result"] * calls, "text_chunk", "done"]


@pytest.mark.parametrize("server", [("raises", 1)], indirect=True)
def test_one_that_raises_loses_each_event_and_no_turn(server: Any) -> None:
    assert [server.ask() for _ in range(3)] == [turn(1)] * 3
    assert server.dropped(12) == 12
    assert "audit sink 'logger' lost an event, 1 so far: OSError('the disk is full')" in server.log()


@pytest.mark.parametrize("server", [("blocks", 1)], indirect=True)
def test_one_that_blocks_for_five_seconds_holds_up_no_turn(server: Any) -> None:
    assert [server.ask() for _ in range(12)] == [turn(1)] * 12, "more events than there are database threads"
    assert server.dropped(1) >= 1
    assert server.ask() == turn(1), "while the sink is still blocked"
    (server.folder / "released").touch()
    assert server.ask() == turn(1)
    assert "lost an event, 1 so far: TimeoutError" in server.log()


@pytest.mark.parametrize("server", [("blocks", CALLS)], indirect=True)
def test_what_a_full_queue_does_not_hold_is_dropped(server: Any) -> None:
    assert server.ask() == turn(CALLS)
    assert server.dropped(2 * CALLS + 2 - 1000 - 1) >= 2 * CALLS + 2 - 1000 - 1
    assert "QueueFull('1000 events wait already')" in server.log()
    (server.folder / "released").touch()
    assert server.ask() == turn(CALLS)
