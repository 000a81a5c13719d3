"""A small HTTP client for the demo's own check: cookies, the CSRF header, JSON answers and event streams."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.cookiejar import CookieJar
from typing import Any, Final, Literal

from gm_chat.demo.access import PASSWORD

__all__ = ["Client", "Reply"]

Event = Mapping[str, Any]
Way = Literal["http", "sse"]

TIMEOUT_SECONDS: Final = 600
"""A small model on a slow machine may take minutes."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The events of one turn."""

    events: tuple[Event, ...]

    @property
    def answer(self) -> str:
        """The text."""
        return "".join(str(event["content"]) for event in self.events if event["type"] == "text_chunk")

    @property
    def tools(self) -> list[str]:
        """The names of the tools that were called, in order."""
        return [str(event["name"]) for event in self.events if event["type"] == "tool_call"]

    @property
    def error(self) -> str | None:
        """The code of the error that ended the turn."""
        return next((str(event["code"]) for event in self.events if event["type"] == "error"), None)


class Client:
    """One visitor of a running demo; anonymous until :meth:`log_in`."""

    def __init__(self, url: str) -> None:
        """Visit the home page, which hands out the CSRF cookie."""
        self._url = url
        self._cookies = CookieJar()
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPCookieProcessor(self._cookies)
        )
        self._open("/").close()

    def log_in(self, user: str) -> None:
        """Log in as a demo user."""
        self._open("/demo/login/", {"username": user, "password": PASSWORD}).close()

    def ask(self, text: str, way: Way) -> Reply:
        """Ask, over plain HTTP or as a stream of events."""
        if way == "http":
            with self._open("/chat/", {"text": text}) as response:
                return Reply(tuple(json.load(response)["events"]))
        with self._open("/chat/stream/", {"text": text}, accept="text/event-stream") as response:
            return Reply(tuple(_events(response)))

    def _open(self, path: str, body: Mapping[str, Any] | None = None, accept: str = "*/*") -> Any:
        token = next((cookie.value or "" for cookie in self._cookies if cookie.name == "csrftoken"), "")
        request = urllib.request.Request(  # noqa: S310 - the demo's own server
            self._url + path,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json", "Accept": accept, "X-CSRFToken": token},
        )
        return self._opener.open(request, timeout=TIMEOUT_SECONDS)


def _events(lines: Iterator[bytes]) -> Iterator[Event]:
    """Decode server-sent events: the ``data`` of each frame is one JSON object."""
    for line in lines:
        if line.startswith(b"data:"):
            yield json.loads(line.removeprefix(b"data:"))
