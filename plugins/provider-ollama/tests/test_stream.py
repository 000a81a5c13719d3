"""Streams as servers in the field send them, fed to the decoder and the assembler piece by piece."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from gm_chat_provider_ollama.stream import LineDecoder, StreamAssembler
from hypothesis import given
from hypothesis import strategies as st

from gm_chat.providers.base import (
    ChatEvent,
    DoneEvent,
    ProviderIncompleteError,
    ProviderMalformedError,
    TextChunkEvent,
    TokenUsage,
    ToolCallEvent,
)

DONE = {"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop"}
UNREPORTED = TokenUsage(reported=False)


def text(content: Any) -> dict[str, Any]:
    return {"message": {"role": "assistant", "content": content}, "done": False}


def call(function: Any, **more: Any) -> dict[str, Any]:
    return {"message": {"role": "assistant", "content": "", "tool_calls": [{"function": function, **more}]}}


def run(*chunks: dict[str, Any]) -> list[ChatEvent]:
    numbers = itertools.count(1)
    assembler = StreamAssembler(new_id=lambda: f"minted-{next(numbers)}")
    events: list[ChatEvent] = [event for chunk in chunks for event in assembler.feed(chunk)]
    return [*events, *assembler.finish()]


class TestAssembler:
    def test_text(self) -> None:
        assert run(text("a"), text(""), text(None), {}, {"message": None}, text("b"), DONE) == [
            TextChunkEvent("a"),
            TextChunkEvent("b"),
            DoneEvent(UNREPORTED, "stop"),
        ]

    def test_thinking_is_no_answer(self) -> None:
        thoughts = ({"message": {"content": "", "thinking": "Hm."}},) * 2
        assert run(*thoughts, DONE) == [TextChunkEvent(""), TextChunkEvent(""), DoneEvent(UNREPORTED, "stop")]

    @pytest.mark.parametrize(
        ("arguments", "args"),
        [
            ({"manager": "Part"}, {"manager": "Part"}),
            ('{"manager": "Part"}', {"manager": "Part"}),
            (None, {}),
            ("", {}),
            ("null", {}),
            ({}, {}),
        ],
    )
    def test_arguments_in_every_form(self, arguments: Any, args: dict[str, Any]) -> None:
        assert run(call({"name": "query", "arguments": arguments}), DONE) == [
            ToolCallEvent("minted-1", "query", args),
            DoneEvent(UNREPORTED, "tool_calls"),
        ]

    def test_missing_arguments(self) -> None:
        assert run(call({"name": "query"}), DONE)[0] == ToolCallEvent("minted-1", "query", {})

    @pytest.mark.parametrize(
        ("arguments", "reason", "error"),
        [
            ('{"manager": ', "length", "cut off"),
            (None, "length", "cut off"),
            ('{"manager": ', "stop", "not JSON"),
            (["Part"], "stop", "not a JSON object: the arguments are an array"),
            (7, "stop", "not a JSON object: the arguments are a number"),
            ('"Part"', "stop", "not a JSON object: the arguments are a string"),
        ],
    )
    def test_broken_arguments_are_told_to_the_model(self, arguments: Any, reason: str, error: str) -> None:
        event, _ = run(call({"name": "mutate", "arguments": arguments}), {**DONE, "done_reason": reason})
        assert isinstance(event, ToolCallEvent)
        assert event.args == {}
        assert (event.error or "").startswith(error)

    def test_each_call_has_an_id_the_servers_own_if_it_sends_one(self) -> None:
        events = run(call({"name": "query"}), call({"name": "query"}, id="theirs"), call({"name": "query"}), DONE)
        assert [event.id for event in events if isinstance(event, ToolCallEvent)] == ["minted-1", "theirs", "minted-2"]

    def test_a_call_in_the_last_line(self) -> None:
        assert run({**call({"name": "query"}), "done": True})[0] == ToolCallEvent("minted-1", "query", {})

    @pytest.mark.parametrize("chunks", [[], [text("a")], [call({"name": "query"})], [{**text("a"), "done": None}]])
    def test_without_the_end_it_is_incomplete(self, chunks: list[Any]) -> None:
        with pytest.raises(ProviderIncompleteError):
            run(*chunks)

    @pytest.mark.parametrize(
        "rubbish",
        [
            {"message": "text"},
            text(["a"]),
            {"message": {"tool_calls": {"name": "query"}}},
            {"message": {"tool_calls": ["x"]}},
            call("query"),
            call(None),
            call({"name": None}),
            call({"name": ""}),
            call({"name": 7}),
        ],
    )
    def test_what_the_format_does_not_allow_is_malformed(self, rubbish: Any) -> None:
        with pytest.raises(ProviderMalformedError):
            run(rubbish, DONE)

    @pytest.mark.parametrize(
        ("last", "done"),
        [
            ({"done_reason": "length"}, DoneEvent(UNREPORTED, "length")),
            ({"done_reason": "load"}, DoneEvent(UNREPORTED, "unknown")),
            ({"done_reason": None}, DoneEvent(UNREPORTED, "stop")),
            ({"prompt_eval_count": 3, "eval_count": 4}, DoneEvent(TokenUsage(3, 4), "stop")),
            ({"eval_count": 4}, DoneEvent(TokenUsage(0, 4, reported=False), "stop")),
            (
                {"prompt_eval_count": -3, "eval_count": True},
                DoneEvent(TokenUsage(0, 0, reported=False), "stop"),
            ),
            ({"model": "gemma4:e4b"}, DoneEvent(UNREPORTED, "stop", "gemma4:e4b")),
        ],
    )
    def test_the_last_line(self, last: dict[str, Any], done: DoneEvent) -> None:
        assert run(text("a"), {**DONE, **last})[-1] == done


class TestLines:
    @given(st.lists(st.dictionaries(st.text(), st.text() | st.none(), max_size=3)), st.integers(1, 20))
    def test_pieces_of_any_size_give_the_objects(self, values: list[dict[str, Any]], size: int) -> None:
        body = b"".join(json.dumps(value, ensure_ascii=False).encode() + b"\n" for value in values)
        decoder = LineDecoder()
        pieces = [body[start : start + size] for start in range(0, len(body), size)]
        seen = [value for piece in pieces for value in decoder.feed(piece)]
        assert [*seen, *decoder.finish()] == values

    @pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c"])
    def test_only_a_line_feed_ends_a_line(self, separator: str) -> None:
        line = json.dumps({"content": f"a{separator}b"}, ensure_ascii=False).encode()
        assert list(LineDecoder().feed(line + b"\r\n\r\n")) == [{"content": f"a{separator}b"}]

    def test_a_last_line_without_its_end(self) -> None:
        decoder = LineDecoder()
        assert list(decoder.feed(b'{"done": true}')) == []
        assert list(decoder.finish()) == [{"done": True}]

    def test_half_a_line_is_incomplete(self) -> None:
        decoder = LineDecoder()
        assert list(decoder.feed(b'{"done": tr')) == []
        with pytest.raises(ProviderIncompleteError):
            list(decoder.finish())

    @pytest.mark.parametrize("line", [b"{nope}", b"[]", b'"x"', b"null", b"\xff", b"[" * 100_000])
    def test_rubbish_is_malformed(self, line: bytes) -> None:
        with pytest.raises(ProviderMalformedError):
            list(LineDecoder().feed(line + b"\n"))
