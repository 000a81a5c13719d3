from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gm_chat.engine.history import INTERRUPTED, to_messages, window
from gm_chat.engine.messages import Call, CallIds, assistant_row, model_json, tool_row
from gm_chat.engine.ports import StoredMessage
from gm_chat.providers.base import MISSING, Message

MARK = re.compile(r"</?data-[0-9a-f]{8}>")


def user(text: str = "Parts?") -> StoredMessage:
    return StoredMessage(role="user", content=text)


def said(text: str = "", *calls: dict[str, Any], **more: Any) -> StoredMessage:
    return StoredMessage(role="assistant", content=text, tool_calls=calls, **more)


def record(id: Any, name: Any = "query", **args: Any) -> dict[str, Any]:
    return {"id": id, "name": name, "args": args}


def result(id: str | None, value: Any, name: str | None = "query") -> StoredMessage:
    return StoredMessage(role="tool", tool_call_id=id, tool_name=name, tool_result=value)


def shown(rows: list[StoredMessage], provider: str = "acme") -> list[tuple[str, str]]:
    """Who says what, without the marks of results."""
    told = ((message.role, message.content) for message in to_messages(rows, provider=provider))
    return [(role, MARK.sub("", content)) for role, content in told]


def check_well_formed(messages: list[Message]) -> None:
    """What every provider asks of a request."""
    if not messages:
        return
    assert messages[0].role == "user"
    pending: list[str] = []
    seen: set[str] = set()
    for message in messages:
        if pending:
            assert message.role == "tool"
            assert message.tool_call_id == pending.pop(0)
            assert message.tool_result is not MISSING
        else:
            assert message.role in {"user", "assistant"}
        assert message.content.strip() or message.tool_calls
        for call in message.tool_calls:
            assert message.role == "assistant"
            assert call.id
            assert call.name
            assert isinstance(call.args, dict)
            assert call.id not in seen
            seen.add(call.id)
            pending.append(call.id)
    assert not pending


# --- linked calls -------------------------------------------------------------------------------------------------


def test_a_call_and_its_result() -> None:
    messages = to_messages([user(), said("Look.", record("a", n=1)), result("a", [1]), said("One.")], provider="acme")
    assert [message.role for message in messages] == ["user", "assistant", "tool", "assistant"]
    (call,) = messages[1].tool_calls
    assert (call.id, call.name, call.args) == ("a", "query", {"n": 1})
    assert (messages[2].tool_call_id, messages[2].tool_name, messages[2].tool_result) == ("a", "query", [1])


def test_results_come_in_the_order_of_the_calls() -> None:
    rows = [user(), said("", record("a"), record("b")), result("b", 2), result("a", 1)]
    assert [message.tool_result for message in to_messages(rows, provider="acme")[2:]] == [1, 2]


def test_an_unanswered_call_is_answered_as_interrupted() -> None:
    rows = [user(), said("", record("a"), record("b")), result("a", 1), user("And now?")]
    messages = to_messages(rows, provider="acme")
    assert [message.role for message in messages] == ["user", "assistant", "tool", "tool", "user"]
    assert messages[3].tool_result == INTERRUPTED
    assert '"code":"interrupted"' in messages[3].content


@pytest.mark.parametrize("empty", ["", None, [], {}])
def test_an_empty_result_is_a_result(empty: Any) -> None:
    messages = to_messages([user(), said("", record("a")), result("a", empty)], provider="acme")
    assert messages[2].tool_result == empty
    assert messages[2].content


# --- what cannot be linked ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "orphan",
    [result("other", {"b": 1, "a": 2}), result(None, {"b": 1, "a": 2}), result("", {"b": 1, "a": 2})],
)
def test_a_result_without_its_call_is_told_by_the_assistant(orphan: StoredMessage) -> None:
    assert shown([user(), orphan, said("ok")])[1:] == [
        ("assistant", '[Earlier result of query] {"a":2,"b":1}'),
        ("assistant", "ok"),
    ]


def test_a_row_of_text_without_a_result_keeps_its_text() -> None:
    row = StoredMessage(role="tool", content="three parts")
    assert shown([user(), row])[1:] == [("assistant", "[Earlier result of a tool] three parts")]


def test_a_second_result_of_a_call_does_not_answer_it_twice() -> None:
    rows = [user(), said("", record("a")), result("a", 1), result("a", 2)]
    assert shown(rows)[2:] == [("tool", "1"), ("assistant", "[Earlier result of query] 2")]


@pytest.mark.parametrize("bad", [record(None, n=1), record("", n=1), record(7, n=1), record("a", "query", n=1)])
def test_a_call_without_identity_is_told_after_the_answered_ones(bad: dict[str, Any]) -> None:
    rows = [user(), said("", record("a"), bad), result("a", 1)]
    assert shown(rows)[1:] == [("assistant", ""), ("tool", "1"), ("assistant", '[Earlier call of query] {"n":1}')]


def test_a_call_without_a_name_is_told() -> None:
    assert shown([user(), said("Hm.", record("a", None))])[1:] == [
        ("assistant", "Hm."),
        ("assistant", "[Earlier call of a tool] {}"),
    ]


def test_arguments_that_are_no_object_become_an_empty_one() -> None:
    messages = to_messages([user(), said("", {"id": "a", "name": "query", "args": "x"})], provider="acme")
    assert messages[1].tool_calls[0].args == {}


def test_empty_rows_leave_no_message() -> None:
    assert shown([user(" "), user(), said("  \n"), said("ok")]) == [("user", "Parts?"), ("assistant", "ok")]


def test_history_begins_with_a_user() -> None:
    assert shown([result("a", 1), said("left over"), user()]) == [("user", "Parts?")]
    assert shown([said("alone")]) == []


# --- what belongs to one provider ---------------------------------------------------------------------------------


def test_private_data_returns_to_its_provider_only() -> None:
    call = Call("ours", "query", {}, provider_id="theirs", metadata={"signature": "s"})
    rows = [
        user(),
        assistant_row("", [call], provider="acme", metadata={"thinking": "t"}),
        tool_row(call, 1),
    ]
    _, message, answer = to_messages(rows, provider="acme")
    assert (message.provider, message.metadata) == ("acme", {"thinking": "t"})
    assert (message.tool_calls[0].id, message.tool_calls[0].metadata) == ("theirs", {"signature": "s"})
    assert answer.tool_call_id == "theirs"
    _, message, answer = to_messages(rows, provider="other")
    assert (message.provider, message.metadata) == ("acme", {})
    assert (message.tool_calls[0].id, message.tool_calls[0].metadata) == ("ours", {})
    assert answer.tool_call_id == "ours"


def test_ids_that_a_provider_repeats_are_made_unique() -> None:
    rows = []
    for ours in ("o1", "o2"):
        call = Call(ours, "query", {}, provider_id="same")
        rows += [user(), assistant_row("", [call], provider="acme", metadata={}), tool_row(call, ours)]
    messages = to_messages(rows, provider="acme")
    check_well_formed(messages)
    assert [message.tool_call_id for message in messages if message.role == "tool"] == ["same", "o2"]


def test_an_id_is_numbered_when_nothing_else_is_free() -> None:
    ids = CallIds(taken=["a", "a-2"])
    assert ids.claim(Call("a", "query", {})) == "a-3"
    assert ids.claim(Call("b", "query", {}, provider_id="")) == "b"


def test_json_for_models_is_sorted_compact_and_readable() -> None:
    assert model_json({"b": "Größe", "a": [1, 2]}) == '{"a":[1,2],"b":"Größe"}'


# --- the window ---------------------------------------------------------------------------------------------------

LONG = [user("1"), said("a"), user("2"), said("", record("a")), result("a", 1), said("b")]


@pytest.mark.parametrize(("size", "start"), [(99, 0), (6, 0), (5, 2), (4, 2), (3, 2), (1, 2)])
def test_windows_start_at_a_user_s_message(size: int, start: int) -> None:
    assert list(window(LONG, size)) == LONG[start:]


def test_no_user_no_window() -> None:
    assert list(window([said("a")], 5)) == []


# --- any prefix of anything ---------------------------------------------------------------------------------------

ids = st.sampled_from(["a", "b", "c", ""])
json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
call_records = st.fixed_dictionaries(
    {},
    optional={
        "id": ids | st.none() | st.integers(),
        "name": st.sampled_from(["query", "mutate", ""]) | st.none(),
        "args": json,
    },
)
texts = st.sampled_from(["", " ", "text", "\n"])
echoes: st.SearchStrategy[dict[str, Any]] = st.dictionaries(
    ids, st.fixed_dictionaries({"id": ids | st.none(), "metadata": st.just({})}), max_size=2
)
stored = st.one_of(
    st.builds(StoredMessage, role=st.just("user"), content=texts),
    st.builds(
        StoredMessage,
        role=st.just("assistant"),
        content=texts,
        tool_calls=st.lists(call_records, max_size=4),
        provider=st.sampled_from(["acme", "other", None]),
        metadata=st.just({}) | st.fixed_dictionaries({"calls": echoes}),
    ),
    st.builds(
        StoredMessage,
        role=st.just("tool"),
        content=texts,
        tool_call_id=ids | st.none(),
        tool_name=st.sampled_from(["query", None]),
        tool_result=json,
    ),
)


@given(rows=st.lists(stored, max_size=12), size=st.integers(1, 12))
def test_any_history_becomes_a_valid_request(rows: list[StoredMessage], size: int) -> None:
    check_well_formed(to_messages(rows, provider="acme"))
    check_well_formed(to_messages(window(rows, size), provider="acme"))


@st.composite
def turns(draw: st.DrawFn) -> list[StoredMessage]:
    """Histories as the engine writes them."""
    rows: list[StoredMessage] = []
    number = 0
    for _ in range(draw(st.integers(1, 4))):
        rows.append(user(f"question {len(rows)}"))
        for _ in range(draw(st.integers(0, 3))):
            calls = []
            for _ in range(draw(st.integers(1, 3))):
                number += 1
                calls.append(Call(f"ours-{number}", "query", {}, provider_id=draw(st.sampled_from(["x", "y", None]))))
            rows.append(assistant_row(draw(texts), calls, provider="acme", metadata={}))
            rows.extend(tool_row(call, {"n": call.id}) for call in calls)
        rows.append(assistant_row("answer", [], provider="acme", metadata={}))
    return rows


@given(rows=turns(), provider=st.sampled_from(["acme", "other"]), data=st.data())
def test_any_prefix_of_a_written_history_is_valid_and_nothing_is_lost(
    rows: list[StoredMessage], provider: str, data: st.DataObject
) -> None:
    prefix = rows[: data.draw(st.integers(0, len(rows)))]
    messages = to_messages(prefix, provider=provider)
    check_well_formed(messages)
    results = [message.tool_result for message in messages if message.role == "tool"]
    known = [row.tool_result for row in prefix if row.role == "tool"]
    assert [value for value in results if value != INTERRUPTED] == known
