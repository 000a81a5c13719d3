from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from gm_chat.encoding import to_json
from gm_chat.engine.events import ConfirmMutation, Done, Error, Event, LoggedEvent, TextChunk, ToolCall, ToolResult
from gm_chat.engine.ports import PendingMutation
from gm_chat.providers.base import TokenUsage
from gm_chat.transports.checked import BadMessage
from gm_chat.transports.wire import envelope, event_object, logged_object, pending_object


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (TextChunk("Hi"), {"type": "text_chunk", "content": "Hi"}),
        (ToolCall("c1", "query", {"a": 1}), {"type": "tool_call", "id": "c1", "name": "query", "args": {"a": 1}}),
        (
            ToolCall("c1", "query", {}, task_id="t"),
            {"type": "tool_call", "id": "c1", "name": "query", "args": {}, "task_id": "t"},
        ),
        (ToolResult("c1", "query", None), {"type": "tool_result", "id": "c1", "name": "query", "result": None}),
        (
            ToolResult("c1", "query", [], task_id="t"),
            {"type": "tool_result", "id": "c1", "name": "query", "result": [], "task_id": "t"},
        ),
        (
            ConfirmMutation("c1", "createPart", {"name": "Bolt"}),
            {"type": "confirm_mutation", "id": "c1", "mutation": "createPart", "input": {"name": "Bolt"}},
        ),
        (
            ConfirmMutation("c1", "createPart", {"name": "Bolt"}, {"tried": True}),
            {
                "type": "confirm_mutation",
                "id": "c1",
                "mutation": "createPart",
                "input": {"name": "Bolt"},
                "preview": {"tried": True},
            },
        ),
        (Done(TokenUsage(100, 20)), {"type": "done", "usage": {"input_tokens": 100, "output_tokens": 20}}),
        (
            Done(TokenUsage(100, 20, 7, 3), {"resolved": 1}),
            {
                "type": "done",
                "usage": {"input_tokens": 100, "output_tokens": 20, "cached_tokens": 7, "thinking_tokens": 3},
                "orchestration": {"resolved": 1},
            },
        ),
        (
            Done(TokenUsage(reported=False)),
            {"type": "done", "usage": {"input_tokens": 0, "output_tokens": 0, "reported": False}},
        ),
        (
            Error("rate_limited", "Later.", {"retry_after_seconds": 9}),
            {"type": "error", "message": "Later.", "code": "rate_limited", "retry_after_seconds": 9},
        ),
        (
            Error("chat_error", "Sorry.", {"code": "x", "type": "y", "message": "z"}),
            {"type": "error", "message": "Sorry.", "code": "chat_error"},
        ),
    ],
)
def test_each_event_has_its_specified_form(event: Event, expected: dict[str, Any]) -> None:
    assert event_object(event) == expected
    assert logged_object(LoggedEvent("t1", 3, event)) == {**expected, "turn_id": "t1", "seq": 3}


def test_an_envelope_joins_the_text_and_names_the_turn() -> None:
    events: list[Event] = [TextChunk("Hello "), ToolCall("c1", "query", {}), TextChunk("you"), Done(TokenUsage(1, 2))]
    body = envelope([logged_object(LoggedEvent("t1", seq, event)) for seq, event in enumerate(events, 1)])
    assert (body["answer"], body["turn_id"], len(body["events"])) == ("Hello you", "t1", 4)


def test_an_envelope_without_a_turn_has_no_turn_id() -> None:
    body = envelope([event_object(BadMessage("No.").event)])
    assert body == {
        "events": [{"type": "error", "message": "No.", "code": "bad_message"}], "answer": "", "turn_id": None,
    }  # fmt: skip


def test_values_that_json_lacks_are_encoded_and_no_line_is_broken() -> None:
    line = to_json(event_object(ToolResult("c1", "query", {"price": Decimal("12.50"), "text": "a\u2028b\nc\x00"})))
    assert "\n" not in line
    assert "\u2028" not in line
    assert json.loads(line)["result"] == {"price": "12.50", "text": "a\u2028b\nc\ufffd"}


def test_a_pending_mutation_says_what_it_would_do_and_until_when() -> None:
    until = datetime(2030, 1, 2, tzinfo=UTC)
    pending = PendingMutation(id="c1", mutation="createPart", input={"name": "Bolt"}, expires_at=until, turn_id="t1")
    assert json.loads(to_json(pending_object(pending))) == {
        "id": "c1", "mutation": "createPart", "input": {"name": "Bolt"}, "turn_id": "t1",
        "expires_at": "2030-01-02T00:00:00+00:00",
    }  # fmt: skip
    assert pending_object(replace(pending, preview={"tried": True}))["preview"] == {"tried": True}
