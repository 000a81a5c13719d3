"""Streams as servers in the field send them, fed to the assembler chunk by chunk."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from gm_chat_provider_google.failures import SignatureError
from gm_chat_provider_google.stream import StreamAssembler
from google.genai import types

from gm_chat.providers.base import (
    ChatEvent,
    DoneEvent,
    ProviderError,
    ProviderFilteredError,
    ProviderIncompleteError,
    ProviderMalformedError,
    TextChunkEvent,
    TokenUsage,
    ToolCallEvent,
)

TOOLS = {"query": "query", "search_managers": "search_managers", "_3d": "3d"}
UNREPORTED = TokenUsage(reported=False)


def chunk(*parts: Any, **candidate: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, "index": 0, **candidate}]}


def call(args: Any = None, name: str = "query", signature: str | None = None, **more: Any) -> dict[str, Any]:
    part = {"functionCall": {"name": name, "args": args, **more}}
    return {**part, "thoughtSignature": signature} if signature else part


def end(reason: str | None = "STOP", *parts: Any, **candidate: Any) -> dict[str, Any]:
    return chunk(*parts, finishReason=reason, **candidate)


def run(*chunks: Any) -> list[ChatEvent]:
    numbers = itertools.count(1)
    assembler = StreamAssembler("gemini", TOOLS, new_id=lambda: f"minted-{next(numbers)}")
    events: list[ChatEvent] = [event for values in chunks for event in assembler.feed(values)]
    return [*events, *assembler.finish()]


def calls(*chunks: Any) -> list[tuple[str, str, Any]]:
    return [(event.id, event.name, dict(event.args)) for event in run(*chunks) if isinstance(event, ToolCallEvent)]


def done(*chunks: Any) -> DoneEvent:
    last = run(*chunks)[-1]
    assert isinstance(last, DoneEvent)
    return last


class TestText:
    def test_parts_come_out_as_they_are(self) -> None:
        assert run(chunk({"text": "a"}, {"text": "b"}), chunk({"text": " "}), end("STOP", {"text": ""})) == [
            TextChunkEvent("a"),
            TextChunkEvent("b"),
            TextChunkEvent(" "),
            DoneEvent(UNREPORTED, "stop"),
        ]

    @pytest.mark.parametrize(
        "noise",
        [
            {},
            {"candidates": []},
            {"candidates": None, "usageMetadata": None, "promptFeedback": None, "modelVersion": None},
            {"candidates": [None]},
            {"candidates": [{}]},
            {"candidates": [{"content": None, "finishReason": None}]},
            {"candidates": [{"content": {"role": "model"}}]},
            chunk(None),
            chunk({}),
            chunk({"text": None}),
            chunk({"functionCall": None}),
            chunk({"executableCode": {"language": "PYTHON", "code": "1"}}, {"newKindOfPart": 7}),
            chunk(finishReason="FINISH_REASON_UNSPECIFIED"),
            {"candidates": [{"index": 1, "content": {"parts": [{"text": "another"}]}, "finishReason": "OTHER"}]},
            {"promptFeedback": {"safetyRatings": [], "blockReason": "BLOCK_REASON_UNSPECIFIED"}},
            {"usageMetadata": {"trafficType": "ON_DEMAND"}, "somethingNew": {}},
        ],
    )
    def test_chunks_that_say_nothing_are_passed_over(self, noise: Any) -> None:
        assert run(noise, chunk({"text": "a"}), noise, end(), noise) == [
            TextChunkEvent("a"),
            DoneEvent(UNREPORTED, "stop"),
        ]

    def test_thoughts_are_not_shown_but_a_sign_of_life(self) -> None:
        assert run(chunk({"text": "hm", "thought": True}, {"text": "a", "thought": False}), end()) == [
            TextChunkEvent(""),
            TextChunkEvent("a"),
            DoneEvent(UNREPORTED, "stop"),
        ]

    @pytest.mark.parametrize(
        "rubbish",
        [
            {"candidates": {}},
            {"candidates": [7]},
            {"candidates": [{"content": "text"}]},
            {"candidates": [{"content": {"parts": "text"}}]},
            {"usageMetadata": 7},
            {"promptFeedback": "blocked"},
            chunk("text"),
            chunk({"text": 7}),
            chunk({"functionCall": "query"}),
            chunk(call(name=None)),  # type: ignore[arg-type]  # that is the point
            chunk(call(name="")),
            chunk(call(id=7)),
            chunk(call(partialArgs=[{"jsonPath": "$.manager", "stringValue": "P"}])),
            chunk(call(willContinue=True)),
            end(7),  # type: ignore[arg-type]  # that is the point
        ],
    )
    def test_what_the_format_does_not_allow_is_malformed(self, rubbish: Any) -> None:
        with pytest.raises(ProviderMalformedError):
            run(rubbish, end())


class TestCalls:
    def test_several_in_one_chunk_and_over_chunks_the_same_twice(self) -> None:
        chunks = (chunk(call({"n": 1}), call({"n": 2})), chunk(call({"n": 1})), end())
        assert calls(*chunks) == [
            ("minted-1", "query", {"n": 1}),
            ("minted-2", "query", {"n": 2}),
            ("minted-3", "query", {"n": 1}),
        ]
        assert done(*chunks).finish_reason == "tool_calls"

    def test_an_id_is_kept_and_marked_as_the_servers(self) -> None:
        (event, _) = run(end("STOP", call({"n": 1}, id="a")))
        assert isinstance(event, ToolCallEvent)
        assert (event.id, event.metadata) == ("a", {"id": "a"})

    def test_a_call_in_the_chunk_that_ends_it(self) -> None:
        assert calls(end("STOP", call({"n": 1}))) == [("minted-1", "query", {"n": 1})]

    def test_the_name_that_a_tool_had_to_take_is_taken_back(self) -> None:
        assert calls(end("STOP", call(name="_3d"))) == [("minted-1", "3d", {})]

    @pytest.mark.parametrize("args", [None, {}, "", "{}", "null"])
    def test_none_are_an_empty_object(self, args: Any) -> None:
        assert calls(end("STOP", call(args))) == [("minted-1", "query", {})]

    @pytest.mark.parametrize(
        ("args", "reason", "error"),
        [
            (None, "MAX_TOKENS", "cut off"),
            ('{"manager', "MAX_TOKENS", "cut off"),
            ('{"manager', "STOP", "not JSON"),
            (["Part"], "STOP", "not a JSON object: the arguments are an array"),
        ],
    )
    def test_broken_ones_are_told_to_the_model(self, args: Any, reason: str, error: str) -> None:
        _, event, last = run(chunk({"text": "I will."}), end(reason, call(args)))
        assert isinstance(event, ToolCallEvent)
        assert event.args == {}
        assert (event.error or "").startswith(error)
        assert isinstance(last, DoneEvent)

    def test_nothing_comes_out_before_the_end(self) -> None:
        assembler = StreamAssembler("gemini", TOOLS)
        assert not list(assembler.feed(chunk(call({"n": 1}))))
        assert not assembler.is_complete
        with pytest.raises(ProviderIncompleteError):
            assembler.finish()


class TestRefusedCalls:
    """Gemini itself declares a call broken, which happens often. A call that was not read is never run."""

    @pytest.mark.parametrize(
        ("message", "name"),
        [
            ("Malformed function call: print(default_api.query(manager='Part'))", "query"),
            ("Malformed function call: print(default_api.search_managers(query='bolt'))", "search_managers"),
            ("Malformed function call: call:_3d{angle:45}", "3d"),
        ],
    )
    def test_the_model_is_told_if_the_tool_is_named(self, message: str, name: str) -> None:
        event, last = run(end("MALFORMED_FUNCTION_CALL", finishMessage=message))
        assert isinstance(event, ToolCallEvent)
        assert (event.id, event.name, event.args) == ("minted-1", name, {})
        assert (
            event.error
            == f"Gemini refused the call (finishReason 'MALFORMED_FUNCTION_CALL': {message}); it was not run"
        )
        assert last == DoneEvent(UNREPORTED, "tool_calls")

    @pytest.mark.parametrize("message", [None, "", "Malformed function call: my_query()", "print(requery(1))"])
    @pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"])
    def test_else_the_answer_is_malformed(self, reason: str, message: str | None) -> None:
        with pytest.raises(ProviderMalformedError, match=reason) as caught:
            run(chunk({"text": "Let me see."}), end(reason, finishMessage=message))
        assert caught.value.retryable

    def test_a_call_that_comes_with_it_is_not_run(self) -> None:
        _, event, _ = run(chunk({"text": "Hm."}, call({"n": 1}, id="a", signature="s")), end("MALFORMED_FUNCTION_CALL"))
        assert isinstance(event, ToolCallEvent)
        assert (event.id, event.args) == ("a", {})
        assert (event.error or "").startswith("Gemini refused the call")
        assert event.metadata == {"id": "a", "model": "gemini", "thoughtSignature": "s"}

    def test_a_tool_that_was_not_offered_is_the_hosts_to_answer(self) -> None:
        unknown, known, _ = run(end("UNEXPECTED_TOOL_CALL", call({"n": 1}, name="drop"), call({"n": 2})))
        assert isinstance(unknown, ToolCallEvent)
        assert (unknown.name, unknown.args, unknown.error) == ("drop", {"n": 1}, None)
        assert isinstance(known, ToolCallEvent)
        assert (known.args, known.error is None) == ({}, False)

    def test_the_quotation_is_short(self) -> None:
        event, _ = run(end("MALFORMED_FUNCTION_CALL", finishMessage="query(" + "x" * 10_000))
        assert isinstance(event, ToolCallEvent)
        assert len(event.error or "") < 500


class TestSignatures:
    def metadata(self, *chunks: Any) -> Any:
        return done(*chunks).metadata

    def test_of_calls_are_the_calls_metadata_alone(self) -> None:
        first, second, last = run(chunk(call(signature="s"), call()), end("STOP", {"text": ""}))
        assert isinstance(first, ToolCallEvent)
        assert isinstance(second, ToolCallEvent)
        assert isinstance(last, DoneEvent)
        assert first.metadata == {"model": "gemini", "thoughtSignature": "s"}
        assert (second.metadata, last.metadata) == ({}, {})

    def test_of_texts_keep_their_places(self) -> None:
        chunks = (
            chunk({"text": "ab"}, {"text": "c"}),
            chunk({"text": "de", "thoughtSignature": "s1"}),
            chunk({"text": "f"}, call(signature="s2")),
            end("STOP", {"text": "", "thoughtSignature": "s3"}),
        )
        assert self.metadata(*chunks) == {
            "model": "gemini",
            "parts": [
                {"text": 3},
                {"text": 2, "thoughtSignature": "s1"},
                {"text": 1},
                {"call": 0},
                {"text": 0, "thoughtSignature": "s3"},
            ],
        }

    def test_of_thoughts_keep_the_thought(self) -> None:
        chunks = (
            chunk({"text": "hm", "thought": True}),
            chunk({"text": "so", "thought": True, "thoughtSignature": "s"}, {"text": "a"}),
            end("STOP", {"thoughtSignature": "t"}),
        )
        assert self.metadata(*chunks)["parts"] == [
            {"thought": True, "text": "so", "thoughtSignature": "s"},
            {"text": 1},
            {"text": 0, "thoughtSignature": "t"},
        ]

    @pytest.mark.parametrize("signature", [None, "", 7])
    def test_what_is_none_is_not_kept(self, signature: Any) -> None:
        assert self.metadata(end("STOP", {"text": "a", "thoughtSignature": signature})) == {}


class TestEnd:
    @pytest.mark.parametrize(
        ("wire", "neutral"),
        [
            ("STOP", "stop"),
            ("MAX_TOKENS", "length"),
            ("CONTINUATION", "length"),
            ("SAFETY", "filtered"),
            ("RECITATION", "filtered"),
            ("BLOCKLIST", "filtered"),
            ("PROHIBITED_CONTENT", "filtered"),
            ("SPII", "filtered"),
            ("LANGUAGE", "filtered"),
            ("OTHER", "unknown"),
            ("NEW_IN_THE_NEXT_RELEASE", "unknown"),
        ],
    )
    def test_finish_reasons_of_text(self, wire: str, neutral: Any) -> None:
        assert done(chunk({"text": "a"}), end(wire)) == DoneEvent(UNREPORTED, neutral)

    def test_every_reason_that_the_sdk_knows_ends_a_stream(self) -> None:
        for reason in types.FinishReason:
            if reason.name == "FINISH_REASON_UNSPECIFIED":
                continue
            try:
                assert done(chunk({"text": "a"}), end(reason.value)).finish_reason in (
                    "stop",
                    "length",
                    "filtered",
                    "unknown",
                )
            except (ProviderMalformedError, SignatureError):
                assert reason.value.startswith(("MALFORMED", "UNEXPECTED", "MISSING"))

    @pytest.mark.parametrize(
        ("chunks", "error"),
        [
            ([], ProviderIncompleteError),
            ([chunk({"text": "a"})], ProviderIncompleteError),
            ([chunk(call({"n": 1}))], ProviderIncompleteError),
            ([{"usageMetadata": {"promptTokenCount": 1}}], ProviderIncompleteError),
            ([end(None)], ProviderIncompleteError),
            ([end("SAFETY")], ProviderFilteredError),
            ([end("PROHIBITED_CONTENT", finishMessage="no")], ProviderFilteredError),
            ([chunk(call({"n": 1})), end("SAFETY")], ProviderFilteredError),
            ([{"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}], ProviderFilteredError),
            ([{"promptFeedback": {"blockReason": "NEW_REASON"}, "candidates": None}], ProviderFilteredError),
            ([end("OTHER")], ProviderError),
            ([end("NEW_IN_THE_NEXT_RELEASE", {"text": ""})], ProviderError),
            ([end("MALFORMED_RESPONSE")], ProviderMalformedError),
            ([end("MISSING_THOUGHT_SIGNATURE")], SignatureError),
        ],
    )
    def test_no_answer_is_an_error(self, chunks: list[Any], error: type[ProviderError]) -> None:
        with pytest.raises(error) as caught:
            run(*chunks)
        assert type(caught.value) is error

    def test_the_last_reason_counts(self) -> None:
        assert done(end("STOP", call({"n": 1})), end("MAX_TOKENS", {"text": ""})).finish_reason == "length"

    def test_the_reasons_text_is_for_the_operator(self) -> None:
        with pytest.raises(ProviderFilteredError, match=r"\(finishReason 'SPII': It holds a passport number\.\)"):
            run(end("SPII", finishMessage="It holds a passport number."))

    def test_the_model_is_named(self) -> None:
        first = {**chunk({"text": "a"}), "modelVersion": "gemini-2.5-flash-09-2025"}
        assert done(first, {**end(), "modelVersion": ""}).model == "gemini-2.5-flash-09-2025"


class TestUsage:
    def usage(self, *values: Any) -> TokenUsage:
        return done(*({**chunk({"text": "a"}), "usageMetadata": value} for value in values), end()).usage

    def test_the_last_value_of_each_count_wins(self) -> None:
        assert self.usage(
            {"promptTokenCount": 9, "thoughtsTokenCount": 5},
            {"promptTokenCount": 9, "candidatesTokenCount": 1},
            None,
            {"promptTokenCount": 10, "candidatesTokenCount": 4, "totalTokenCount": 19},
            {"trafficType": "ON_DEMAND"},
        ) == TokenUsage(10, 9, thinking_tokens=5)

    def test_everything_that_is_billed_counts(self) -> None:
        value = {
            "promptTokenCount": 30,
            "toolUsePromptTokenCount": 3,
            "cachedContentTokenCount": 20,
            "candidatesTokenCount": 7,
            "thoughtsTokenCount": 11,
        }
        assert self.usage(value) == TokenUsage(33, 18, 20, 11)

    def test_a_count_of_zero_is_left_out_by_the_server(self) -> None:
        assert self.usage({"promptTokenCount": 9, "totalTokenCount": 9}) == TokenUsage(9, 0)

    @pytest.mark.parametrize("value", [None, {}, {"promptTokenCount": None}, {"promptTokenCount": "3"}])
    def test_unknown_is_not_reported(self, value: Any) -> None:
        assert self.usage(value) == UNREPORTED

    def test_the_chunk_after_the_end_counts(self) -> None:
        assert done(chunk({"text": "a"}), end(), {"usageMetadata": {"promptTokenCount": 3}}).usage == TokenUsage(3, 0)
