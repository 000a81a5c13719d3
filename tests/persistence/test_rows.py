from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gm_chat.encoding import jsonable, to_json
from gm_chat.engine.events import ConfirmMutation, Done, Error, Event, TextChunk, ToolCall, ToolResult
from gm_chat.engine.ports import StoredMessage
from gm_chat.persistence.rows import message_from_row, message_values, pack_event, unpack_event
from gm_chat.providers.base import TokenUsage

text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | text, lambda inner: st.lists(inner) | st.dictionaries(text, inner)
)
objects = st.dictionaries(text, values, max_size=3)
counts = st.integers(0, 10**9)
events: st.SearchStrategy[Event] = st.one_of(
    st.builds(TextChunk, text),
    st.builds(ToolCall, text, text, objects, st.none() | text),
    st.builds(ToolResult, text, text, values, st.none() | text),
    st.builds(ConfirmMutation, text, text, objects),
    st.builds(Done, st.builds(TokenUsage, counts, counts, counts, counts, st.booleans()), st.none() | objects),
    st.builds(Error, text, text, objects),
)


@given(events)
def test_an_event_is_read_back_as_it_was(event: Event) -> None:
    stored = pack_event(event)
    assert unpack_event(stored) == event
    assert to_json(stored)  # plain JSON types only


@given(st.text(), values)
def test_a_message_is_read_back_as_it_was_but_for_unsafe_text(content: str, result: Any) -> None:
    message = StoredMessage(
        role="tool", content=content, tool_call_id="c1", tool_name="query", tool_args={"a": 1}, tool_result=result
    )
    assert message_from_row(message_values(message)) == StoredMessage(
        role="tool", content=jsonable(content), tool_call_id="c1", tool_name="query", tool_args={"a": 1},
        tool_result=result,
    )  # fmt: skip


def test_absent_text_is_stored_as_empty_and_comes_back_as_absent() -> None:
    stored = message_values(StoredMessage(role="user", content="x"))
    assert (stored["tool_name"], stored["tool_call_id"], stored["provider"]) == ("", "", "")
    assert message_from_row(stored) == StoredMessage(role="user", content="x")
