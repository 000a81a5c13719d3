"""The demo in a process of its own, as a user starts it, and somebody who is logged in there."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Self

import httpx
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from gm_chat.demo.access import PASSWORD
from gm_chat.demo.project import DATABASE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["RunningDemo", "Visitor", "running_demo"]

START_SECONDS = 60
ENDS = {"done", "error", "confirm_mutation"}
TESTS = Path(__file__).parents[1]

# The demo's own settings, with the test's in front.
PROGRAM = """
import json, sys
from gm_chat.demo import project
from gm_chat.demo.cli import main
own = project.chat_settings
project.chat_settings = lambda choice: {**own(choice), **json.loads(sys.argv[1])}
sys.exit(main(sys.argv[2:]))
"""


@dataclass(frozen=True, slots=True)
class RunningDemo:
    """``output`` is what it has printed; ``data`` the folder of its database."""

    process: subprocess.Popen[str]
    output: str
    url: str
    data: Path

    def memory(self) -> int:
        """Resident bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return 1024 * int(status.partition("VmRSS:")[2].split()[0])

    def rows(self) -> str:
        """A digest of all of the workshop's rows."""
        digest = hashlib.sha256()
        with sqlite3.connect(self.data / DATABASE) as database:
            names = database.execute("select name from sqlite_master where type = 'table' order by name").fetchall()
            for (name,) in names:
                if name.startswith("workshop_"):
                    for row in database.execute(f"select * from {name} order by 1"):  # noqa: S608 - a table's name
                        digest.update(repr(row).encode())
        return digest.hexdigest()


@contextmanager
def running_demo(
    data: Path,
    *arguments: str,
    chat: Mapping[str, Any] | None = None,
    path: tuple[Path, ...] = (),
    environment: Mapping[str, str] | None = None,
) -> Iterator[RunningDemo]:
    """Start ``gm-chat demo`` with these arguments. ``path`` is where it finds further packages."""
    command = [sys.executable, "-c", PROGRAM, json.dumps(chat or {}), "demo", "--port", "0", "--data", str(data)]
    packages = os.pathsep.join(map(str, (TESTS, *path)))
    process = subprocess.Popen(
        [*command, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": packages, **(environment or {})},
    )
    assert process.stdout is not None
    output, started = "", time.monotonic()
    # A pipe that nobody empties is full one day, and whoever logs then waits for ever.
    drain = Thread(target=deque, args=(process.stdout, 0), daemon=True)
    try:
        while "Ctrl-C stops it" not in output:
            line = process.stdout.readline()
            assert line, f"the demo ended: {output}"
            assert time.monotonic() - started < START_SECONDS
            output += line
        url = re.search(r"Serving at (http://\S+)/ ", output)
        assert url is not None, output
        drain.start()
        yield RunningDemo(process, output, url[1], data)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if drain.ident is not None:
            drain.join()
        process.stdout.close()


class Visitor:
    """A client of the demo, logged in as one of its users if a name is given. Use it in a ``with`` statement."""

    def __init__(self, demo: RunningDemo, user: str | None = None) -> None:
        self.url = demo.url
        self.http = httpx.Client(base_url=demo.url, timeout=30, trust_env=False)
        self.http.get("/")
        if user is not None:
            assert self.http.post("/demo/login/", data={"username": user, "password": PASSWORD}).is_success

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.http.close()

    @property
    def headers(self) -> dict[str, str]:
        """What a POST needs."""
        return {"X-CSRFToken": self.http.cookies["csrftoken"], "Content-Type": "application/json"}

    def post(self, path: str, value: Any) -> httpx.Response:
        """Send a JSON value."""
        return self.http.post(path, json=value, headers=self.headers)

    def socket(self) -> ClientConnection:
        """Open a WebSocket."""
        cookies = "; ".join(f"{name}={value}" for name, value in self.http.cookies.items())
        return connect(
            self.url.replace("http", "ws") + "/chat/",
            additional_headers={"Cookie": cookies},
            origin=Origin(self.url),
            proxy=None,
        )

    def ask(self, text: str) -> list[dict[str, Any]]:
        """Ask over a new socket; a change that waits for approval is rejected. All events."""
        with self.socket() as socket:
            socket.send(json.dumps({"type": "message", "text": text}))
            events = [json.loads(socket.recv(timeout=30))]
            while events[-1]["type"] not in ENDS - {"confirm_mutation"}:
                if events[-1]["type"] == "confirm_mutation":
                    word = {"type": "confirm", "confirmation_id": events[-1]["id"], "confirmed": False}
                    socket.send(json.dumps(word))
                events.append(json.loads(socket.recv(timeout=30)))
        return events
