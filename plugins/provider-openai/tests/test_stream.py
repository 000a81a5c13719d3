"""Streams as servers in the field send them, fed to the assembler chunk by chunk."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from gm_chat_provider_openai.stream import StreamAssembler
from hypothesis import given
from hypothesis import strategies as st

from gm_chat.providers.base import (
    ChatEvent,
    DoneEvent,
    ProviderError,
    ProviderFilteredError,
    ProviderIncompleteError,
    ProviderMalformedError,
    ProviderRefusedError,
    TextChunkEvent,
    TokenUsage,
    ToolCallEvent,
)


def delta(value: Any, **choice: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": value, **choice}]}


def call(**fragment: Any) -> dict[str, Any]:
    """A chunk with one fragment of a tool call; ``name`` and ``arguments`` go where the wire has them."""
    function = {key: fragment.pop(key) for key in ("name", "arguments") if key in fragment}
    return delta({"tool_calls": [{**fragment, "function": function}]})


def end(reason: str = "tool_calls") -> dict[str, Any]:
    return delta({}, finish_reason=reason)


def run(*chunks: object) -> list[ChatEvent]:
    numbers = itertools.count(1)
    assembler = StreamAssembler(new_id=lambda: f"minted-{next(numbers)}")
    events: list[ChatEvent] = [event for chunk in chunks for event in assembler.feed(chunk)]
    return [*events, *assembler.finish()]


def calls(*chunks: object) -> list[tuple[str, str, Any]]:
    return [(event.id, event.name, dict(event.args)) for event in run(*chunks) if isinstance(event, ToolCallEvent)]


UNREPORTED = TokenUsage(reported=False)


class TestText:
    @pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
    def test_a_thought_is_a_sign_of_life_and_no_answer(self, key: str) -> None:
        assert run(delta({key: "Hm."}), delta({key: "", "content": "a"}), delta({key: None}), end("stop"))[:-1] == [
            TextChunkEvent(""),
            TextChunkEvent("a"),
        ]

    def test_chunks_come_out_as_they_are(self) -> None:
        assert run(
            delta({"role": "assistant", "content": ""}), delta({"content": "a"}), delta({"content": "b"}), end("stop")
        ) == [
            TextChunkEvent("a"),
            TextChunkEvent("b"),
            DoneEvent(UNREPORTED, "stop"),
        ]

    @pytest.mark.parametrize(
        "noise",
        [
            {"choices": []},
            {"choices": None},
            {},
            None,
            {"choices": [{"index": 0}]},
            {"choices": [{"index": 0, "delta": None}]},
            {"choices": [{"index": 0, "delta": {"content": None, "tool_calls": None}}]},
            {"choices": [{"index": 0, "delta": {"tool_calls": []}}]},
            {"choices": [], "prompt_filter_results": [{"prompt_index": 0}]},
        ],
    )
    def test_chunks_that_say_nothing_are_passed_over(self, noise: Any) -> None:
        assert run(noise, delta({"content": "a"}), noise, end("stop"), noise) == [
            TextChunkEvent("a"),
            DoneEvent(UNREPORTED, "stop"),
        ]

    @pytest.mark.parametrize(
        "rubbish",
        [
            [],
            "text",
            7,
            {"choices": {}},
            {"choices": [7]},
            delta("text"),
            delta({"content": ["a"]}),
            delta({"tool_calls": {}}),
            delta({"tool_calls": ["x"]}),
            delta({"tool_calls": [{"index": "0", "function": {"name": "query"}}]}),
            delta({"tool_calls": [{"index": 0, "function": "query"}]}),
            call(index=0, id="a", name="query", arguments={"manager": "Part"}),
            call(index=0, id=7, name="query"),
        ],
    )
    def test_what_the_format_does_not_allow_is_malformed(self, rubbish: Any) -> None:
        with pytest.raises(ProviderMalformedError):
            run(rubbish, end("stop"))


class TestIdsAndIndexes:
    def test_the_id_comes_late_and_then_empty(self) -> None:
        chunks = (
            call(index=0, arguments='{"manager"'),
            call(index=0, id="a", name="query", arguments=':"Part"'),
            call(index=0, id="", arguments="}"),
            end(),
        )
        assert calls(*chunks) == [("a", "query", {"manager": "Part"})]

    def test_the_id_comes_after_the_name(self) -> None:
        chunks = (call(index=0, name="query", arguments="{"), call(index=0, id="a", arguments="}"), end())
        assert calls(*chunks) == [("a", "query", {})]

    def test_no_id_at_all_gets_one(self) -> None:
        chunks = (call(index=0, name="query", arguments="{}"), call(index=1, name="query", arguments="{}"), end())
        assert calls(*chunks) == [("minted-1", "query", {}), ("minted-2", "query", {})]

    def test_the_index_is_missing_but_the_ids_tell(self) -> None:
        chunks = (
            call(id="a", name="query", arguments='{"n":'),
            call(id="b", name="query", arguments='{"n":'),
            call(id="a", arguments="1}"),
            call(id="b", arguments="2}"),
            end(),
        )
        assert calls(*chunks) == [("a", "query", {"n": 1}), ("b", "query", {"n": 2})]

    def test_the_index_is_missing_and_there_is_one_call(self) -> None:
        chunks = (call(id="a", name="query", arguments='{"n":'), call(arguments="1}"), end())
        assert calls(*chunks) == [("a", "query", {"n": 1})]

    def test_every_call_has_the_index_0_but_its_own_id(self) -> None:
        chunks = (
            call(index=0, id="a", name="query", arguments='{"n":1}'),
            call(index=0, id="b", name="query", arguments='{"n":2}'),
            end(),
        )
        assert calls(*chunks) == [("a", "query", {"n": 1}), ("b", "query", {"n": 2})]

    def test_interleaved_calls(self) -> None:
        chunks = (
            call(index=0, id="a", name="query", arguments=""),
            call(index=1, id="b", name="find_path", arguments=""),
            call(index=1, arguments='{"n":2}'),
            call(index=0, arguments='{"n":1}'),
            end(),
        )
        assert calls(*chunks) == [("a", "query", {"n": 1}), ("b", "find_path", {"n": 2})]

    def test_the_same_id_twice_gives_two_calls(self) -> None:
        chunks = (
            call(index=0, id="a", name="query", arguments='{"n":1}'),
            call(index=1, id="a", name="query", arguments='{"n":2}'),
            end(),
        )
        assert calls(*chunks) == [("a", "query", {"n": 1}), ("a", "query", {"n": 2})]

    def test_a_server_that_repeats_id_and_name(self) -> None:
        chunks = (
            call(index=0, id="a", name="query", arguments="{"),
            call(index=0, id="a", name="query", arguments="}"),
            end(),
        )
        assert calls(*chunks) == [("a", "query", {})]

    @pytest.mark.parametrize(
        "chunks",
        [
            pytest.param(
                [call(name="query", arguments="{}"), call(name="query", arguments="{}")], id="neither index nor id"
            ),
            pytest.param(
                [call(index=0, name="query", arguments="{}"), call(index=0, name="query", arguments="{}")],
                id="one index, no id",
            ),
            pytest.param(
                [
                    call(index=0, id="a", name="query"),
                    call(index=0, id="b", name="query"),
                    call(index=0, arguments="{}"),
                ],
                id="one index, a fragment without id",
            ),
            pytest.param(
                [call(id="a", name="query"), call(id="b", name="query"), call(arguments="{}")],
                id="no index, a fragment without id",
            ),
            pytest.param(
                [call(index=0, id="a", name="query"), call(index=0, id="a", name="mutate")], id="one id, two names"
            ),
            pytest.param([call(index=0, id="a", arguments="{}")], id="no name"),
        ],
    )
    def test_what_could_be_two_things_is_refused(self, chunks: list[Any]) -> None:
        with pytest.raises(ProviderMalformedError):
            run(*chunks, end())

    def test_nothing_comes_out_when_a_later_call_is_refused(self) -> None:
        assembler = StreamAssembler()
        for chunk in (
            call(index=0, id="a", name="query", arguments="{}"),
            call(index=1, id="b", arguments="{}"),
            end(),
        ):
            assert not list(assembler.feed(chunk))
        with pytest.raises(ProviderMalformedError):
            assembler.finish()


class TestArguments:
    @pytest.mark.parametrize("arguments", ["", "  ", None, "null", "{}"])
    def test_none_are_an_empty_object(self, arguments: Any) -> None:
        assert calls(call(index=0, id="a", name="query", arguments=arguments), end()) == [("a", "query", {})]

    @pytest.mark.parametrize(
        ("arguments", "reason", "error"),
        [
            ('{"mutation":"deletePart","input":{"id":', "length", "cut off"),
            ('{"mutation":"deletePart","input":{"id":', "content_filter", "cut off"),
            ("", "length", "cut off"),
            ('{"mutation":"deletePart","input":{"id":', "tool_calls", "not JSON"),
            ("{'manager': 'Part'}", "tool_calls", "not JSON"),
            ('{"n": NaN}', "tool_calls", "not JSON"),
            ('{"n":1}{"n":2}', "tool_calls", "not JSON"),
            ('["Part"]', "tool_calls", "not a JSON object: the arguments are an array"),
            ('"Part"', "tool_calls", "not a JSON object: the arguments are a string"),
            ("true", "tool_calls", "not a JSON object: the arguments are a boolean"),
            ("7", "tool_calls", "not a JSON object: the arguments are a number"),
            ("[" * 100_000, "tool_calls", "not JSON: it is nested too deeply"),
        ],
    )
    def test_broken_ones_are_told_to_the_model(self, arguments: str, reason: str, error: str) -> None:
        text = delta({"content": "I will."})
        *_, event, done = run(text, call(index=0, id="a", name="mutate", arguments=arguments), end(reason))
        assert isinstance(event, ToolCallEvent)
        assert event.args == {}
        assert (event.error or "").startswith(error)
        assert isinstance(done, DoneEvent)

    def test_a_whole_call_before_the_cut_one_is_whole(self) -> None:
        first, second, done = run(
            call(index=0, id="a", name="query", arguments='{"n":1}'),
            call(index=1, id="b", name="query", arguments='{"n":'),
            end("length"),
        )
        assert isinstance(first, ToolCallEvent)
        assert isinstance(second, ToolCallEvent)
        assert (first.args, first.error) == ({"n": 1}, None)
        assert second.error is not None
        assert done == DoneEvent(UNREPORTED, "length")

    @given(
        st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.text()),
        st.data(),
    )
    def test_pieces_give_the_whole(self, args: dict[str, Any], data: st.DataObject) -> None:
        text = json.dumps(args)
        cut = data.draw(st.integers(0, len(text)))
        chunks = (call(index=0, id="a", name="query", arguments=text[:cut]), call(index=0, arguments=text[cut:]), end())
        assert calls(*chunks) == [("a", "query", args)]


class TestEnd:
    @pytest.mark.parametrize(
        ("wire", "neutral"),
        [
            ("stop", "stop"),
            ("length", "length"),
            ("content_filter", "filtered"),
            ("eos", "unknown"),
        ],
    )
    def test_finish_reasons_of_text(self, wire: str, neutral: Any) -> None:
        assert run(delta({"content": "a"}), end(wire))[-1] == DoneEvent(UNREPORTED, neutral)

    @pytest.mark.parametrize("wire", ["tool_calls", "function_call", "stop"])
    def test_finish_reasons_of_calls(self, wire: str) -> None:
        assert run(call(index=0, id="a", name="query"), end(wire))[-1] == DoneEvent(UNREPORTED, "tool_calls")

    @pytest.mark.parametrize(
        ("chunks", "error"),
        [
            ([], ProviderIncompleteError),
            ([delta({"content": "a"})], ProviderIncompleteError),
            ([call(index=0, id="a", name="query", arguments="{}")], ProviderIncompleteError),
            ([{"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}], ProviderIncompleteError),
            ([end("content_filter")], ProviderFilteredError),
            ([call(index=0, id="a", name="query", arguments="{}"), end("content_filter")], ProviderFilteredError),
            ([delta({"refusal": "I can"}), delta({"refusal": "not."}), end("stop")], ProviderRefusedError),
        ],
    )
    def test_no_answer_is_an_error(self, chunks: list[Any], error: type[ProviderError]) -> None:
        with pytest.raises(error):
            run(*chunks)

    def test_a_refusal_is_quoted_for_the_operator(self) -> None:
        with pytest.raises(ProviderRefusedError, match=r"I cannot\."):
            run(delta({"refusal": "I can"}), delta({"refusal": "not."}), end("stop"))


class TestUsage:
    def usage(self, *values: Any) -> TokenUsage:
        done = run(delta({"content": "a"}), end("stop"), *({"choices": [], "usage": value} for value in values))[-1]
        assert isinstance(done, DoneEvent)
        return done.usage

    def test_the_chunk_after_the_end_counts(self) -> None:
        assert self.usage({"prompt_tokens": 3, "completion_tokens": 4}) == TokenUsage(3, 4)

    def test_the_last_one_wins(self) -> None:
        first, last = ({"prompt_tokens": 9, "completion_tokens": count} for count in (1, 5))
        assert self.usage(first, None, last, None) == TokenUsage(9, 5)

    def test_cached_and_thinking_tokens(self) -> None:
        value = {
            "prompt_tokens": 30,
            "completion_tokens": 20,
            "prompt_tokens_details": {"cached_tokens": 10},
            "completion_tokens_details": {"reasoning_tokens": 15},
        }
        assert self.usage(value) == TokenUsage(30, 20, 10, 15)

    @pytest.mark.parametrize(
        "value",
        [
            None,
            {},
            {"prompt_tokens": None, "completion_tokens": None, "prompt_tokens_details": None},
            {"prompt_tokens": "3", "completion_tokens": "4"},
        ],
    )
    def test_unknown_is_not_reported(self, value: Any) -> None:
        assert self.usage(value) == UNREPORTED

    def test_the_model_is_named(self) -> None:
        done = run({**delta({"content": "a"}), "model": "gpt-x"}, {**end("stop"), "model": ""})[-1]
        assert isinstance(done, DoneEvent)
        assert done.model == "gpt-x"
