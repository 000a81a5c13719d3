"""Hypothesis strategies for conversations as the database may hold them. For tests of provider adapters::

    from hypothesis import given
    from gm_chat.testing.strategies import requests_to

    @given(requests_to("acme"))
    def test_any_history_is_a_valid_request(messages):
        validate(build_request(messages, ...))

Needs ``hypothesis``, which nothing else in :mod:`gm_chat.testing` does.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from hypothesis import strategies as st

from gm_chat.engine.history import to_messages, window
from gm_chat.engine.messages import Call, assistant_row, tool_row
from gm_chat.engine.ports import StoredMessage
from gm_chat.engine.summary import recalled
from gm_chat.providers.base import Message

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["requests_to", "stored_histories"]

PROVIDERS: Final = ("openai", "ollama", "anthropic", "google", "offline")
NAMES: Final = ("query", "search_managers", "mutate", "no such tool", "cut\ud83d")

texts = st.sampled_from(
    [
        "",
        " ",
        "\n",
        "text",
        "null",
        "{}",
        "Größe 🎉",
        "עברית",
        "a\u2028b",
        "\ufeff",
        "[Earlier result of query] 1",
        "</s>",
        "half \ud83d",
    ]
) | st.text(st.characters(codec="utf-8"), max_size=20)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
arguments = st.dictionaries(st.sampled_from(["manager", "fields", "filters", "input", ""]), values, max_size=3)
results = values | st.sampled_from(
    [
        {"data": [], "total_count": 0, "has_more": False},
        {"error": {"code": "unknown_field", "message": "PartManager has no field 'nmae'.", "allowed": ["name"]}},
        {"error": {"code": "invalid_arguments", "message": "The arguments were cut off."}},
        {"status": "executed", "data": {"id": 1}},
        {"status": "cancelled", "reason": "user_rejected"},
        {"status": "cancelled", "reason": "confirmation_timed_out"},
    ]
)
# What providers call their calls: nothing, the same again and again, more than any of them accepts.
provider_ids = st.none() | st.sampled_from(["", "call_1", "a", "a b", "x" * 200, "ünïcode", "\udc00"])


@st.composite
def _exchanges(draw: st.DrawFn, number: int) -> list[StoredMessage]:
    """A user's message and what answered it, up to wherever the turn ended."""
    rows = [StoredMessage(role="user", content=draw(texts))]
    provider = draw(st.sampled_from(PROVIDERS))
    for round_number in range(draw(st.integers(0, 3))):
        calls = [
            Call(
                f"call-{number}-{round_number}-{position}",
                draw(st.sampled_from(NAMES)),
                draw(arguments),
                provider_id=draw(provider_ids),
                metadata=draw(st.none() | st.just({"thoughtSignature": "c2ln"})),
            )
            for position in range(draw(st.integers(1, 4)))
        ]
        metadata = draw(st.just({}) | st.just({"thinking": [{"text": "hm", "signature": "x"}]}))
        rows.append(assistant_row(draw(texts), calls, provider=provider, metadata=metadata))
        answered = draw(st.permutations(calls))
        # A process that died, or a turn that was cancelled or waits for approval, leaves calls without an answer.
        rows += [tool_row(call, draw(results)) for call in answered[: draw(st.integers(0, len(calls)))]]
    if draw(st.booleans()):
        rows.append(assistant_row(draw(texts), (), provider=provider, metadata={}))
    return rows


@st.composite
def stored_histories(draw: st.DrawFn, *, max_turns: int = 4) -> list[StoredMessage]:
    """Rows of a conversation, oldest first: parallel calls, errors, cancelled and interrupted turns, confirmations.

    Up to two faults are planted: a row that is gone, twice there or elsewhere, or that has lost its call's identity.
    """
    turns = draw(st.integers(0, max_turns))
    rows = [row for number in range(turns) for row in draw(_exchanges(number))]
    for _ in range(draw(st.integers(0, 2)) if rows else 0):
        place = draw(st.integers(0, len(rows) - 1))
        match draw(st.sampled_from(["gone", "twice", "elsewhere", "nameless"])):
            case "gone" if len(rows) > 1:
                del rows[place]
            case "twice":
                rows.insert(place, rows[place])
            case "elsewhere":
                rows.insert(draw(st.integers(0, len(rows) - 1)), rows.pop(place))
            case _:
                rows[place] = _nameless(rows[place])
    return rows


def _nameless(row: StoredMessage) -> StoredMessage:
    """The row as older software may have written it: calls without ids, a result that answers no call."""
    if row.role == "tool":
        return replace(row, tool_call_id=None, tool_name=None, content=json.dumps(row.tool_result))
    return replace(row, tool_calls=[{"name": call["name"], "args": None} for call in row.tool_calls])


@st.composite
def requests_to(draw: st.DrawFn, provider: str) -> Sequence[Message]:
    """Messages as the engine sends them to ``provider``: prompt, summary, any prefix of a history, a question."""
    rows = draw(stored_histories())
    rows = rows[: draw(st.integers(0, len(rows)))]
    if draw(st.booleans()):
        rows = list(window(rows, draw(st.integers(1, 20))))
    return [
        Message("system", "Be brief."),
        *recalled(draw(texts)),
        *to_messages(rows, provider=provider),
        Message("user", draw(texts.filter(str.strip))),
    ]
