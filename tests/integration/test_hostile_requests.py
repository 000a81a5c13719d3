"""A thousand hostile requests against the running demo, over every transport: what it answers, says and keeps."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING

import pytest
from testproject.hostile_requests import Attack, frames, requests
from testproject.running_demo import RunningDemo, Visitor, running_demo
from websockets.exceptions import ConnectionClosed

from gm_chat.demo.project import DATABASE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

REQUESTS, FRAMES, WARM_UP = 640, 360, 150
GROWTH = 1.2
PER_SOCKET = 12
ENDS = {"done", "error", "confirm_mutation"}
INTERNAL = (
    "Traceback (most recent", 'File "', "site-packages", "/gm_chat/", "django.", "sqlite3.", "asgiref", "uvicorn.",
    "SELECT ", "INSERT INTO", "workshop_", "auth_user", "django_session", "SECRET_KEY", "ROOT_URLCONF", "GM_CHAT",
    "INSTALLED_APPS", "pbkdf2", "OperationalError", "ValueError", "TypeError", "KeyError", "DoesNotExist", "Exception",
)  # fmt: skip


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDemo]:
    chat = {"rate_limit": {"requests": None}, "resume_grace_seconds": 0}
    with running_demo(tmp_path_factory.mktemp("data"), "--provider", "offline", chat=chat) as demo:
        yield demo


class Attacker:
    """Somebody of the sales, who may not see suppliers and confidential projects. ``problems`` are what went wrong."""

    def __init__(self, demo: RunningDemo) -> None:
        self.demo = demo
        self.visitor = Visitor(demo, "sales")
        self.problems: list[str] = []
        self.statuses: dict[int, int] = {}
        self.ends: dict[str, int] = {}
        with closing(sqlite3.connect(demo.data / DATABASE)) as database:
            hidden = database.execute("select name from workshop_supplier").fetchall()
            # One code is the example in the field's description.
            confidential = "select code from workshop_project where confidential and code <> 'P-2025-014'"
            hidden += database.execute(confidential).fetchall()
            shown = {name for (name,) in database.execute("select name from workshop_customer")}
        self.secrets = [name for (name,) in hidden if name not in shown]
        assert len(self.secrets) > 50
        self.secrets += [*INTERNAL, str(demo.data)]

    def judge(self, sent: str, heard: str) -> None:
        """Note what was heard that nobody should hear; what was sent may come back."""
        self.problems += [
            f"{leak!r} after {sent[:200]!r}" for leak in self.secrets if leak in heard and leak not in sent
        ]

    def send(self, attack: Attack) -> None:
        """Send a request and judge the answer."""
        cookies = "; ".join(f"{name}={value}" for name, value in self.visitor.http.cookies.items())
        headers = {"Cookie": cookies, **self.visitor.headers, **attack.headers}
        connection = HTTPConnection(self.demo.url.removeprefix("http://"), timeout=30)
        with closing(connection):
            try:
                connection.request(attack.method, attack.path, attack.body, headers)
                response = connection.getresponse()
                heard = response.read().decode()
            except (HTTPException, ConnectionError):
                self.statuses[0] = self.statuses.get(0, 0) + 1  # hung up in the middle of a body that it does not want
                return
        self.statuses[response.status] = self.statuses.get(response.status, 0) + 1
        if response.status >= 500:
            self.problems.append(f"status {response.status} after {attack!r:.300}")
        self.judge(repr(attack), f"{heard}\n{response.headers}")
        if attack.path == "/demo/login/" and attack.method == "POST" and response.status == 200:
            self.problems.append(f"a login with {attack.body!r}")

    def talk(self, frames: Sequence[str | bytes]) -> int:
        """Send frames through one socket, each after the answer to the one before; return how many it took."""
        with self.visitor.socket() as socket:
            for number, frame in enumerate(frames, 1):
                try:
                    socket.send(frame)
                    self._hear(socket, frame)
                except ConnectionClosed as closed:
                    code = closed.rcvd.code if closed.rcvd else None
                    if code not in {1009, 1007}:  # too big, not UTF-8
                        self.problems.append(f"closed with {code} after {frame!r:.300}")
                    return number
        return len(frames)

    def _hear(self, socket: object, frame: str | bytes) -> None:
        kind = ""
        while kind not in ENDS:
            try:
                text = socket.recv(timeout=0.5 if _is_silent(frame) else 30)  # type: ignore[attr-defined]
            except TimeoutError:
                if not _is_silent(frame):
                    self.problems.append(f"no answer to {frame!r:.300}")
                return
            self.judge(repr(frame), text)
            event = json.loads(text)
            kind = event["type"]
            if kind == "error":
                self.ends[event["code"]] = self.ends.get(event["code"], 0) + 1
        self.ends[kind] = self.ends.get(kind, 0) + 1


def _is_silent(frame: str | bytes) -> bool:
    """Whether the protocol has no answer to it: a cancel without a turn."""
    try:
        value = json.loads(frame)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and value.get("type") == "cancel"


def attack(attacker: Attacker, seed: int, request_count: int, frame_count: int) -> None:
    for request in requests(seed, request_count):
        attacker.send(request)
    left = list(frames(seed, frame_count))
    while left:
        del left[: attacker.talk(left[:PER_SOCKET])]


def test_a_thousand_hostile_requests(demo: RunningDemo, capsys: pytest.CaptureFixture[str]) -> None:
    attacker = Attacker(demo)
    with attacker.visitor:
        rows = demo.rows()
        attack(attacker, 1, WARM_UP, WARM_UP // 2)
        before = demo.memory()
        attack(attacker, 2, REQUESTS, FRAMES)
        after = demo.memory()
        assert attacker.problems[:20] == []
        assert demo.rows() == rows
        answer = attacker.visitor.ask("How many parts do we have?")
        assert answer[-1]["type"] == "done", "it goes on to answer"
    with capsys.disabled():
        print(f"\nstatuses {attacker.statuses}; ends {attacker.ends}; {before / 2**20:.0f} -> {after / 2**20:.0f} MiB")  # noqa: T201
    assert after < GROWTH * before
    assert attacker.statuses.keys() >= {200, 400, 403, 404, 405}
    assert attacker.ends.keys() >= {"done", "bad_message", "bad_event"}
