"""Cases of the format ``openai-sse``: chunks of ``POST /v1/chat/completions``, by OpenAI and whoever imitates it."""

from __future__ import annotations

import math
from typing import Any, Final

from gm_chat.providers.base import (
    ProviderContextError,
    ProviderError,
    ProviderFilteredError,
    ProviderIncompleteError,
    ProviderMalformedError,
    ProviderOverloadedError,
    ProviderQuotaError,
    ProviderRefusedError,
    TokenUsage,
)
from gm_chat.testing.wire_cases.base import ARGS, AS_TEXT, IN_TEXT, PAGE, QUERY, UNREPORTED, WireCase, compact, sse

__all__ = ["CASES"]

DONE: Final = "data: [DONE]\n\n"
COUNTS: Final = {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15}
TEXT: Final = compact(ARGS)
FIRST, REST = TEXT[:11], TEXT[11:]


def chunk(delta: Any, **choice: Any) -> dict[str, Any]:
    return {"object": "chat.completion.chunk", "model": "m", "choices": [{"index": 0, "delta": delta, **choice}]}


def call(**fragment: Any) -> dict[str, Any]:
    """One fragment of a call; ``name`` and ``arguments`` go where the wire has them."""
    function = {key: fragment.pop(key) for key in ("name", "arguments") if key in fragment}
    return {**fragment, "function": function}


def calls(*fragments: dict[str, Any]) -> dict[str, Any]:
    return chunk({"tool_calls": list(fragments)})


def usage(**counts: Any) -> dict[str, Any]:
    return {"choices": [], "usage": {**COUNTS, **counts}}


def end(reason: str | None = "tool_calls") -> tuple[Any, ...]:
    return (chunk({}, finish_reason=reason), usage(), DONE)


HI: Final = chunk({"role": "assistant", "content": "Hi"})
WHOLE: Final = calls(call(index=0, id="a", type="function", name="query", arguments=TEXT))
STOP: Final = end("stop")
ONE: Final = call(index=0, id="a", name="query", arguments='{"n":1}')
TWO: Final = call(index=1, id="b", name="query", arguments='{"n":2}')
BOTH: Final = (("query", {"n": 1}), ("query", {"n": 2}))


def means(name: str, *events: Any, **expected: Any) -> WireCase:
    return WireCase(name=name, body=sse(*events), **expected)


def says(name: str, *events: Any, **expected: Any) -> WireCase:
    """Whatever else comes, the answer is "Hi"."""
    return means(name, *events, text="Hi", **expected)


def runs(name: str, *events: Any, meant: Any = (QUERY,), **expected: Any) -> WireCase:
    return means(name, *events, calls=meant, **{"finish": "tool_calls", **expected})


def tells(name: str, arguments: Any, error: str, reason: str = "tool_calls", **expected: Any) -> WireCase:
    """A call with these arguments is not run: the model is told."""
    fragment = call(index=0, id="a", name="query", arguments=arguments)
    return runs(name, calls(fragment), *end(reason), meant=(("query", {}),), errors=(error,), **expected)


def fails(name: str, failure: type[ProviderError], *events: Any, **expected: Any) -> WireCase:
    return means(name, *events, failure=(failure,), **expected)


def refuses(name: str, failure: type[ProviderError], status: int, error: Any, **expected: Any) -> WireCase:
    body = error if isinstance(error, bytes) else compact({"error": error}).encode()
    expected = {"content_type": "application/json", **expected}
    return WireCase(name=name, body=body, status=status, failure=(failure,), **expected)


def error(**values: Any) -> dict[str, Any]:
    return {"error": {"message": "not today", **values}}


QUOTA: Final = {"message": "Rate limit reached", "type": "requests", "code": "rate_limit_exceeded"}

CASES: Final = (
    fails("no-end", ProviderIncompleteError, WHOLE),
    fails("no-end: after text", ProviderIncompleteError, HI, text="Hi"),
    fails("end-without-reason", ProviderIncompleteError, HI, WHOLE, DONE, text="Hi"),
    says("end-without-blank-line", HI, *STOP[:2], "data: [DONE]"),
    WireCase(name="page", body=PAGE, content_type="text/html", failure=(ProviderIncompleteError,)),
    WireCase(name="page: said to be a stream", body=PAGE, failure=(ProviderIncompleteError,)),
    WireCase(name="empty-body", body=b"", failure=(ProviderIncompleteError,)),
    WireCase(
        name="not-a-stream",
        body=compact({"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}).encode(),
        content_type="application/json",
        failure=(ProviderIncompleteError, ProviderMalformedError),
    ),
    fails("broken-json", ProviderMalformedError, HI, 'data: {"choices":[{"ind\n\n', *STOP, text="Hi"),
    means("empty-answer", *STOP),
    # --- framing ---
    says("comment-lines", ": waiting\n\n", HI, ": waiting\n\n", *STOP),
    WireCase(name="crlf", body=sse(HI, *STOP).replace(b"\n", b"\r\n"), text="Hi"),
    WireCase(name="no-space-after-colon", body=sse(HI, *STOP).replace(b"data: ", b"data:"), text="Hi"),
    means("line-separators", chunk({"content": "a\u2028b\u2029c\x85d"}), *STOP, text="a\u2028b\u2029c\x85d"),
    says("multi-line-event", 'data: {"choices":[{"index":0,\ndata: "delta":{"content":"Hi"}}]}\n\n', *STOP),
    means("large-event", chunk({"content": "x" * 200_000}), *STOP, text="x" * 200_000),
    says("unknown-events", {"object": "heartbeat"}, HI, "id: 7\nretry: 9\ndata: {}\n\n", chunk({"mood": []}), *STOP),
    # --- which call is it ---
    runs(
        "late-id",
        calls(call(index=0, arguments=FIRST)),
        calls(call(index=0, id="a", name="query", arguments=REST[:-1])),
        calls(call(index=0, id="", arguments=REST[-1:])),
        *end(),
    ),
    runs(
        "late-id: after the name",
        calls(call(index=0, name="query", arguments=FIRST)),
        calls(call(index=0, id="a", arguments=REST)),
        *end(),
    ),
    runs("no-id", calls({**ONE, "id": None}), calls({**TWO, "id": ""}), *end(), meant=BOTH),
    runs(
        "no-index",
        calls(call(id="a", name="query", arguments='{"n":')),
        calls(call(id="b", name="query", arguments='{"n":')),
        calls(call(id="a", arguments="1}")),
        calls(call(id="b", arguments="2}")),
        *end(),
        meant=BOTH,
    ),
    runs("no-index: one call", calls(call(id="a", name="query", arguments=FIRST)), calls(call(arguments=REST)), *end()),
    runs(
        "no-index: at first only",
        calls(call(id="a", name="query", arguments=FIRST)),
        calls(call(index=0, arguments=REST)),
        *end(),
    ),
    runs("one-index", calls(ONE), calls({**TWO, "index": 0}), *end(), meant=BOTH),
    fails(
        "ambiguous: neither index nor id",
        ProviderMalformedError,
        calls(call(name="query", arguments="{}")),
        calls(call(name="query", arguments="{}")),
        *end(),
    ),
    fails(
        "ambiguous: one index and no id",
        ProviderMalformedError,
        calls({**ONE, "id": ""}),
        calls({**TWO, "id": "", "index": 0}),
        *end(),
    ),
    fails(
        "ambiguous: a fragment without id",
        ProviderMalformedError,
        calls(call(index=0, id="a", name="query")),
        calls(call(index=0, id="b", name="query")),
        calls(call(index=0, arguments="{}")),
        *end(),
    ),
    fails(
        "ambiguous: one id and two names",
        ProviderMalformedError,
        calls(ONE),
        calls(call(index=0, id="a", name="mutate", arguments="")),
        *end(),
    ),
    runs("repeated-id", calls(ONE), calls({**TWO, "id": "a"}), *end(), meant=BOTH),
    runs(
        "interleaved",
        calls(call(index=0, id="a", name="query"), call(index=1, id="b", name="query")),
        calls(call(index=1, arguments='{"n":2')),
        calls(call(index=0, arguments='{"n":1}')),
        calls(call(index=1, arguments="}")),
        *end(),
        meant=BOTH,
    ),
    runs("fragments-together", calls(call(index=0, id="a", name="query"), call(index=0, arguments=TEXT)), *end()),
    runs(
        "empty-name",
        calls(call(index=0, id="a", name="query", arguments=FIRST)),
        calls(call(index=0, name="", arguments=REST)),
        *end(),
    ),
    fails("nameless-call", ProviderMalformedError, calls({**ONE, "function": {"arguments": "{}"}}), *end()),
    fails("nameless-call: empty", ProviderMalformedError, calls(call(index=0, id="a", name="", arguments="")), *end()),
    runs("late-calls", chunk({"tool_calls": [ONE, TWO]}, finish_reason="tool_calls"), usage(), DONE, meant=BOTH),
    runs("text-and-call", HI, WHOLE, *end(), text="Hi"),
    means(
        "call-as-text",
        chunk({"content": '{"name":"query","arguments":{}}'}),
        *STOP,
        text='{"name":"query","arguments":{}}',
    ),
    runs(
        "call-as-text: asked for",
        chunk({"content": AS_TEXT[:9]}),
        chunk({"content": AS_TEXT[9:]}),
        *STOP,
        config=IN_TEXT,
    ),
    # --- arguments ---
    runs(
        "no-arguments",
        calls(call(index=0, id="a", name="query", arguments="")),
        calls(call(index=1, id="b", name="query", arguments=None), call(index=2, id="c", name="query")),
        *end(),
        meant=(("query", {}),) * 3,
    ),
    runs("whole-arguments", WHOLE, *end()),
    fails("arguments-as-object", ProviderMalformedError, calls(call(index=0, name="query", arguments=ARGS)), *end()),
    tells("not-an-object", '["Part"]', "not a JSON object"),
    tells("not-an-object: encoded twice", compact(TEXT), "not a JSON object"),
    tells("not-json", "{'manager': 'Part'}", "not JSON"),
    tells("not-json: two objects", '{"n":1}{"n":2}', "not JSON"),
    tells("not-json: text after it", '{"n":1}</tool_call>', "not JSON"),
    tells("duplicate-key", '{"id":1,"id":2}', "not JSON"),
    tells("not-a-number", '{"n":NaN}', "not JSON"),
    tells("not-a-number: by overflow", '{"n":1e999}', "not JSON"),
    tells("cut-off", '{"mutation":"deletePart","input":{"id":', "cut off", "length", finish="length"),
    tells("cut-off: before the first letter", "", "cut off", "length", finish="length"),
    tells("cut-off-in-silence", '{"mutation":"deletePart","input":{"id":', "not JSON"),
    # --- the reason to end ---
    runs("stop-after-calls", WHOLE, *STOP),
    runs("two-reasons", WHOLE, chunk({}, finish_reason="tool_calls"), *STOP),
    means(
        "two-reasons: cut off first",
        chunk({"content": "Hi"}, finish_reason="length"),
        *STOP,
        text="Hi",
        finish="length",
    ),
    runs(
        "empty-reason",
        chunk({"content": "Hi"}, finish_reason=""),
        WHOLE,
        chunk({}, finish_reason=""),
        *end(),
        text="Hi",
    ),
    says("unknown-reason", HI, *end("eos"), finish="unknown"),
    means("length-before-text", chunk({"reasoning_content": "Hm"}), *end("length"), finish="length"),
    fails("filtered", ProviderFilteredError, *end("content_filter")),
    fails("filtered: with a call", ProviderFilteredError, WHOLE, *end("content_filter")),
    says("filtered-after-text", HI, *end("content_filter"), finish="filtered"),
    fails("refused", ProviderRefusedError, chunk({"refusal": "I can"}), chunk({"refusal": "not."}), *STOP),
    fails("malformed-call", ProviderMalformedError, *end("function_call_filter: MALFORMED_FUNCTION_CALL")),
    fails("error-reason", ProviderError, HI, WHOLE, *end("error"), text="Hi"),
    # --- errors in the stream, and instead of it ---
    fails("error-first", ProviderError, error(type="server_error", code=None)),
    fails("error-first: a named event", ProviderError, f"event: error\ndata: {compact(error())}\n\n"),
    fails("error-in-stream", ProviderError, HI, WHOLE, error(code="server_error"), text="Hi"),
    fails("overloaded-in-stream", ProviderOverloadedError, HI, error(type="overloaded_error"), text="Hi"),
    fails("overloaded-in-stream: a number", ProviderOverloadedError, error(code=503)),
    fails("quota-in-stream", ProviderQuotaError, error(code=429)),
    fails("untyped-error", ProviderError, HI, error(), DONE, text="Hi"),
    fails("untyped-error: bare text", ProviderError, HI, {"error": "not today"}, DONE, text="Hi"),
    fails(
        "error-with-choices",
        ProviderError,
        HI,
        {**chunk({"content": ""}, finish_reason="error"), **error(code=502)},
        DONE,
        text="Hi",
    ),
    refuses("retry-after-seconds", ProviderQuotaError, 429, QUOTA, headers={"retry-after": "7"}, retry_after=(7, 7)),
    refuses(
        "retry-after-date",
        ProviderQuotaError,
        429,
        QUOTA,
        headers={"retry-after": "Tue, 31 Dec 2999 23:59:59 GMT"},
        retry_after=(1e9, math.inf),
    ),
    refuses(
        "retry-after-date: gone by",
        ProviderQuotaError,
        429,
        QUOTA,
        headers={"retry-after": "Sat, 01 Jan 2000 00:00:00 GMT"},
        retry_after=(0, 0),
    ),
    refuses("retry-after-rubbish", ProviderQuotaError, 429, QUOTA, headers={"retry-after": "soon"}),
    refuses("overloaded", ProviderOverloadedError, 503, {"message": "busy", "type": "server_error", "code": None}),
    refuses("too-long", ProviderContextError, 400, {"message": "too many", "code": "context_length_exceeded"}),
    refuses("too-long: in words", ProviderContextError, 400, {"message": "This exceeds the context window"}),
    refuses("error-not-json", ProviderError, 502, b"upstream connect error", content_type="text/plain"),
    refuses("error-not-json: another shape", ProviderError, 500, b'{"detail":[{"msg":"no"}]}'),
    # --- usage ---
    says("usage-repeated", {**HI, **usage(completion_tokens=1), "choices": HI["choices"]}, *STOP),
    says(
        "usage-details",
        HI,
        STOP[0],
        usage(prompt_tokens_details={"cached_tokens": 7}, completion_tokens_details={"reasoning_tokens": 2}),
        DONE,
        usage=TokenUsage(12, 3, 7, 2),
    ),
    says("usage-missing", HI, STOP[0], DONE, usage=UNREPORTED),
    says("usage-null", {**HI, "usage": None}, *STOP),
    says("usage-null: the counts", HI, STOP[0], usage(prompt_tokens=None, completion_tokens=None), usage=UNREPORTED),
    says(
        "usage-in-part",
        HI,
        STOP[0],
        {"choices": [], "usage": {"completion_tokens": 3}},
        DONE,
        usage=TokenUsage(0, 3, reported=False),
    ),
    says("usage-after-end", HI, STOP[0], {"usage": COUNTS}, DONE),
    WireCase(name="usage-lost", body=sse(HI, STOP[0]), breaks=True, text="Hi", usage=UNREPORTED),
    # --- content ---
    says(
        "null-content",
        {"choices": []},
        {"choices": None},
        {"choices": [{"index": 0}]},
        chunk(None),
        chunk({"content": None, "tool_calls": None, "refusal": None}),
        chunk({"content": "Hi", "tool_calls": []}),
        *STOP,
    ),
    fails("wrong-type", ProviderMalformedError, HI, chunk({"content": {"text": "ho"}}), *STOP, text="Hi"),
    fails("wrong-type: choices", ProviderMalformedError, {"choices": {"0": {}}}, *STOP),
    fails("wrong-type: an array", ProviderMalformedError, [HI], *STOP),
    says("thinking", chunk({"reasoning_content": "Hm"}), chunk({"reasoning": "So"}), HI, *STOP),
    says("empty-text", chunk({"content": ""}), HI, chunk({"content": ""}), *STOP),
)
