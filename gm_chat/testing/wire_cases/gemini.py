"""Cases of the format ``gemini-sse``: chunks of ``POST .../models/MODEL:streamGenerateContent?alt=sse``."""

from __future__ import annotations

import json
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
    TokenUsage,
)
from gm_chat.testing.wire_cases.base import ARGS, AS_TEXT, IN_TEXT, PAGE, QUERY, UNREPORTED, WireCase, compact, sse

__all__ = ["CASES"]

MODEL: Final = {"modelVersion": "m", "responseId": "r"}


def counts(output: int = 3, **further: Any) -> dict[str, Any]:
    return {"promptTokenCount": 12, "candidatesTokenCount": output, "totalTokenCount": 12 + output, **further}


def chunk(*parts: Any, usage: Any = None, **candidate: Any) -> dict[str, Any]:
    content = {"content": {"role": "model", "parts": list(parts)}} if parts else {}
    reported = {} if usage is None else {"usageMetadata": usage}
    return {"candidates": [{**content, "index": 0, **candidate}], **reported, **MODEL}


def call(name: str = "query", args: Any = ARGS, **further: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": args}, **further}


def end(reason: str = "STOP", *parts: Any, usage: Any = "reported", **candidate: Any) -> dict[str, Any]:
    return chunk(*parts, usage=counts() if usage == "reported" else usage, finishReason=reason, **candidate)


HI: Final = chunk({"text": "Hi"}, usage=counts(1))
STOP: Final = end()
BOTH: Final = (("query", {"n": 1}), ("query", {"n": 2}))


def means(name: str, *events: Any, **expected: Any) -> WireCase:
    # The service ends its lines with CR LF.
    return WireCase(name=name, body=sse(*events).replace(b"\n", b"\r\n"), **expected)


def says(name: str, *events: Any, **expected: Any) -> WireCase:
    """Whatever else comes, the answer is "Hi"."""
    return means(name, *events, text="Hi", **expected)


def runs(name: str, *events: Any, meant: Any = (QUERY,), **expected: Any) -> WireCase:
    return means(name, *events, calls=meant, **{"finish": "tool_calls", **expected})


def tells(name: str, *events: Any) -> WireCase:
    """A call that the service refused itself is not run, and the model hears of it."""
    return runs(name, *events, meant=(("query", {}),), errors=("Gemini refused the call",))


def fails(name: str, failure: type[ProviderError], *events: Any, **expected: Any) -> WireCase:
    return means(name, *events, failure=(failure,), **expected)


def error(code: int, status: str, message: str = "not today", **further: Any) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "status": status, **further}}


def refuses(name: str, failure: type[ProviderError], body: Any, status: int = 0, **expected: Any) -> WireCase:
    sent = body if isinstance(body, bytes) else json.dumps(body, indent=2).encode()
    expected = {"content_type": "application/json", **expected}
    return WireCase(name=name, body=sent, status=status or body["error"]["code"], failure=(failure,), **expected)


QUOTA: Final = error(429, "RESOURCE_EXHAUSTED")
BUSY: Final = error(503, "UNAVAILABLE", "The model is overloaded.")
RETRY_INFO: Final[list[Any]] = [
    {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": []},
    {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17s"},
]
RAW_BUSY: Final = json.dumps(BUSY, indent=2) + "\n"
SIGNED: Final = call(thoughtSignature="c2lnbmF0dXJl")

CASES: Final = (
    fails("no-end", ProviderIncompleteError, chunk(call(), usage=counts(2))),
    fails("no-end: after text", ProviderIncompleteError, HI, text="Hi"),
    WireCase(name="page", body=PAGE, content_type="text/html", failure=(ProviderIncompleteError,)),
    WireCase(name="page: said to be a stream", body=PAGE, failure=(ProviderIncompleteError, ProviderMalformedError)),
    WireCase(name="empty-body", body=b"", failure=(ProviderIncompleteError,)),
    fails("broken-json", ProviderMalformedError, HI, 'data: {"candidates": [{"con\n\n', STOP, text="Hi"),
    means("empty-answer", STOP),
    # --- framing ---
    says("comment-lines", ": waiting\n\n", HI, ": waiting\n\n", STOP),
    says("crlf", HI, STOP),
    WireCase(name="crlf: without CR", body=sse(HI, STOP), text="Hi"),
    WireCase(name="no-space-after-colon", body=sse(HI, STOP).replace(b"data: ", b"data:"), text="Hi"),
    means("line-separators", chunk({"text": "a\u2028b\u2029c\x85d"}), STOP, text="a\u2028b\u2029c\x85d"),
    WireCase(
        name="multi-line-event",
        body="".join(f"data: {line}\n" for line in json.dumps(HI, indent=1).split("\n")).encode() + b"\n" + sse(STOP),
        text="Hi",
    ),
    means("large-event", chunk({"text": "x" * 200_000}), STOP, text="x" * 200_000),
    says("unknown-events", {**HI, "mood": {"fine": True}}, chunk({"moodPart": {"fine": True}}), {}, STOP),
    # --- which call is it ---
    runs("no-id", chunk(call(args={"n": 1}), call(args={"n": 2})), STOP, meant=BOTH),
    runs("no-id: in two chunks", chunk(call(args={"n": 1})), chunk(call(args={"n": 2})), STOP, meant=BOTH),
    runs(
        "repeated-id",
        chunk(*({"functionCall": {"id": "a", "name": "query", "args": {"n": n}}} for n in (1, 2))),
        STOP,
        meant=BOTH,
    ),
    fails("nameless-call", ProviderMalformedError, chunk(call("")), STOP),
    fails("nameless-call: no name", ProviderMalformedError, chunk({"functionCall": {"args": ARGS}}), STOP),
    runs("late-calls", end("STOP", call())),
    runs("text-and-call", HI, chunk(call()), STOP, text="Hi"),
    means("call-as-text", chunk({"text": '{"name":"query","args":{}}'}), STOP, text='{"name":"query","args":{}}'),
    says(
        "foreign-call",
        chunk({"executableCode": {"language": "PYTHON", "code": "print(1)"}}),
        chunk({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}),
        HI,
        STOP,
    ),
    runs("call-as-text: asked for", chunk({"text": AS_TEXT[:9]}), chunk({"text": AS_TEXT[9:]}), STOP, config=IN_TEXT),
    # --- arguments ---
    runs(
        "no-arguments",
        chunk(call(args={}), call(args=None), {"functionCall": {"name": "query"}}),
        STOP,
        meant=(("query", {}),) * 3,
    ),
    runs("arguments-as-text", chunk(call(args=compact(ARGS))), STOP),
    runs("not-an-object", chunk(call(args=["Part"])), STOP, meant=(("query", {}),), errors=("not a JSON object",)),
    fails("not-a-number", ProviderMalformedError, chunk(call(args={"n": math.nan})), STOP),
    runs("cut-off", chunk(call()), end("MAX_TOKENS"), finish="length"),
    # --- the reason to end ---
    runs("stop-after-calls", chunk(call()), STOP),
    runs("two-reasons", end("STOP", call(), usage=counts(1)), STOP),
    says("empty-reason", {**HI, **chunk({"text": "Hi"}, finishReason="FINISH_REASON_UNSPECIFIED")}, STOP),
    says("unknown-reason", HI, end("TIRED"), finish="unknown"),
    means("length-before-text", chunk({"text": "Hm", "thought": True}), end("MAX_TOKENS"), finish="length"),
    fails("filtered", ProviderFilteredError, end("SAFETY")),
    fails("filtered: for another reason", ProviderFilteredError, end("PROHIBITED_CONTENT")),
    fails("filtered: with a call", ProviderFilteredError, chunk(call()), end("SAFETY")),
    says("filtered-after-text", HI, end("RECITATION"), finish="filtered"),
    fails(
        "blocked-prompt",
        ProviderFilteredError,
        {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 12}, **MODEL},
    ),
    fails("malformed-call", ProviderMalformedError, end("MALFORMED_FUNCTION_CALL")),
    tells("malformed-call: sent all the same", chunk(call()), end("MALFORMED_FUNCTION_CALL")),
    tells("malformed-call: unexpected", chunk(call()), end("UNEXPECTED_TOOL_CALL")),
    tells(
        "malformed-call: named in words", end("MALFORMED_FUNCTION_CALL", finishMessage="print(default_api.query(1))")
    ),
    # --- errors in the stream, and instead of it ---
    fails("error-first", ProviderError, error(500, "INTERNAL")),
    fails("error-in-stream", ProviderError, HI, chunk(call()), error(500, "INTERNAL"), text="Hi"),
    fails("overloaded-in-stream", ProviderOverloadedError, HI, BUSY, text="Hi"),
    fails("overloaded-in-stream: as plain JSON", ProviderOverloadedError, HI, RAW_BUSY, text="Hi"),
    fails("quota-in-stream", ProviderQuotaError, QUOTA),
    fails("untyped-error", ProviderError, HI, {"error": {"message": "not today"}}, text="Hi"),
    refuses("retry-after-seconds", ProviderQuotaError, QUOTA, headers={"retry-after": "7"}, retry_after=(7, 7)),
    refuses(
        "retry-after-date",
        ProviderQuotaError,
        QUOTA,
        headers={"retry-after": "Tue, 31 Dec 2999 23:59:59 GMT"},
        retry_after=(1e9, math.inf),
    ),
    refuses("retry-after-rubbish", ProviderQuotaError, QUOTA, headers={"retry-after": "soon"}),
    refuses(
        "retry-after-in-body",
        ProviderQuotaError,
        error(429, "RESOURCE_EXHAUSTED", details=RETRY_INFO),
        retry_after=(17, 17),
    ),
    refuses(
        "retry-after-in-body: rubbish",
        ProviderQuotaError,
        error(429, "RESOURCE_EXHAUSTED", details=[{**RETRY_INFO[1], "retryDelay": "soon"}, None]),
    ),
    refuses("overloaded", ProviderOverloadedError, BUSY),
    refuses(
        "too-long",
        ProviderContextError,
        error(
            400,
            "INVALID_ARGUMENT",
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        ),
    ),
    refuses("error-not-json", ProviderError, b"upstream connect error", 502, content_type="text/plain"),
    refuses("error-not-json: another shape", ProviderError, b'[{"error":{"code":500,"message":"no"}}]', 500),
    # --- usage ---
    says("usage-repeated", HI, chunk(usage=counts(2)), STOP),
    says(
        "usage-details",
        HI,
        end(usage=counts(1, thoughtsTokenCount=2, cachedContentTokenCount=7)),
        usage=TokenUsage(12, 3, 7, 2),
    ),
    says("usage-missing", chunk({"text": "Hi"}), end(usage=None), usage=UNREPORTED),
    says(
        "usage-null",
        {**chunk({"text": "Hi"}), "usageMetadata": None},
        end(usage={"promptTokenCount": None, "candidatesTokenCount": None}),
        usage=UNREPORTED,
    ),
    says(
        "usage-in-part", chunk({"text": "Hi"}), end(usage={"promptTokenCount": 12, "totalTokenCount": 12}), usage=None
    ),
    says("usage-after-end", HI, end(usage=counts(1)), {"usageMetadata": counts(), **MODEL}),
    # --- content ---
    says(
        "null-content",
        {"candidates": [], **MODEL},
        {"candidates": None},
        {"candidates": [{"content": None}]},
        {"candidates": [{"content": {}}]},
        {"candidates": [{"content": {"role": "model", "parts": None}}]},
        chunk({}),
        HI,
        STOP,
    ),
    fails("wrong-type", ProviderMalformedError, HI, {"candidates": {"0": {}}}, STOP, text="Hi"),
    fails("wrong-type: parts", ProviderMalformedError, {"candidates": [{"content": {"parts": "Hi"}}]}, STOP),
    says("thinking", chunk({"text": "Hm", "thought": True}), HI, STOP),
    runs("signature-returns", chunk(SIGNED), STOP, returns=(SIGNED,)),
    runs(
        "signature-returns: on the first of two",
        chunk({"text": "Hm", "thought": True}),
        chunk(SIGNED),
        chunk(call(args={"n": 2})),
        end("STOP", {"text": ""}),
        meant=(QUERY, BOTH[1]),
        returns=([SIGNED, call(args={"n": 2})],),
    ),
    says("empty-text", chunk({"text": ""}), HI, end("STOP", {"text": "", "thoughtSignature": "c2ln"})),
)
