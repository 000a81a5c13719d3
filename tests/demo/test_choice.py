"""Which provider the demo takes, and how it asks Ollama."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from gm_chat.demo.choice import Choice, choose, installed_plugins, ollama_model

ALL = {"ollama", "openai", "offline"}
KEY = {"OPENAI_API_KEY": "sk-test"}
OWN_SERVER = {"base_url": "http://x/v1", "temperature": 0}


@pytest.mark.parametrize(
    ("requested", "options", "environment", "plugins", "ollama", "expected"),
    [
        ("auto", {}, {}, ALL, None, ("offline", {})),
        ("auto", {}, KEY, ALL, None, ("openai", {})),
        ("auto", {"model": "m"}, KEY, ALL, None, ("openai", {"model": "m"})),
        ("auto", {}, KEY, ALL, "llama", ("ollama", {"model": "llama"})),
        ("auto", {"model": "m"}, {}, ALL, "llama", ("ollama", {"model": "m"})),
        ("auto", {}, KEY, {"offline"}, "llama", ("offline", {})),
        ("auto", {}, KEY, {"offline", "openai"}, "llama", ("openai", {})),
        (
            "auto",
            {"base_url": "http://x/v1", "model": "m"},
            {},
            ALL,
            "llama",
            ("openai", {"base_url": "http://x/v1", "model": "m", "temperature": 0}),
        ),
        ("openai", {}, {}, set(), None, ("openai", {})),
        ("openai", {"base_url": "http://x/v1"}, {}, ALL, "llama", ("openai", OWN_SERVER)),
        ("ollama", {}, KEY, ALL, "llama", ("ollama", {"model": "llama"})),
        ("ollama", {}, KEY, ALL, None, ("ollama", {})),
        ("ollama", {"model": "m"}, KEY, ALL, "llama", ("ollama", {"model": "m"})),
        ("acme", {"model": "m"}, KEY, ALL, "llama", ("acme", {"model": "m"})),
        ("offline", {"model": "m", "base_url": "u"}, KEY, ALL, "llama", ("offline", {})),
    ],
)
def test_choose(
    requested: str, options: dict[str, str], environment: Any, plugins: Any, ollama: str | None, expected: Any
) -> None:
    choice = choose(requested, environment=environment, plugins=plugins, find_ollama_model=lambda: ollama, **options)
    config = {key: value for key, value in choice.config.items() if not key.endswith("timeout_seconds")}
    assert (choice.provider, config) == expected
    assert choice.reason


def test_what_runs_but_is_not_installed_is_named() -> None:
    choice = choose("auto", environment=KEY, plugins=set(), find_ollama_model=lambda: "llama")
    assert [note.split("pip install ")[1] for note in choice.notes] == [
        "'gm-chat[chat-ollama]'",
        "'gm-chat[chat-openai]'",
    ]
    choice = choose("offline", model="m", environment={}, plugins=ALL, find_ollama_model=lambda: None)
    assert choice.notes == ("--base-url and --model mean nothing to the offline provider",)


def test_a_model_on_the_own_machine_gets_time() -> None:
    def seconds(requested: str, **options: Any) -> Any:
        choice = choose(requested, environment={}, plugins=ALL, find_ollama_model=lambda: None, **options)
        return choice.config.get("timeout_seconds"), choice.config.get("stream_timeout_seconds")

    assert seconds("openai", base_url="http://127.0.0.1/v1") == seconds("ollama") == (300, 300)
    assert seconds("openai") == seconds("offline") == (None, None)


def test_ollama_is_not_asked_in_vain() -> None:
    def fail() -> str | None:
        raise AssertionError("asked")

    for requested, options in (
        ("openai", {}),
        ("offline", {}),
        ("auto", {"base_url": "http://x"}),
        ("ollama", {"model": "m"}),
    ):
        choose(requested, environment={}, plugins=ALL, find_ollama_model=fail, **options)


def test_only_offline_has_no_model() -> None:
    assert not Choice("offline").has_model
    assert Choice("openai").has_model


def test_the_installed_plugins_are_found() -> None:
    assert installed_plugins() >= {"offline", "openai", "ollama"}


Serve = Callable[[Any], str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Serve JSON by path, ``{"/api/tags": ..., "/api/show": {model: ...}}``; gives the server's address."""
    servers: list[ThreadingHTTPServer] = []

    def start(answers: Any) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._send(answers.get(self.path))

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self._send(answers.get(self.path, {}).get(body["model"]))

            def _send(self, value: Any) -> None:
                self.send_response(404 if value is None else 200)
                self.end_headers()
                self.wfile.write(value if isinstance(value, bytes) else json.dumps(value).encode())

            def log_message(self, *_: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (
            {
                "/api/tags": {"models": [{"name": "embed"}, {"name": "chat"}, {"name": "more"}]},
                "/api/show": {
                    "embed": {"capabilities": ["embedding"]},
                    "chat": {"capabilities": ["completion", "tools"]},
                    "more": {"capabilities": ["tools"]},
                },
            },
            "chat",
        ),
        (
            {
                "/api/tags": {"models": [{"name": "gone"}, {"name": "old"}]},
                "/api/show": {"old": {"capabilities": None}},
            },
            None,
        ),
        ({"/api/tags": {"models": []}}, None),
        ({"/api/tags": {"models": [None, {"name": 7}]}}, None),
        ({"/api/tags": ["x"]}, None),
        ({"/api/tags": b"<html>"}, None),
        ({}, None),
    ],
)
def test_ollama_model(answers: Any, expected: str | None, serve: Serve) -> None:
    assert ollama_model(serve(answers)) == expected


def test_nobody_listens() -> None:
    assert ollama_model("http://127.0.0.1:1") is None
