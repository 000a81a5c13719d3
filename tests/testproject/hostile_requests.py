"""Requests as an attacker sends them, from a seed: broken and odd JSON, headers, ids, Unicode and sizes."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Attack", "frames", "requests"]

TEXTS: Final = (
    "How many parts do we have?", "List suppliers in Germany", "Show the five most expensive parts",
    "", " \t\n", "\x00", "a\x00b", "\ud800", "\udfff\ud800", "\ufeff", "\u202eabc\u202c", "\u2028\u2029", "\u200d" * 50,
    "e" + "\u0301" * 500, "👩‍👩‍👧‍👦" * 100, "ﷺ" * 200, "\u0130\u0131\u017f\u212a",
    "' OR 1=1 --", '"; drop table workshop_part; --',
    "{{7*7}}${7*7}<%= 7*7 %>", "%s%n%x" * 20, "../../../../etc/passwd", "<script>alert(1)</script>", "a" * 32_001,
    "a " * 15_000, "How many parts have the name " + "x" * 5_000, "\r\nSet-Cookie: a=b\r\n\r\n",
    "data: {}\n\nevent: x\n\n",
    "Which parts have id 9" + "9" * 400, "List parts of project \U0010ffff", "What is the density of %00?",
)  # fmt: skip
VALUES: Final[tuple[Any, ...]] = (
    None, True, False, 0, -1, 2**31, 2**63, 10**30, -0.0, 1e308, "", "0", [], {}, [[]], {"": None}, ["text"],
    {"text": "x"},
)  # fmt: skip
RAW: Final = (
    b"", b"{", b"null", b"[]", b'"text"', b"NaN", b'{"text": NaN}', b'{"text": Infinity}', b'{"text": 1e999}',
    b'{"text": "a", "text": 7}', b"[" * 10_000, b'{"text":' * 5_000, b'{"text": ' + b"9" * 5_000 + b"}",
    b'{"text": "\xff\xfe"}', '{"text": "ä"}'.encode("utf-16"), b'\xef\xbb\xbf{"text": "a"}', b'{"text": "\\ud800"}',
    b'{"text": "\\u0000"}', b'{"text": "a"}x', b'{"type": "message"}', b"--x\r\nContent-Disposition: form-data",
    b"text=a", b'{"text": "' + b"a" * 3_000_000 + b'"}',
)  # fmt: skip
HEADERS: Final[tuple[dict[str, str], ...]] = (
    {"Content-Type": "text/plain"}, {"Content-Type": "application/json; charset=utf-7"}, {"Content-Type": ";;;"},
    {"Content-Type": "multipart/form-data"}, {"Accept": "*/*;q=x"}, {"Accept": "a" * 5_000}, {"Accept": "text/html"},
    {"Accept-Language": "x" * 3_000}, {"Idempotency-Key": "k" * 129}, {"Idempotency-Key": "\xe4\xff"},
    {"Idempotency-Key": "one"}, {"Last-Event-ID": "-1"}, {"Last-Event-ID": "9" * 400}, {"Last-Event-ID": "\xb2"},
    {"X-Forwarded-For": "127.0.0.1, " * 300}, {"X-Forwarded-For": "::%eth0"}, {"Host": "evil.example"}, {"Host": "a b"},
    {"Cookie": "sessionid=" + "x" * 3_000}, {"Cookie": "sessionid=\xff; csrftoken=;;="}, {"Origin": "null"},
    {"Referer": "http://[::1"}, {"Range": "bytes=0-"}, {"X-CSRFToken": "<>"}, {"X-HTTP-Method-Override": "DELETE"},
    {"Accept-Encoding": "zstd, *;q=0"}, {"Expect": "100-continue"}, {"If-Modified-Since": "yesterday"}, {},
)  # fmt: skip
POSTS: Final = ("/chat/", "/chat/stream/", "/chat/confirm/", "/chat/cancel/", "/demo/login/")
GETS: Final = (
    "/chat/confirmations/",
    "/chat/turns/{id}/events",
    "/chat/turns/{id}/events?after_seq={id}",
    "/",
    "/chat/{id}",
)
IDS: Final = (
    "0", "-1", "1e3", "9" * 300, "%00", "%2e%2e%2f", "..%5c", "%ff%fe", "%F0%9F%92%A9", "null", "'", "a" * 2_000,
    "%0d%0a", "00000000000000000000000000000000", "%E2%80%AE", "{}", "*",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Attack:
    """A request to send with the cookies and the token of somebody who is logged in, unless its headers say others."""

    method: str
    path: str
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


def requests(seed: int, count: int) -> Iterator[Attack]:
    """Requests over plain HTTP and for streams."""
    dice = random.Random(seed)  # noqa: S311 - nothing here is secret
    for _ in range(count):
        headers = dict(dice.choice(HEADERS)) if dice.random() < 0.5 else {}
        if dice.random() < 0.2:
            path = dice.choice(GETS).replace("{id}", dice.choice(IDS))
            yield Attack(dice.choice(("GET", "GET", "HEAD", "PUT", "OPTIONS")), path, headers=headers)
        else:
            yield Attack("POST", dice.choice(POSTS), _body(dice), headers)


def frames(seed: int, count: int) -> Iterator[str | bytes]:
    """Frames for the WebSocket."""
    dice = random.Random(seed)  # noqa: S311 - as above
    for _ in range(count):
        body = _body(dice)
        yield body if dice.random() < 0.2 else body.decode(errors="replace")


def _body(dice: random.Random) -> bytes:
    if dice.random() < 0.25:
        return dice.choice(RAW)
    value: dict[str, Any] = {"text": dice.choice(TEXTS)}
    if dice.random() < 0.6:
        kinds = ("message", "message", "message", "confirm", "cancel", "resume", "Message", "__proto__")
        value["type"] = dice.choice(kinds) if dice.random() < 0.9 else dice.choice(VALUES)
    for name in ("id", "confirmation_id", "confirmed", "turn_id", "after_seq", "username", "password"):
        if dice.random() < 0.3:
            value[name] = dice.choice(VALUES) if dice.random() < 0.5 else dice.choice(TEXTS)
    if dice.random() < 0.2:
        value["text"] = dice.choice(VALUES)
    if dice.random() < 0.1:
        value[dice.choice(TEXTS)] = [value.copy()] * 3
    return json.dumps(value).encode()
