"""Bytes as servers, and what stands before them, send them."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from gm_chat_provider_google.events import EventDecoder
from hypothesis import given
from hypothesis import strategies as st

from gm_chat.providers.base import ProviderIncompleteError, ProviderMalformedError

RECORDINGS = sorted((Path(__file__).parent / "recordings").glob("*.sse"))


def decode(*pieces: bytes) -> list[Any]:
    decoder = EventDecoder()
    return [*(value for piece in pieces for value in decoder.feed(piece)), *decoder.finish()]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'data: {"a": 1}\n\ndata: {"b": 2}\n\n', id="LF"),
        pytest.param(b'data: {"a": 1}\r\n\r\ndata: {"b": 2}\r\n\r\n', id="CR LF"),
        pytest.param(b'data: {"a": 1}\r\rdata: {"b": 2}\r\r', id="CR"),
        pytest.param(b'data:{"a": 1}\n\ndata:{"b": 2}\n\n', id="no blank"),
        pytest.param(b'data: {"a":\ndata: 1}\n\ndata: {"b": 2}\n\n', id="several lines"),
        pytest.param(b': waiting\n\ndata: {"a": 1}\n\n: waiting\n\ndata: {"b": 2}\n\n', id="comments"),
        pytest.param(b'event: x\nid: 1\ndata: {"a": 1}\n\nretry: 3\nid\ndata: {"b": 2}\n\n', id="other fields"),
        pytest.param(b'data: {"a": 1}\n\ndata:\n\ndata: {"b": 2}\n\ndata: [DONE]\n\n', id="nothing, and the end"),
        pytest.param(b'data: {"a": 1}\n\ndata: {"b": 2}', id="no end"),
        pytest.param(b'\xef\xbb\xbfdata: {"a": 1}\n\ndata: {"b": 2}\n\n', id="BOM"),
        pytest.param(b'mood: fine\n\ndata: {"a": 1}\n\ndata: {"b": 2}\n\n', id="unknown field"),
        pytest.param(b'data: {"a": 1}\n\n{\n  "b": 2\n}\n', id="JSON without an event"),
        pytest.param(b'[{"a": 1}\n,\r\n{"b": 2}\n]\n', id="an array instead of events"),
    ],
)
def test_the_objects_of_a_stream(body: bytes) -> None:
    assert decode(body) == [{"a": 1}, {"b": 2}]
    for cut in range(len(body)):
        assert decode(body[:cut], body[cut:]) == [{"a": 1}, {"b": 2}], f"cut at {cut}"


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
@given(st.data())
def test_pieces_give_the_whole(path: Path, data: st.DataObject) -> None:
    body = path.read_bytes()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=4)))
    pieces = [body[start:stop] for start, stop in itertools.pairwise([0, *cuts, len(body)])]
    assert decode(*pieces) == decode(body)


def test_separators_inside_of_text_end_no_line() -> None:
    assert decode('data: {"a": "b\u2028c\u2029d\x85e\x0bf"}\n\n'.replace("\x0b", "").encode()) == [
        {"a": "b\u2028c\u2029d\x85ef"}
    ]


@pytest.mark.parametrize("body", [b'data: {"a": 1', b'data: {"a": 1\n', b'data: {"a": "\xc3', b'data: {"a":\ndata: 1'])
def test_half_an_event_is_incomplete(body: bytes) -> None:
    with pytest.raises(ProviderIncompleteError):
        decode(b'data: {"b": 2}\n\n' + body)


@pytest.mark.parametrize(
    "body",
    [
        b"data: {no}\n\n",
        b'data: "\xff\xfe"\n\n',
        b"data: " + b"[" * 100_000 + b"\n\n",
        b"data: {}{}\n\n",
        b"data: NaN\n\n",
        b"data: 1e999\n\n",
    ],
)
def test_what_is_no_json_is_malformed(body: bytes) -> None:
    with pytest.raises(ProviderMalformedError, match="not JSON"):
        decode(body)


@pytest.mark.parametrize("body", [b"", b"\n\n", b"upstream connect error\n", b"da", b'{"error": {"code": 5'])
def test_what_says_nothing_gives_nothing(body: bytes) -> None:
    assert decode(body) == []
