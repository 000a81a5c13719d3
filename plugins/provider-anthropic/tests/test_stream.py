"""Streams as servers in the field send them, fed to the assembler object by object."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from gm_chat_provider_anthropic.stream import StreamAssembler
from hypothesis import given
from hypothesis import strategies as st

from gm_chat.providers.base import (
    ChatEvent,
    DoneEvent,
    ProviderContextError,
    ProviderError,
    ProviderIncompleteError,
    ProviderMalformedError,
    ProviderRefusedError,
    TextChunkEvent,
    TokenUsage,
    ToolCallEvent,
)

UNREPORTED = TokenUsage(reported=False)


def start(index: Any = 0, type: str = "text", **values: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": {"type": type, **values}}


def call(index: Any = 0, id: Any = "a", name: Any = "query", **values: Any) -> dict[str, Any]:
    return start(index, "tool_use", id=id, name=name, **{"input": {}, **values})


def delta(index: Any, type: str, value: Any, key: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": type, key: value}}


def text(value: Any, index: Any = 0) -> dict[str, Any]:
    return delta(index, "text_delta", value, "text")


def arguments(value: Any, index: Any = 0) -> dict[str, Any]:
    return delta(index, "input_json_delta", value, "partial_json")


def thought(value: Any, index: Any = 0) -> dict[str, Any]:
    return delta(index, "thinking_delta", value, "thinking")


def signature(value: Any, index: Any = 0) -> dict[str, Any]:
    return delta(index, "signature_delta", value, "signature")


def stop(index: Any = 0) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def message(**values: Any) -> dict[str, Any]:
    return {"type": "message_start", "message": {"id": "msg_1", "content": [], **values}}


def end(reason: str | None = "end_turn", usage: Any = None, **values: Any) -> list[dict[str, Any]]:
    return [
        {"type": "message_delta", "delta": {"stop_reason": reason, **values}, "usage": usage},
        {"type": "message_stop"},
    ]


def run(*objects: Any) -> list[ChatEvent]:
    """Feed single objects and lists of them; return the events."""
    numbers = itertools.count(1)
    assembler = StreamAssembler(new_id=lambda: f"minted-{next(numbers)}")
    events: list[ChatEvent] = []
    for value in itertools.chain.from_iterable(item if isinstance(item, list) else [item] for item in objects):
        events += assembler.feed(value)
    return [*events, *assembler.finish()]


def calls(*objects: Any) -> list[tuple[str, str, Any]]:
    return [(event.id, event.name, dict(event.args)) for event in run(*objects) if isinstance(event, ToolCallEvent)]


def done(*objects: Any) -> DoneEvent:
    event = run(*objects)[-1]
    assert isinstance(event, DoneEvent)
    return event


class TestText:
    def test_chunks_come_out_as_they_are(self) -> None:
        assert run(message(), start(text=""), text("a"), text("b"), stop(), end()) == [
            TextChunkEvent("a"),
            TextChunkEvent("b"),
            DoneEvent(UNREPORTED, "stop"),
        ]

    def test_a_block_may_begin_with_text(self) -> None:
        assert run(start(text="a"), text("b"), end())[:2] == [TextChunkEvent("a"), TextChunkEvent("b")]

    def test_text_without_a_block_is_text(self) -> None:
        assert run(text("a", index=7), end())[0] == TextChunkEvent("a")

    @pytest.mark.parametrize(
        "noise",
        [
            {"type": "ping"},
            {"type": "something_new", "index": "x", "delta": 7},
            {"type": None},
            {"type": ["ping"]},
            {},
            message(usage=None, model=None),
            {"type": "message_start"},
            {"type": "message_start", "message": None},
            stop(99),
            delta(0, "citations_delta", {}, "citation"),
            delta(0, "delta_of_the_future", 7, "value"),
            {"type": "content_block_delta", "index": 0},
            {"type": "content_block_delta", "index": 0, "delta": None},
            text(None),
            text(""),
            thought("hm", index=99),
            signature("x", index=99),
            {"type": "message_delta", "delta": None, "usage": None},
        ],
        ids=str,
    )
    def test_what_says_nothing_is_passed_over(self, noise: Any) -> None:
        assert run(noise, start(), noise, text("a"), noise, end()) == [
            TextChunkEvent("a"),
            DoneEvent(UNREPORTED, "stop"),
        ]

    @pytest.mark.parametrize(
        "rubbish",
        [
            [[]],
            "text",
            7,
            {"type": "message_start", "message": "hello"},
            {"type": "content_block_start", "index": 0, "content_block": [1]},
            {"type": "content_block_start", "index": "0", "content_block": {"type": "text"}},
            {"type": "content_block_delta", "index": 0, "delta": "a"},
            {"type": "message_delta", "delta": [7]},
            {"type": "message_delta", "delta": {"stop_reason": 7}},
            start(type="text", text=["a"]),
            text({"a": 1}),
            [call(), arguments({"manager": "Part"})],
            [call(id=7), end("tool_use")],
            [call(name=["query"]), end("tool_use")],
        ],
        ids=str,
    )
    def test_what_the_format_does_not_allow_is_malformed(self, rubbish: Any) -> None:
        with pytest.raises(ProviderMalformedError):
            run(rubbish, end())


class TestCalls:
    def test_a_call_in_pieces(self) -> None:
        objects = (call(), arguments(""), arguments('{"manager"'), arguments(': "Part"}'), stop(), end("tool_use"))
        assert calls(*objects) == [("a", "query", {"manager": "Part"})]

    def test_text_then_parallel_calls(self) -> None:
        events = run(
            *(start(0), text("I look.", 0), stop(0)),
            *(call(1, "a"), arguments('{"n":1}', 1), stop(1)),
            *(call(2, "b", "find_path"), arguments('{"n":2}', 2), stop(2)),
            end("tool_use"),
        )
        assert events == [
            TextChunkEvent("I look."),
            ToolCallEvent("a", "query", {"n": 1}),
            ToolCallEvent("b", "find_path", {"n": 2}),
            DoneEvent(UNREPORTED, "tool_calls"),
        ]

    def test_interleaved_blocks_are_told_apart_by_their_index(self) -> None:
        objects = (
            *(start(0), call(1, "a"), call(2, "b")),
            *(arguments('{"n":', 1), arguments('{"n":', 2), text("!", 0), arguments("2}", 2), arguments("1}", 1)),
            *(stop(2), stop(1), stop(0)),
            end("tool_use"),
        )
        assert calls(*objects) == [("a", "query", {"n": 1}), ("b", "query", {"n": 2})]

    def test_every_block_has_the_index_0_but_they_come_one_after_the_other(self) -> None:
        objects = (
            *(start(), text("Look."), call(id="a"), arguments('{"n":1}'), stop()),
            *(call(id="b"), arguments('{"n":2}'), stop()),
            end("tool_use"),
        )
        assert calls(*objects) == [("a", "query", {"n": 1}), ("b", "query", {"n": 2})]

    def test_the_index_is_missing(self) -> None:
        objects = (
            *(call(None, "a"), arguments('{"n":1}', None), stop(None)),
            *(call(None, "b"), arguments('{"n":2}', None), stop(None)),
            end("tool_use"),
        )
        assert calls(*objects) == [("a", "query", {"n": 1}), ("b", "query", {"n": 2})]

    def test_the_same_id_twice_gives_two_calls(self) -> None:
        objects = (call(0, "a"), arguments("{}", 0), call(1, "a"), arguments('{"n":2}', 1), end("tool_use"))
        assert calls(*objects) == [("a", "query", {}), ("a", "query", {"n": 2})]

    @pytest.mark.parametrize("id", [None, ""])
    def test_no_id_gets_one(self, id: Any) -> None:
        assert calls(call(0, id), call(1, id), end("tool_use")) == [
            ("minted-1", "query", {}),
            ("minted-2", "query", {}),
        ]

    @pytest.mark.parametrize(
        "objects",
        [
            pytest.param([call(0, "a"), call(0, "b"), arguments("{}", 0)], id="two open calls at one index"),
            pytest.param([call(None, "a"), call(None, "b"), arguments("{}", None)], id="two open calls, no index"),
            pytest.param([call(0), start(0), text("x")], id="a text where a call is still open"),
            pytest.param([arguments("{}", 0)], id="arguments of no call"),
            pytest.param([start(0), arguments("{}", 0)], id="arguments of a text"),
            pytest.param([start(0, "thinking"), arguments("{}", 0)], id="arguments of a thought"),
            pytest.param([call(0, name="")], id="no name"),
            pytest.param([call(0, name=None)], id="null for a name"),
        ],
    )
    def test_what_could_be_two_things_is_refused(self, objects: list[Any]) -> None:
        with pytest.raises(ProviderMalformedError):
            run(call(5, "first"), stop(5), *objects, end("tool_use"))

    def test_the_vendors_own_tools_are_passed_over(self) -> None:
        assert run(
            *(start(0, "server_tool_use", id="s", name="web_search", input={}), arguments('{"query":"x"}', 0), stop(0)),
            *(start(1, "web_search_tool_result", tool_use_id="s", content=[]), stop(1)),
            *(start(2), text("a", 2), stop(2)),
            end(),
        ) == [TextChunkEvent("a"), DoneEvent(UNREPORTED, "stop")]


class TestArguments:
    @pytest.mark.parametrize("pieces", [[], [""], ["", ""], ["{}"], ["  "], ["null"], [None]], ids=repr)
    @pytest.mark.parametrize("values", [{}, {"input": None}, {"input": ""}], ids=str)
    def test_none_are_an_empty_object(self, pieces: list[Any], values: dict[str, Any]) -> None:
        objects = (call(**values), *map(arguments, pieces), stop(), end("tool_use"))
        assert calls(*objects) == [("a", "query", {})]

    def test_whole_arguments_at_the_start(self) -> None:
        assert calls(call(input={"n": 1}), stop(), end("tool_use")) == [("a", "query", {"n": 1})]
        assert calls(call(input={}), arguments('{"n":2}'), end("tool_use")) == [("a", "query", {"n": 2})]

    @pytest.mark.parametrize(
        ("raw", "reason", "error"),
        [
            ('{"mutation":"deletePart","input":{"id":', "max_tokens", "cut off"),
            ('{"mutation":"deletePart","input":{"id":', "model_context_window_exceeded", "cut off"),
            ("", "max_tokens", "cut off"),
            ('{"mutation":"deletePart","input":{"id":', "tool_use", "not JSON"),
            ('code": "uptime"}', "tool_use", "not JSON"),
            ('{"n": NaN}', "tool_use", "not JSON"),
            ('{"n":1}{"n":2}', "tool_use", "not JSON"),
            ('["Part"]', "tool_use", "not a JSON object: the arguments are an array"),
            ('"Part"', "tool_use", "not a JSON object: the arguments are a string"),
            ("[" * 100_000, "tool_use", "not JSON: it is nested too deeply"),
        ],
        ids=lambda value: str(value)[:20],
    )
    def test_broken_ones_are_told_to_the_model(self, raw: str, reason: str, error: str) -> None:
        *_, event, last = run(text("I will."), call(1), arguments(raw, 1), stop(1), end(reason))
        assert isinstance(event, ToolCallEvent)
        assert event.args == {}
        assert (event.error or "").startswith(error)
        assert isinstance(last, DoneEvent)
        assert last.finish_reason == ("tool_calls" if reason == "tool_use" else "length")

    def test_only_the_last_call_is_cut_by_the_limit(self) -> None:
        whole, none, cut, _ = run(
            *(call(0, "a"), arguments('{"n":1}', 0), stop(0)),
            *(call(1, "b"), stop(1)),
            *(call(2, "c"), arguments('{"n":', 2), stop(2)),
            end("max_tokens"),
        )
        assert isinstance(whole, ToolCallEvent)
        assert isinstance(none, ToolCallEvent)
        assert isinstance(cut, ToolCallEvent)
        assert (whole.args, whole.error, none.args, none.error) == ({"n": 1}, None, {}, None)
        assert (cut.error or "").startswith("cut off")

    def test_a_call_that_was_not_stopped_is_cut_by_the_limit(self) -> None:
        first, second, _ = run(call(0, "a"), call(1, "b"), arguments("{}", 1), stop(1), end("max_tokens"))
        assert isinstance(first, ToolCallEvent)
        assert isinstance(second, ToolCallEvent)
        assert (first.error or "").startswith("cut off")
        assert second.error is None

    @given(st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.text()), st.data())
    def test_pieces_give_the_whole(self, args: dict[str, Any], data: st.DataObject) -> None:
        raw = json.dumps(args)
        cut = data.draw(st.integers(0, len(raw)))
        assert calls(call(), arguments(raw[:cut]), arguments(raw[cut:]), end("tool_use")) == [("a", "query", args)]


class TestThinking:
    def test_a_thought_is_kept_with_its_signature_and_shown_to_nobody(self) -> None:
        """Its beginning and each piece of it is a sign of life."""
        events = run(
            *(start(0, "thinking", thinking="", signature=""), thought("Let me", 0), thought(" see.", 0)),
            *(signature("c2ln", 0), stop(0)),
            *(start(1), text("I look.", 1), stop(1)),
            *(call(2), stop(2)),
            end("tool_use"),
        )
        alive = [TextChunkEvent("")] * 3
        assert events[:-1] == [*alive, TextChunkEvent("I look."), ToolCallEvent("a", "query", {})]
        last = events[-1]
        assert isinstance(last, DoneEvent)
        block = {"type": "thinking", "thinking": "Let me see.", "signature": "c2ln"}
        assert last.metadata == {"thinking": [{"block": block, "characters": 0, "calls": 0}]}

    def test_the_place_of_each_thought_is_kept(self) -> None:
        metadata = done(
            *(start(0, "redacted_thinking", data="b3BhcXVl"), stop(0)),
            *(start(1), text("ab", 1), stop(1)),
            *(start(2, "thinking"), signature("s", 2), stop(2)),
            *(call(3), stop(3)),
            *(start(4, "thinking", thinking="x", signature="y"), stop(4)),
            end("tool_use"),
        ).metadata
        assert [(item["block"], item["characters"], item["calls"]) for item in metadata["thinking"]] == [
            ({"type": "redacted_thinking", "data": "b3BhcXVl"}, 0, 0),
            ({"type": "thinking", "thinking": "", "signature": "s"}, 2, 0),
            ({"type": "thinking", "thinking": "x", "signature": "y"}, 2, 1),
        ]
        assert json.loads(json.dumps(metadata)) == metadata

    def test_without_thoughts_there_is_no_metadata(self) -> None:
        assert done(text("a"), end()).metadata == {}


class TestEnd:
    @pytest.mark.parametrize(
        ("wire", "neutral"),
        [
            ("end_turn", "stop"),
            ("stop_sequence", "stop"),
            ("max_tokens", "length"),
            ("model_context_window_exceeded", "length"),
            ("pause_turn", "unknown"),
            ("reason_of_the_future", "unknown"),
        ],
    )
    def test_stop_reasons_of_text(self, wire: str, neutral: Any) -> None:
        assert done(text("a"), end(wire)).finish_reason == neutral

    @pytest.mark.parametrize("wire", ["tool_use", "end_turn", "stop_sequence", "pause_turn"])
    def test_stop_reasons_of_calls(self, wire: str) -> None:
        assert done(call(), stop(), end(wire)).finish_reason == "tool_calls"

    @pytest.mark.parametrize(
        ("objects", "error"),
        [
            ([], ProviderIncompleteError),
            ([message()], ProviderIncompleteError),
            ([text("a")], ProviderIncompleteError),
            ([call(), arguments("{}"), stop()], ProviderIncompleteError),
            ([call(), arguments("{}"), stop(), end("tool_use")[0]], ProviderIncompleteError),
            ([text("a"), end(None)], ProviderIncompleteError),
            ([call(), arguments("{}"), stop(), end("")], ProviderIncompleteError),
            ([end("refusal")], ProviderRefusedError),
            ([text("I"), end("refusal")], ProviderRefusedError),
            ([call(), stop(), end("refusal")], ProviderRefusedError),
            ([end("model_context_window_exceeded")], ProviderContextError),
        ],
    )
    def test_no_answer_is_an_error(self, objects: list[Any], error: type[ProviderError]) -> None:
        with pytest.raises(error):
            run(*objects)

    @pytest.mark.parametrize(
        ("details", "quoted"),
        [
            ({"explanation": "It might do harm.", "category": "bio"}, "It might do harm."),
            ({"explanation": None, "category": "bio"}, "bio"),
            (None, "no reason"),
        ],
    )
    def test_a_refusal_is_quoted_for_the_operator(self, details: Any, quoted: str) -> None:
        with pytest.raises(ProviderRefusedError, match=quoted):
            run(text("I"), end("refusal", stop_details=details))


class TestUsage:
    def usage(self, first: Any, *later: Any) -> TokenUsage:
        deltas = [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": value} for value in later]
        return done(message(usage=first), text("a"), *deltas, {"type": "message_stop"}).usage

    def test_counts_are_cumulative_so_the_last_one_counts(self) -> None:
        first = {"input_tokens": 25, "output_tokens": 1}
        assert self.usage(first, {"output_tokens": 15}) == TokenUsage(25, 15)
        assert self.usage(first, {"output_tokens": 9}, {"input_tokens": 30, "output_tokens": 15}) == TokenUsage(30, 15)

    def test_a_zero_does_not_undo_what_was_told(self) -> None:
        first = {"input_tokens": 25, "output_tokens": 1}
        assert self.usage(first, {"input_tokens": 0, "output_tokens": 15}) == TokenUsage(25, 15)
        assert self.usage({"input_tokens": 0, "output_tokens": 0}, {**first, "output_tokens": 15}) == TokenUsage(25, 15)

    def test_the_input_includes_what_the_cache_took_and_gave(self) -> None:
        first = {
            "input_tokens": 5,
            "cache_creation_input_tokens": 100,
            "cache_read_input_tokens": 2000,
            "output_tokens": 1,
        }
        assert self.usage(first, {"output_tokens": 7}) == TokenUsage(2105, 7, cached_tokens=2000)

    def test_thinking_tokens(self) -> None:
        last = {"output_tokens": 70, "output_tokens_details": {"thinking_tokens": 50}}
        assert self.usage({"input_tokens": 5, "output_tokens": 1}, last) == TokenUsage(5, 70, thinking_tokens=50)

    @pytest.mark.parametrize(
        "value",
        [
            None,
            {},
            [],
            {"input_tokens": None, "output_tokens": None, "output_tokens_details": None},
            {"input_tokens": "3", "output_tokens": True},
            {"input_tokens": -1, "output_tokens": -1},
        ],
        ids=str,
    )
    def test_unknown_is_not_reported(self, value: Any) -> None:
        assert self.usage(value, value) == UNREPORTED

    def test_the_model_is_named(self) -> None:
        assert done(message(model="claude-x"), message(model=""), end()).model == "claude-x"
