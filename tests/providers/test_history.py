from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gm_chat.providers.base import MISSING, Message, ToolCallEvent
from gm_chat.providers.history import INTERRUPTED, normalise
from gm_chat.testing.contract import HISTORIES


def call(id: str, name: str = "query") -> ToolCallEvent:
    return ToolCallEvent(id, name, {})


def asks(*ids: str, content: str = "") -> Message:
    return Message("assistant", content, tuple(call(id) for id in ids))


def result(id: str | None, content: str = "1", name: str = "query", **more) -> Message:
    return Message("tool", content, tool_call_id=id, tool_name=name, **more)


def shape(messages) -> list[tuple]:
    """What a reader of these tests wants to see of messages."""
    return [
        (message.role, message.tool_call_id, message.content)
        if message.role == "tool"
        else (message.role, *(item.id for item in message.tool_calls), message.content)
        for message in messages
    ]


HI = Message("user", "Hi")


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([HI, Message("assistant", "Ho")], [("user", "Hi"), ("assistant", "Ho")], id="text"),
        pytest.param(
            [Message("system", "A"), Message("system", ""), Message("system", "B"), HI, HI],
            [("system", "A\n\nB"), ("user", "Hi\n\nHi")],
            id="repeated roles are joined, empty ones left out",
        ),
        pytest.param(
            [HI, Message("assistant", "I look."), asks("a"), result("a")],
            [("user", "Hi"), ("assistant", "a", "I look."), ("tool", "a", "1")],
            id="a text and its calls are one message",
        ),
        pytest.param(
            [asks("a", "b", content=" "), result("b", "2"), result("a", "1")],
            [("assistant", "a", "b", ""), ("tool", "a", "1"), ("tool", "b", "2")],
            id="results follow the order of the calls",
        ),
        pytest.param(
            [asks("a", "b"), result("b", "2"), HI],
            [("assistant", "a", "b", ""), ("tool", "a", INTERRUPTED), ("tool", "b", "2"), ("user", "Hi")],
            id="a call without a result was interrupted",
        ),
        pytest.param(
            [asks("a", "a"), result("a", "1"), result("a", "2")],
            [("assistant", "a", "call_1", ""), ("tool", "a", "1"), ("tool", "call_1", "2")],
            id="one id twice in one message",
        ),
        pytest.param(
            [asks("a"), result("a", "1"), asks("a"), result("a", "2")],
            [("assistant", "a", ""), ("tool", "a", "1"), ("assistant", "call_1", ""), ("tool", "call_1", "2")],
            id="one id in two rounds",
        ),
        pytest.param(
            [asks("call_1", ""), result("call_1", "1"), result("", "2")],
            [("assistant", "call_1", "call_2", ""), ("tool", "call_1", "1"), ("tool", "call_2", "2")],
            id="a new id is not one that is taken",
        ),
        pytest.param(
            [HI, result("gone", "[7]"), HI],
            [("user", "Hi"), ("assistant", "[Earlier result of the tool query: [7]]"), ("user", "Hi")],
            id="a result without its call is context",
        ),
        pytest.param(
            [asks("a"), result("a", "1"), result("a", "2"), result(None, "3", name="")],
            [
                ("assistant", "a", ""),
                ("tool", "a", "1"),
                (
                    "assistant",
                    "[Earlier result of the tool query: 2]\n\n[Earlier result of the tool unknown: 3]",
                ),
            ],
            id="a second result of one call",
        ),
        pytest.param(
            [asks("a"), HI, result("a", "1")],
            [
                ("assistant", "a", ""),
                ("tool", "a", INTERRUPTED),
                ("user", "Hi"),
                ("assistant", "[Earlier result of the tool query: 1]"),
            ],
            id="a result that comes too late",
        ),
    ],
)
def test_repairs(history, expected) -> None:
    assert shape(normalise(history)) == expected


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (result("a", "[1]", tool_result=[2]), "[1]"),
        (result("a", "", tool_result={"data": []}), '{"data":[]}'),
        (result("a", "", tool_result=None), "null"),
        (result("a", " ", tool_result=""), '""'),
        (result("a", "", tool_result=MISSING), "null"),
    ],
)
def test_a_result_is_never_blank(message, text) -> None:
    assert normalise([asks("a"), message])[1].content == text


def test_ids_that_a_provider_does_not_take_are_replaced() -> None:
    messages = normalise([asks("x" * 50), result("x" * 50)], call_id=re.compile(r"\w{1,40}"))
    assert shape(messages) == [("assistant", "call_1", ""), ("tool", "call_1", "1")]


def test_an_unknown_role_is_an_error_of_the_caller() -> None:
    with pytest.raises(ValueError, match="message 1 has the role 'robot'"):
        normalise([HI, Message("robot", "x")])


def test_metadata_and_provider_stay_with_their_message() -> None:
    given_call = ToolCallEvent("a", "query", {}, metadata={"signature": "x"})
    (kept, _) = normalise([Message("assistant", "", (given_call,), provider="google", metadata={"y": 1})])
    assert (kept.provider, kept.metadata, kept.tool_calls) == ("google", {"y": 1}, (given_call,))


IDS = st.sampled_from(["a", "b", "", "call_1", "x" * 60, "\ud83d"])
TEXTS = st.sampled_from(["", " ", "text", "null", "half \ud83d"])
MESSAGES = st.lists(
    st.one_of(
        st.builds(Message, st.sampled_from(["system", "user", "assistant"]), TEXTS),
        st.builds(lambda ids, text: asks(*ids, content=text), st.lists(IDS, min_size=1, max_size=3), TEXTS),
        st.builds(result, IDS | st.none(), TEXTS),
    ),
    max_size=12,
)


@given(MESSAGES | st.sampled_from(list(HISTORIES.values())))
def test_the_promises_hold_for_any_history_and_each_of_its_prefixes(history) -> None:
    for length in range(len(history) + 1):
        messages = normalise(history[:length])
        assert normalise(messages) == messages  # repaired means that nothing is left to repair
        seen: set[str] = set()
        waiting: list[str] = []
        for previous, message in zip([None, *messages], messages, strict=False):
            if message.role == "tool":
                assert message.tool_call_id == waiting.pop(0)
                assert message.content.strip()
                continue
            assert not waiting
            assert message.content.strip() or message.tool_calls
            assert previous is None or previous.role != message.role or previous.tool_calls
            waiting = [item.id for item in message.tool_calls]
            assert not seen & set(waiting)
            seen |= set(waiting)
            assert "" not in seen
            "".join([message.content, *waiting]).encode()  # what cannot be encoded raises
        assert not waiting
