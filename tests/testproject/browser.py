"""Chromium without a window, driven over its DevTools protocol: a page, what it shows, and all that it asks for."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

import httpx
import pytest
from websockets.sync.client import ClientConnection, connect

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["Page", "browsing"]

SECONDS = 30
NAMES = ("chromium", "chromium-browser", "google-chrome")


class Page:
    """A tab. ``requests`` are the addresses that it has asked for, blocked ones included."""

    def __init__(self, connection: ClientConnection) -> None:
        self.requests: list[str] = []
        self._connection = connection
        self._ids = itertools.count(1)
        for domain in ("Page", "Network", "Runtime", "Log"):
            self._command(f"{domain}.enable")

    def open(self, url: str) -> Self:
        """Go to an address, and wait until it has loaded."""
        self._command("Page.navigate", url=url)
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'")
        return self

    def run(self, script: str) -> Any:
        """The value of a script in the page."""
        answer = self._command("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def until(self, condition: str) -> None:
        """Wait for a condition to hold in the page."""
        deadline = time.monotonic() + SECONDS
        while not self.run(condition):
            assert time.monotonic() < deadline, (condition, self.run("document.body.innerText"))
            time.sleep(0.05)

    def _command(self, method: str, **parameters: Any) -> dict[str, Any]:
        id = next(self._ids)
        self._connection.send(json.dumps({"id": id, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._connection.recv(timeout=SECONDS))
            if message.get("method") in {"Network.requestWillBeSent", "Network.webSocketCreated"}:
                told = message["params"]
                self.requests.append(told["url"] if "url" in told else told["request"]["url"])
            if message.get("id") == id:
                assert "error" not in message, message
                result: dict[str, Any] = message["result"]
                return result


@contextmanager
def browsing(profile: Path) -> Iterator[Page]:
    """Start the browser with an empty profile. Skips the test where there is none, unless it must be there."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        if "browser" in os.environ.get("GM_CHAT_REQUIRE", "").split(","):
            pytest.fail(f"GM_CHAT_REQUIRE names browser, but there is none of {', '.join(NAMES)}")
        pytest.skip(f"no browser is installed: {', '.join(NAMES)}")
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
    process = subprocess.Popen(
        [program, *options, "--remote-debugging-port=0", f"--user-data-dir={profile}", "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        told, deadline = profile / "DevToolsActivePort", time.monotonic() + SECONDS
        while not (told.exists() and told.read_text().strip()):
            assert process.poll() is None, "the browser ended"
            assert time.monotonic() < deadline, "the browser did not start"
            time.sleep(0.05)
        port = told.read_text().splitlines()[0]
        with httpx.Client(trust_env=False) as client:
            tabs = client.get(f"http://127.0.0.1:{port}/json/list").json()
        address = next(tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page")
        with connect(address, proxy=None, max_size=None) as connection:
            yield Page(connection)
    finally:
        process.terminate()
        process.wait(timeout=SECONDS)
