from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gm_chat.transports.checked import BadEvent, BadMessage, Unusable, json_object
from gm_chat.transports.incoming import Cancel, Confirm, Resume, Say, read_confirm, read_frame, read_say

CAP = 32_000


def read(body: bytes) -> str:
    return read_say(json_object(body, max_characters=CAP), max_characters=CAP).text


def hear(frame: str | None) -> Say | Confirm | Cancel | Resume:
    return read_frame(frame, max_characters=CAP)


def test_text_is_read_with_unknown_keys_ignored_and_unsafe_characters_replaced() -> None:
    assert read(b'{"text": " Which parts? ", "later": 1}') == " Which parts? "
    assert read(rb'{"text": "a\u0000b\ud800c\ud83d\ude00"}') == "a\ufffdb\ufffdc😀"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "not JSON"),
        (b"text=hi", "not JSON"),
        (b'{"text": ', "not JSON"),
        (b'\xef\xbb\xbf{"text": "x"}', "not JSON"),
        (b'{"text": "x"}'.decode().encode("utf-16"), "UTF-8"),
        (b'{"text": "\xff"}', "UTF-8"),
        (b"[1]", "JSON object"),
        (b'"text"', "JSON object"),
        (b"null", "JSON object"),
        (b"1" * 5000, "not JSON"),  # more digits than Python turns into a number
        (b"{}", "non-blank"),
        (b'{"text": null}', "non-blank"),
        (b'{"text": 1}', "non-blank"),
        (b'{"text": ["x"]}', "non-blank"),
        (b'{"text": ""}', "non-blank"),
        (b'{"text": " \\n\\t\\u00a0"}', "non-blank"),
        (b'{"text": "' + b"x" * 32_001 + b'"}', "longer than the 32000"),
        (b"[" * 10_000 + b"]" * 10_000, "nested too deeply"),
        (b'{"text": ' + b'{"a":' * 10_000 + b"1" + b"}" * 10_001, "nested too deeply"),
        (b'{"text": "' + b"x" * 10_000_000 + b'"}', "longer than the 32000"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_anything_else_is_a_bad_message_in_clear_words(body: bytes, words: str) -> None:
    with pytest.raises(BadMessage, match=words) as caught:
        read(body)
    assert caught.value.event.code == "bad_message"


@given(st.binary(max_size=200))
def test_no_bytes_at_all_break_the_reader(body: bytes) -> None:
    with pytest.raises(BadMessage):
        read(body if not body.startswith(b"{") else b"x" + body)


def test_what_is_too_long_by_far_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json, "loads", None)
    with pytest.raises(BadMessage, match="longer than the 10 characters"):
        json_object("x" * 5_000, max_characters=10)


def test_the_longest_text_in_its_longest_spelling_is_read() -> None:
    spelled = json.dumps({"type": "message", "text": "\U0001f600" * CAP})
    assert hear(spelled) == Say("\U0001f600" * CAP)


@pytest.mark.parametrize("key", ["", "  ", "x" * 129, 7, True, [], {}])
def test_a_message_id_that_is_none(key: Any) -> None:
    with pytest.raises(BadMessage, match="1 to 128"):
        read_say({"text": "Hi", "id": key}, max_characters=CAP)


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        ({"type": "message", "text": "Hi"}, Say("Hi")),
        ({"type": "message", "text": "Hi", "id": "m1", "more": 1}, Say("Hi", "m1")),
        ({"type": "message", "text": "Hi", "id": None}, Say("Hi")),
        ({"type": "confirm", "confirmation_id": "c1", "confirmed": True}, Confirm("c1", True)),
        ({"type": "confirm", "confirmation_id": "c1", "confirmed": False}, Confirm("c1", False)),
        ({"type": "cancel"}, Cancel()),
        ({"type": "resume", "turn_id": "t1"}, Resume("t1", 0)),
        ({"type": "resume", "turn_id": "t1", "after_seq": 7}, Resume("t1", 7)),
    ],
)
def test_what_a_socket_may_say(frame: dict[str, Any], said: Any) -> None:
    assert hear(json.dumps(frame)) == said


@pytest.mark.parametrize(
    "frame",
    [
        {},
        {"type": "shout", "text": "Hi"},
        {"type": ["message"], "text": "Hi"},
        {"text": "Hi"},
        {"type": "confirm"},
        {"type": "confirm", "confirmation_id": "c1"},
        {"type": "confirm", "confirmation_id": "", "confirmed": True},
        {"type": "confirm", "confirmation_id": 1, "confirmed": True},
        {"type": "confirm", "confirmation_id": "c1", "confirmed": "false"},
        {"type": "confirm", "confirmation_id": "c1", "confirmed": 1},
        {"type": "resume"},
        {"type": "resume", "turn_id": 7},
        {"type": "resume", "turn_id": "t1", "after_seq": -1},
        {"type": "resume", "turn_id": "t1", "after_seq": "1"},
        {"type": "resume", "turn_id": "t1", "after_seq": True},
        {"type": "resume", "turn_id": "t1", "after_seq": 1.5},
    ],
    ids=str,
)
def test_events_that_no_client_may_send(frame: dict[str, Any]) -> None:
    with pytest.raises(BadEvent) as caught:
        hear(json.dumps(frame))
    assert caught.value.event.code == "bad_event"


@pytest.mark.parametrize("frame", [None, "", "Hi", "[1]", "null", '"text"', '{"type": "message", "text": " "}'])
def test_frames_that_are_no_message(frame: str | None) -> None:
    with pytest.raises(BadMessage) as caught:
        hear(frame)
    assert caught.value.event.code == "bad_message"


def test_a_confirmation_id_may_be_any_text() -> None:
    assert read_confirm({"confirmation_id": "a\x00\ud800", "confirmed": True}) == Confirm("a\ufffd\ufffd", True)


@given(st.text(max_size=300))
def test_no_frame_at_all_breaks_the_reader(frame: str) -> None:
    with pytest.raises(Unusable):
        hear(frame)
