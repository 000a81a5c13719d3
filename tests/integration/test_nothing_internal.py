"""Whatever is raised, and wherever: a client reads a public code, its fixed message and a correlation id.

Every exception class of the code base and of the installed plugins is raised with a secret in its words from a
provider, a tool, a required and an ordinary audit sink and a permission, through a turn over HTTP and over WebSocket.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import json
import logging
import pkgutil
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import pytest
from django.core.exceptions import PermissionDenied
from django.db import OperationalError
from django.test import AsyncClient
from testproject.socket_client import connected

import gm_chat
from gm_chat.engine.confirmation import TurnPaused
from gm_chat.engine.failures import TurnStopped
from gm_chat.errors import PUBLIC_MESSAGES
from gm_chat.plugin import ToolDefinition, ToolError, ToolSpec, hookimpl
from gm_chat.signals import chat_error
from gm_chat.testing.scripted import ScriptedProvider, call
from gm_chat.wiring import runtime

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

pytestmark = pytest.mark.django_db(transaction=True)

SECRET: Final = "hunter2-Zq9-of-the-database"
PLUGINS: Final = (
    *("gm_chat_audit_logging", "gm_chat_provider_anthropic", "gm_chat_provider_google", "gm_chat_provider_offline"),
    *("gm_chat_provider_ollama", "gm_chat_provider_openai", "gm_chat_ratelimit_redis", "gm_chat_source_graphql"),
    "gm_chat_source_general_manager",
)
DECISIONS: Final = (TurnStopped, TurnPaused)
"""The engine's own, public by type; its code alone raises them, and nothing is logged."""

OTHERS: Final = (ValueError, KeyError, RuntimeError, TimeoutError, OSError, MemoryError, RecursionError)
DJANGOS: Final = (OperationalError, PermissionDenied)


def modules() -> Iterator[Any]:
    """Every module that can be imported here: some need an app of a demo, or a package that is not installed."""
    packages = [gm_chat]
    for name in PLUGINS:
        with suppress(ImportError):
            packages.append(importlib.import_module(name))
    for package in packages:
        yield package
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.", onerror=lambda _: None):
            if not found.name.endswith("__main__"):
                with suppress(ImportError, RuntimeError, LookupError):
                    yield importlib.import_module(found.name)


def exception_classes() -> list[type[Exception]]:
    found = {
        value
        for module in modules()
        for value in vars(module).values()
        if inspect.isclass(value) and issubclass(value, Exception) and value.__module__ == module.__name__
    }
    own = [value for value in found if not issubclass(value, DECISIONS)]
    return [*sorted(own, key=lambda value: f"{value.__module__}.{value.__qualname__}"), *OTHERS, *DJANGOS]


CLASSES: Final = exception_classes()


def made(kind: type[Exception]) -> Exception:
    """An exception of that class with the secret in its words and in everything else that it takes."""
    for arguments in ((SECRET,), (SECRET, SECRET), (SECRET, [SECRET])):
        with suppress(Exception):
            return kind(*arguments)
    error = kind.__new__(kind)
    Exception.__init__(error, SECRET)
    return error


class Trap:
    """Raises where a test wants it: a tool of a plugin's, the setting ``permission``, the audit's callable."""

    def __init__(self) -> None:
        self.place = ""
        self.error: Exception = ValueError()
        self.asked = itertools.count()

    def spring(self, place: str) -> None:
        if place == self.place:
            raise self.error

    def permission(self, user: object, scope: Mapping[str, Any]) -> bool:
        if scope["type"] != "websocket" or next(self.asked):  # a socket must be open before a turn is refused
            self.spring("permission")
        return True

    async def sink(self, event: Mapping[str, Any]) -> None:
        self.spring("sink")
        if event["event_type"] == "assistant_message":
            self.spring("the sink at the end")

    @hookimpl
    def gm_chat_tools(self) -> list[ToolSpec]:
        async def run(args: Mapping[str, Any], context: Any) -> str:
            self.spring("tool")
            return "well"

        definition = ToolDefinition("trap", "A tool.", {"type": "object", "properties": {}})
        return [ToolSpec(definition=definition, run=run)]


def test_all_classes_are_found() -> None:
    names = {kind.__name__ for kind in CLASSES}
    assert {"ToolError", "ProviderTimeoutError", "ChatConfigurationError", "PlanValidationError", "AuditError"} <= names
    assert len(CLASSES) > 50
    assert all(SECRET in f"{made(kind)!r} {vars(made(kind))!r}" for kind in CLASSES)


async def over_http(trap: Trap) -> tuple[str, list[dict[str, Any]]]:
    response: Any = await AsyncClient().post("/chat/", {"text": "Hello"}, content_type="application/json")
    text = f"{response.content.decode()} {response.headers!r}"
    return text, [] if response.status_code == 403 else response.json()["events"]


async def over_websocket(trap: Trap) -> tuple[str, list[dict[str, Any]]]:
    async with connected() as client:
        await client.say("Hello")
        if trap.place == "permission":
            assert await client.closed() == 4403, "whoever may not talk any more is disconnected"
            return "", []
        events = await client.rest()
        return f"{json.dumps(events)} {client.headers!r}", events


@pytest.fixture
def trap(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Trap]:
    trap = Trap()
    core = runtime.core_plugins
    monkeypatch.setattr(runtime, "core_plugins", lambda chosen: [*core(chosen), ("trap", trap)])
    settings.GM_CHAT = {
        "enabled": True,
        "provider": "gm_chat.testing.ScriptedProvider",
        "provider_config": {"max_retries": 0},
        "permission": trap.permission,
        "audit": {"enabled": True, "level": "all", "logger": trap.sink, "required": ["logger"]},
        "rate_limit": {"requests": 0},
    }
    yield trap
    runtime.get_runtime().audit.close()


ROUNDS: Final = {
    "provider": lambda error: [[error]],
    "the provider in the middle": lambda error: [["One ", error]],
    "tool": lambda _: [[call("trap")], ["Well."]],
    "sink": lambda _: [["Well."]],
    "the sink at the end": lambda _: [["Well."]],
    "permission": lambda _: [["Well."]],
}


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__qualname__)
async def test_a_client_reads_nothing_internal(
    kind: type[Exception], trap: Trap, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[dict[str, Any]] = []

    def hear(error: Exception, context: dict[str, Any], **_: Any) -> None:
        told.append(context)

    chat_error.connect(hear)
    caplog.set_level(logging.DEBUG, logger="gm_chat")
    try:
        for (place, rounds), ask in itertools.product(ROUNDS.items(), (over_http, over_websocket)):
            where = f"{kind.__name__} from {place} {ask.__name__}"
            trap.place, trap.error, trap.asked = place, made(kind), itertools.count()
            told.clear()
            caplog.clear()
            with ScriptedProvider.playing(*rounds(trap.error)):
                text, events = await ask(trap)
            if place == "tool" and kind is ToolError:
                continue  # its words are for the actor's eyes: the contract says so
            assert SECRET not in text, where
            assert "Traceback" not in text, where
            assert kind.__name__ not in text.replace('"detail":"Forbidden"', ""), where
            errors = [event for event in events if event["type"] == "error"]
            assert all(event["message"] == PUBLIC_MESSAGES[event["code"]] for event in errors), where
            if place == "permission":
                assert events == [], where
                assert kind.__name__ in caplog.text or SECRET in caplog.text, where
                continue
            (error,) = errors
            assert events[-1] is error, where
            assert set(error) <= {"type", "code", "message", "turn_id", "seq", "correlation_id", "retry_after_seconds"}
            assert error["correlation_id"] in caplog.text, where
            assert [context["correlation_id"] for context in told] == [error["correlation_id"]], where
    finally:
        chat_error.disconnect(hear)


async def test_an_ordinary_sink_that_raises_is_no_client_s_concern(settings: Any, trap: Trap) -> None:
    settings.GM_CHAT = {**settings.GM_CHAT, "audit": {**settings.GM_CHAT["audit"], "required": []}}
    for kind, ask in itertools.product(CLASSES, (over_http, over_websocket)):
        trap.place, trap.error = "sink", made(kind)
        with ScriptedProvider.playing(["Well."]):
            text, events = await ask(trap)
        assert [event["type"] for event in events] == ["text_chunk", "done"]
        assert SECRET not in text
