"""Cases of the format ``ollama-ndjson``: lines of ``POST /api/chat``, by Ollama and whoever imitates it."""

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
    TokenUsage,
)
from gm_chat.testing.wire_cases.base import ARGS, AS_TEXT, IN_TEXT, PAGE, QUERY, UNREPORTED, WireCase, compact, lines

__all__ = ["CASES"]


def line(content: Any = "", *, done: bool = False, message: Any = None, **values: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": content, **(message or {})}
    return {"model": "m", "created_at": "2026-11-29T19:40:00Z", "message": message, "done": done, **values}


def call(arguments: Any = ARGS, name: Any = "query", **values: Any) -> dict[str, Any]:
    return {**values, "function": {"name": name, "arguments": arguments}}


def calls(*items: Any, **values: Any) -> dict[str, Any]:
    return line(message={"tool_calls": list(items)}, **values)


def end(reason: str | None = "stop", **values: Any) -> dict[str, Any]:
    return line(done=True, done_reason=reason, **{"prompt_eval_count": 12, "eval_count": 3, **values})


def without(value: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: item for key, item in value.items() if key not in keys}


HI: Final = line("Hi")
STOP: Final = end()
WHOLE: Final = calls(call())
BOTH: Final = (("query", {"n": 1}), ("query", {"n": 2}))


def means(name: str, *objects: Any, **expected: Any) -> WireCase:
    return WireCase(name=name, body=lines(*objects), **expected)


def says(name: str, *objects: Any, **expected: Any) -> WireCase:
    """Whatever else comes, the answer is "Hi"."""
    return means(name, *objects, text="Hi", **expected)


def runs(name: str, *objects: Any, meant: Any = (QUERY,), **expected: Any) -> WireCase:
    return means(name, *objects, calls=meant, **{"finish": "tool_calls", **expected})


def tells(name: str, arguments: Any, error: str, reason: str = "stop", **expected: Any) -> WireCase:
    """A call with these arguments is not run: the model is told."""
    return runs(name, calls(call(arguments)), end(reason), meant=(("query", {}),), errors=(error,), **expected)


def fails(name: str, failure: type[ProviderError], *objects: Any, **expected: Any) -> WireCase:
    return means(name, *objects, failure=(failure,), **expected)


def refuses(name: str, failure: type[ProviderError], status: int, error: Any, **expected: Any) -> WireCase:
    body = error if isinstance(error, bytes) else compact({"error": error}).encode()
    expected = {"content_type": "application/json", **expected}
    return WireCase(name=name, body=body, status=status, failure=(failure,), **expected)


CASES: Final = (
    fails("no-end", ProviderIncompleteError, WHOLE),
    fails("no-end: after text", ProviderIncompleteError, HI, text="Hi"),
    fails("no-end: in a line", ProviderIncompleteError, HI, '{"message":{"con', text="Hi"),
    WireCase(name="end-without-blank-line", body=lines(HI, STOP).rstrip(b"\n"), text="Hi"),
    WireCase(name="page", body=PAGE, content_type="text/html", failure=(ProviderIncompleteError,)),
    WireCase(name="page: said to be a stream", body=PAGE, failure=(ProviderIncompleteError, ProviderMalformedError)),
    WireCase(name="empty-body", body=b"", failure=(ProviderIncompleteError,)),
    WireCase(
        name="not-a-stream",
        body=compact({**STOP, "message": HI["message"]}).encode(),
        content_type="application/json",
        text="Hi",
    ),
    fails("broken-json", ProviderMalformedError, HI, '{"message":{"con\n', STOP, text="Hi"),
    means("empty-answer", STOP),
    # --- framing ---
    says("comment-lines", "\n", HI, "\n\n", STOP),
    WireCase(name="crlf", body=lines(HI, STOP).replace(b"\n", b"\r\n"), text="Hi"),
    means("line-separators", line("a\u2028b\u2029c\x85d"), STOP, text="a\u2028b\u2029c\x85d"),
    means("large-event", line("x" * 200_000), STOP, text="x" * 200_000),
    says("unknown-events", {"mood": "fine"}, {**HI, "mood": {"fine": True}}, line(message={"images": None}), STOP),
    # --- which call is it ---
    runs("no-id", calls(call({"n": 1}), call({"n": 2})), STOP, meant=BOTH),
    runs("no-id: in two lines", calls(call({"n": 1})), calls(call({"n": 2})), STOP, meant=BOTH),
    runs("repeated-id", calls(call({"n": 1}, id="a"), call({"n": 2}, id="a")), STOP, meant=BOTH),
    fails("nameless-call", ProviderMalformedError, calls(call(name="")), STOP),
    fails("nameless-call: no function", ProviderMalformedError, calls({"id": "a"}), STOP),
    runs("late-calls", calls(call(), done=True, done_reason="stop", prompt_eval_count=12, eval_count=3)),
    runs("text-and-call", HI, WHOLE, STOP, text="Hi"),
    means(
        "call-as-text",
        line('{"name":"query",'),
        line('"parameters":{}}'),
        STOP,
        text='{"name":"query","parameters":{}}',
    ),
    runs("call-as-text: asked for", line(AS_TEXT[:9]), line(AS_TEXT[9:]), STOP, config=IN_TEXT),
    # --- arguments ---
    runs(
        "no-arguments",
        calls(call({}), call(None), call(""), {"function": {"name": "query"}}),
        STOP,
        meant=(("query", {}),) * 4,
    ),
    runs("arguments-as-text", calls(call(compact(ARGS))), STOP),
    tells("not-an-object", ["Part"], "not a JSON object"),
    tells("not-an-object: a number", 7, "not a JSON object"),
    tells("not-json", "{'manager': 'Part'}", "not JSON"),
    fails("not-a-number", ProviderMalformedError, calls(call({"n": math.nan})), STOP),
    runs("cut-off: after a whole call", WHOLE, end("length"), finish="length"),
    tells("cut-off", '{"mutation":"deletePart","input":{"id":', "cut off", "length", finish="length"),
    # --- the reason to end ---
    runs("stop-after-calls", WHOLE, STOP),
    says("empty-reason", {**HI, "done_reason": ""}, end("")),
    says("unknown-reason", HI, end("load"), finish="unknown"),
    means("length-before-text", line(message={"thinking": "Hm"}), end("length"), finish="length"),
    # --- errors in the stream, and instead of it ---
    fails("error-first", ProviderError, {"error": "model runner has unexpectedly stopped"}),
    fails("error-in-stream", ProviderError, HI, WHOLE, {"error": "an error was encountered"}, text="Hi"),
    fails("untyped-error", ProviderError, HI, {"error": {"message": "not today"}}, STOP, text="Hi"),
    fails("malformed-call", ProviderError, HI, {"error": "error parsing tool call: raw='{\"id\":'"}, text="Hi"),
    refuses(
        "retry-after-seconds", ProviderQuotaError, 429, "slow down", headers={"retry-after": "7"}, retry_after=(7, 7)
    ),
    refuses(
        "retry-after-date",
        ProviderQuotaError,
        429,
        "slow down",
        headers={"retry-after": "Tue, 31 Dec 2999 23:59:59 GMT"},
        retry_after=(1e9, math.inf),
    ),
    refuses("retry-after-rubbish", ProviderQuotaError, 429, "slow down", headers={"retry-after": "soon"}),
    refuses("overloaded", ProviderOverloadedError, 503, "server busy: maximum pending requests exceeded"),
    refuses("too-long", ProviderContextError, 400, "the input length exceeds the context length"),
    refuses("error-not-json", ProviderError, 502, b"upstream connect error", content_type="text/plain"),
    refuses("error-not-json: another shape", ProviderError, 500, b'{"detail":[{"msg":"no"}]}'),
    # --- usage ---
    says("usage-details", HI, end(prompt_eval_cached_count=7), usage=TokenUsage(12, 3, cached_tokens=7)),
    says("usage-missing", HI, without(STOP, "prompt_eval_count", "eval_count"), usage=UNREPORTED),
    says("usage-null", HI, end(prompt_eval_count=None, eval_count=None), usage=UNREPORTED),
    says("usage-in-part", HI, without(STOP, "prompt_eval_count"), usage=TokenUsage(0, 3, reported=False)),
    says(
        "prompt-cut",
        HI,
        end(prompt_eval_count=2051),
        question="x" * 32_000,
        config={"num_ctx": 4096},
        usage=TokenUsage(2051, 3),
        warning="cut a prompt",
    ),
    says("prompt-cut: not this one", HI, STOP, config={"num_ctx": 4096}),
    # --- content ---
    says(
        "null-content",
        {**HI, "message": None},
        without(HI, "message"),
        line(None, message={"tool_calls": None}),
        line("Hi", message={"tool_calls": []}),
        STOP,
    ),
    fails("wrong-type", ProviderMalformedError, HI, line(["ho"]), STOP, text="Hi"),
    fails("wrong-type: an array", ProviderMalformedError, HI, [HI], STOP, text="Hi"),
    says("thinking", line(message={"thinking": "Hm"}), HI, STOP),
    says("empty-text", line(""), HI, line(""), STOP),
)
