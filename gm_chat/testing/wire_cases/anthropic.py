"""Cases of the format ``anthropic-sse``: events of ``POST /v1/messages``, by Anthropic and whoever imitates it."""

from __future__ import annotations

import math
from typing import Any, Final

from gm_chat.providers.base import (
    ProviderContextError,
    ProviderError,
    ProviderIncompleteError,
    ProviderMalformedError,
    ProviderOverloadedError,
    ProviderQuotaError,
    ProviderRefusedError,
    TokenUsage,
)
from gm_chat.testing.wire_cases.base import ARGS, AS_TEXT, IN_TEXT, PAGE, QUERY, UNREPORTED, WireCase, compact, sse

__all__ = ["CASES"]

TEXT: Final = compact(ARGS)
FIRST, REST = TEXT[:11], TEXT[11:]
MESSAGE_STOP: Final = {"type": "message_stop"}


def start(usage: Any = "reported", **message: Any) -> dict[str, Any]:
    counts = {"input_tokens": 12, "output_tokens": 1} if usage == "reported" else usage
    message = {"id": "msg_1", "role": "assistant", "model": "m", "content": [], "usage": counts, **message}
    return {"type": "message_start", "message": {"type": "message", "stop_reason": None, **message}}


def block(index: int, content: Any, *deltas: Any) -> tuple[Any, ...]:
    """A content block from start to stop."""
    opening = {"type": "content_block_start", "index": index, "content_block": content}
    pieces = [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
    return (opening, *pieces, {"type": "content_block_stop", "index": index})


def text(index: int, *pieces: str) -> tuple[Any, ...]:
    return block(index, {"type": "text", "text": ""}, *({"type": "text_delta", "text": piece} for piece in pieces))


def tool(index: int, id: str, *pieces: str, name: str = "query", **content: Any) -> tuple[Any, ...]:
    opening = {"type": "tool_use", "id": id, "name": name, "input": {}, **content}
    return block(index, opening, *({"type": "input_json_delta", "partial_json": piece} for piece in pieces))


def thinking(index: int, words: str, signature: str) -> tuple[Any, ...]:
    deltas = ({"type": "thinking_delta", "thinking": words}, {"type": "signature_delta", "signature": signature})
    return block(index, {"type": "thinking", "thinking": "", "signature": ""}, *deltas)


def reason(stop: str | None, usage: Any = "reported") -> dict[str, Any]:
    counts = {"usage": {"output_tokens": 3} if usage == "reported" else usage}
    return {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, **counts}


def end(stop: str | None = "tool_use", usage: Any = "reported") -> tuple[Any, ...]:
    return (reason(stop, usage), MESSAGE_STOP)


START: Final = start()
HI: Final = text(0, "Hi")
WHOLE: Final = tool(1, "a", TEXT)
STOP: Final = end("end_turn")
BOTH: Final = (("query", {"n": 1}), ("query", {"n": 2}))
ONE: Final = tool(0, "a", '{"n":1}')
TWO: Final = tool(1, "b", '{"n":2}')


def means(name: str, *events: Any, **expected: Any) -> WireCase:
    return WireCase(name=name, body=sse(*events, names=True), **expected)


def says(name: str, *events: Any, **expected: Any) -> WireCase:
    """Whatever else comes, the answer is "Hi"."""
    return means(name, *events, text="Hi", **expected)


def runs(name: str, *events: Any, meant: Any = (QUERY,), **expected: Any) -> WireCase:
    return means(name, START, *events, calls=meant, **{"finish": "tool_calls", **expected})


def tells(name: str, arguments: str, error: str, stop: str = "tool_use", **expected: Any) -> WireCase:
    """A call with these arguments is not run: the model is told."""
    call = tool(0, "a", arguments)
    return runs(name, *call, *end(stop), meant=(("query", {}),), errors=(error,), **expected)


def fails(name: str, failure: type[ProviderError], *events: Any, **expected: Any) -> WireCase:
    return means(name, *events, failure=(failure,), **expected)


def refuses(name: str, failure: type[ProviderError], status: int, error: Any, **expected: Any) -> WireCase:
    body = error if isinstance(error, bytes) else compact({"type": "error", "error": error}).encode()
    expected = {"content_type": "application/json", **expected}
    return WireCase(name=name, body=body, status=status, failure=(failure,), **expected)


def error(kind: str | None) -> dict[str, Any]:
    named = {"type": kind} if kind else {}
    return {"type": "error", "error": {**named, "message": "not today"}}


QUOTA: Final = {"type": "rate_limit_error", "message": "not today"}
PING: Final = {"type": "ping"}
SEARCH: Final = {"type": "server_tool_use", "id": "srv", "name": "web_search", "input": {}}
REDACTED: Final = {"type": "redacted_thinking", "data": "b3BhcXVl"}
PLAIN: Final = (START, *HI, *STOP)

CASES: Final = (
    fails("no-end", ProviderIncompleteError, START, *ONE),
    fails("no-end: after text", ProviderIncompleteError, START, *HI[:2], text="Hi"),
    fails("no-end: the last event alone", ProviderIncompleteError, START, *ONE, reason("tool_use")),
    fails("end-without-reason", ProviderIncompleteError, START, *HI, *WHOLE, MESSAGE_STOP, text="Hi"),
    WireCase(name="page", body=PAGE, content_type="text/html", failure=(ProviderIncompleteError,)),
    WireCase(name="page: said to be a stream", body=PAGE, failure=(ProviderIncompleteError,)),
    WireCase(name="empty-body", body=b"", failure=(ProviderIncompleteError,)),
    WireCase(
        name="not-a-stream",
        body=compact(
            {**start(content=[{"type": "text", "text": "Hi"}])["message"], "stop_reason": "end_turn"}
        ).encode(),
        content_type="application/json",
        failure=(ProviderIncompleteError, ProviderMalformedError),
    ),
    fails(
        "broken-json",
        ProviderMalformedError,
        START,
        *HI,
        'event: content_block_delta\ndata: {"type":"content_bl\n\n',
        *STOP,
        text="Hi",
    ),
    means("empty-answer", START, *STOP),
    # --- framing ---
    says("comment-lines", ": waiting\n\n", START, ": waiting\n\n", *HI, *STOP),
    WireCase(name="crlf", body=sse(*PLAIN, names=True).replace(b"\n", b"\r\n"), text="Hi"),
    WireCase(
        name="no-space-after-colon",
        body=sse(*PLAIN, names=True).replace(b"data: ", b"data:").replace(b"event: ", b"event:"),
        text="Hi",
    ),
    means("line-separators", START, *text(0, "a\u2028b\u2029c\x85d"), *STOP, text="a\u2028b\u2029c\x85d"),
    says(
        "multi-line-event",
        START,
        HI[0],
        'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,\n'
        'data: "delta":{"type":"text_delta","text":"Hi"}}\n\n',
        HI[2],
        *STOP,
    ),
    means("large-event", START, *text(0, "x" * 200_000), *STOP, text="x" * 200_000),
    says(
        "unknown-events",
        START,
        PING,
        {"type": "mood", "mood": "fine"},
        HI[0],
        {"type": "content_block_delta", "index": 0, "delta": {"type": "mood_delta", "mood": "fine"}},
        *HI[1:],
        *block(1, {"type": "mood", "mood": "fine"}),
        PING,
        *STOP,
    ),
    # --- which call is it ---
    runs("no-id", *tool(0, "", '{"n":1}'), *tool(1, "", '{"n":2}'), *end(), meant=BOTH),
    fails(
        "ambiguous: two blocks at one index",
        ProviderMalformedError,
        START,
        ONE[0],
        TWO[0] | {"index": 0},
        ONE[1],
        ONE[2],
        *end(),
    ),
    fails("ambiguous: a piece without block", ProviderMalformedError, START, ONE[0], TWO[1], ONE[2], *end()),
    runs("repeated-id", *ONE, *tool(1, "a", '{"n":2}'), *end(), meant=BOTH),
    runs("interleaved", ONE[0], TWO[0], TWO[1], ONE[1], TWO[2], ONE[2], *end(), meant=BOTH),
    fails("nameless-call", ProviderMalformedError, START, *tool(0, "a", "{}", name=""), *end()),
    runs("text-and-call", *HI, *WHOLE, *end(), text="Hi"),
    means(
        "call-as-text", START, *text(0, '{"name":"query",', '"input":{}}'), *STOP, text='{"name":"query","input":{}}'
    ),
    runs(
        "foreign-call",
        *block(0, SEARCH, {"type": "input_json_delta", "partial_json": "{}"}),
        *block(1, {"type": "web_search_tool_result", "tool_use_id": "srv", "content": []}),
        *tool(2, "a", TEXT),
        *end(),
    ),
    runs("call-as-text: asked for", *text(0, AS_TEXT[:9], AS_TEXT[9:]), *STOP, config=IN_TEXT),
    # --- arguments ---
    runs("no-arguments", *tool(0, "a", ""), *tool(1, "b"), *end(), meant=(("query", {}),) * 2),
    runs("whole-arguments", *tool(0, "a", input=ARGS), *end()),
    runs("whole-arguments: and an empty piece", *tool(0, "a", "", input=ARGS), *end()),
    tells("not-an-object", '["Part"]', "not a JSON object"),
    tells("not-json", "{'manager': 'Part'}", "not JSON"),
    tells("not-json: two objects", '{"n":1}{"n":2}', "not JSON"),
    tells("duplicate-key", '{"id":1,"id":2}', "not JSON"),
    tells("not-a-number", '{"n":Infinity}', "not JSON"),
    tells("not-a-number: by overflow", '{"n":1e999}', "not JSON"),
    tells("cut-off", '{"mutation":"deletePart","input":{"id":', "cut off", "max_tokens", finish="length"),
    tells("cut-off: before the first letter", "", "cut off", "max_tokens", finish="length"),
    tells("cut-off-in-silence", '{"mutation":"deletePart","input":{"id":', "not JSON"),
    # --- the reason to end ---
    runs("stop-after-calls", *ONE, *TWO, *STOP, meant=BOTH),
    runs("two-reasons", *tool(0, "a", TEXT), reason("tool_use"), *STOP),
    says("empty-reason", START, reason(None, None), *HI, *STOP),
    says("unknown-reason", START, *HI, *end("eos"), finish="unknown"),
    means("length-before-text", START, *thinking(0, "Hm", "c2ln"), *end("max_tokens"), finish="length"),
    fails("refused", ProviderRefusedError, START, *end("refusal")),
    fails("refused: after text", ProviderRefusedError, START, *HI, *WHOLE, *end("refusal"), text="Hi"),
    says("window-exceeded", START, *HI, *end("model_context_window_exceeded"), finish="length"),
    tells("window-exceeded: in a call", '{"input":{"id":', "cut off", "model_context_window_exceeded", finish="length"),
    # --- errors in the stream, and instead of it ---
    fails("error-first", ProviderError, error("api_error")),
    fails("error-in-stream", ProviderError, START, *HI, *WHOLE, error("api_error"), text="Hi"),
    fails("overloaded-in-stream", ProviderOverloadedError, error("overloaded_error")),
    fails("overloaded-in-stream: late", ProviderOverloadedError, START, *HI, error("overloaded_error"), text="Hi"),
    fails("quota-in-stream", ProviderQuotaError, START, error("rate_limit_error")),
    fails("untyped-error", ProviderError, START, *HI, error(None), text="Hi"),
    fails("untyped-error: bare text", ProviderError, START, *HI, "event: error\ndata: not today\n\n", text="Hi"),
    refuses("retry-after-seconds", ProviderQuotaError, 429, QUOTA, headers={"retry-after": "7"}, retry_after=(7, 7)),
    refuses(
        "retry-after-date",
        ProviderQuotaError,
        429,
        QUOTA,
        headers={"retry-after": "Tue, 31 Dec 2999 23:59:59 GMT"},
        retry_after=(1e9, math.inf),
    ),
    refuses("retry-after-rubbish", ProviderQuotaError, 429, QUOTA, headers={"retry-after": "soon"}),
    refuses("overloaded", ProviderOverloadedError, 529, {"type": "overloaded_error", "message": "Overloaded"}),
    refuses(
        "too-long",
        ProviderContextError,
        400,
        {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum"},
    ),
    refuses("error-not-json", ProviderError, 502, b"upstream connect error", content_type="text/plain"),
    refuses("error-not-json: another shape", ProviderError, 500, b'{"detail":[{"msg":"no"}]}'),
    # --- usage ---
    says("usage-repeated", START, *HI, reason(None, {"output_tokens": 2}), *STOP),
    says(
        "usage-repeated: the input too",
        start({"input_tokens": 0, "output_tokens": 0}),
        *HI,
        *end("end_turn", {"input_tokens": 12, "output_tokens": 3}),
    ),
    says(
        "usage-details",
        start({"input_tokens": 2, "cache_creation_input_tokens": 3, "cache_read_input_tokens": 7, "output_tokens": 1}),
        *HI,
        *STOP,
        usage=TokenUsage(12, 3, cached_tokens=7),
    ),
    says(
        "usage-missing",
        start(None),
        *HI,
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        MESSAGE_STOP,
        usage=UNREPORTED,
    ),
    says(
        "usage-null",
        start({"input_tokens": None, "output_tokens": None}),
        *HI,
        *end("end_turn", None),
        usage=UNREPORTED,
    ),
    says("usage-in-part", START, *HI, *end("end_turn", None), usage=None),
    # --- content ---
    says(
        "null-content", start(content=None), *text(0), *block(1, {"type": "text", "text": None}), *text(2, "Hi"), *STOP
    ),
    fails("wrong-type", ProviderMalformedError, START, *block(0, {"type": "text", "text": ""}, "Hi"), *STOP),
    fails("wrong-type: a block", ProviderMalformedError, START, *block(0, ["text"]), *STOP),
    says("thinking", START, *thinking(0, "Hm", "c2ln"), *block(1, REDACTED), *text(2, "Hi"), *STOP),
    runs(
        "signature-returns",
        *thinking(0, "Hm, Größe", "c2lnbmF0dXJl"),
        *block(1, REDACTED),
        *text(2, "Hi"),
        *tool(3, "a", TEXT),
        *end(),
        text="Hi",
        returns=({"type": "thinking", "thinking": "Hm, Größe", "signature": "c2lnbmF0dXJl"}, REDACTED),
    ),
    runs("empty-text", *text(0), *text(1, "", ""), *tool(2, "a", TEXT), *end()),
)
