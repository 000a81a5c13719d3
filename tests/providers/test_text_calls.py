"""Calls that are written as text: what is one, what is not, and that it does not matter how the text was cut."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gm_chat.providers.base import (
    ChatEvent,
    DoneEvent,
    ProviderIncompleteError,
    TextChunkEvent,
    ToolCallEvent,
    ToolDefinition,
)
from gm_chat.providers.text_calls import MAX_CHARACTERS, structured

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

SCHEMA = {
    "type": "object",
    "properties": {
        "manager": {"type": "string"},
        "fields": {"type": "array"},
        "limit": {"type": ["integer", "null"]},
        "note": {"type": ["string", "null"]},
    },
}
QUERY = ToolDefinition("query", "Reads.", SCHEMA)
FIND = ToolDefinition("find_path", "Finds.", {"type": "object"})
MUTATE = ToolDefinition("mutate", "Writes.", SCHEMA, writes=True)
TOOLS = (QUERY, FIND, MUTATE)
ARGS = {"manager": "Part", "fields": ["name", {"material": ["*"]}], "note": '{"}]\\" ```</tool_call>'}
OBJECT = json.dumps({"name": "query", "arguments": ARGS})
DONE = DoneEvent(finish_reason="stop")


async def through(
    chunks: Sequence[str], *, tools: Sequence[ToolDefinition] = TOOLS, end: Sequence[ChatEvent] = (DONE,)
) -> list[ChatEvent]:
    async def source() -> AsyncGenerator[ChatEvent]:
        for chunk in chunks:
            yield TextChunkEvent(chunk)
        for event in end:
            yield event

    return [event async for event in structured(source(), tools)]


def read(events: Sequence[ChatEvent]) -> tuple[str, list[tuple[str, Any, str | None]], ChatEvent]:
    text = "".join(event.content for event in events if isinstance(event, TextChunkEvent))
    calls = [(event.name, dict(event.args), event.error) for event in events if isinstance(event, ToolCallEvent)]
    return text, calls, events[-1]


async def decided(text: str, **arguments: Any) -> tuple[str, list[tuple[str, Any, str | None]], ChatEvent]:
    return read(await through([text], **arguments))


CALLS = [
    OBJECT,
    json.dumps({"name": "query", "parameters": ARGS}),
    json.dumps({"type": "function", "name": "query", "parameters": ARGS}),
    json.dumps({"type": "function", "function": {"name": "query", "arguments": ARGS}, "id": "c1"}),
    json.dumps({"function": "query", "parameters": ARGS}),
    json.dumps({"arguments": ARGS, "name": "query"}),
    json.dumps({"name": "query", "arguments": json.dumps(ARGS)}),
    json.dumps({"name": "query", "arguments": ARGS}, indent=2),
    f"\n\n  {OBJECT}\n",
    f"```json\n{OBJECT}\n```",
    f"```\n{OBJECT}\n```\n",
    f"```tool_call\n{OBJECT}\n```",
    f"```json\n{OBJECT}",
    f"<tool_call>\n{OBJECT}\n</tool_call>",
    f"<tool_call>{OBJECT}",
    f"```xml\n<tool_call>\n{OBJECT}\n</tool_call>\n```",
    f"<tools>\n{OBJECT}\n</tools>",
    f"<tools> {OBJECT} </tool",
    f"<function>\n{OBJECT}\n</function>",
    f"<function-call> {OBJECT}",
    f"<function_call>{OBJECT}</function_call>",
    f"<tool>{OBJECT}</tool>",
    f"[TOOL_CALLS] [{OBJECT}]",
    f"[{OBJECT}]",
    f"<|python_tag|>{OBJECT}<|eom_id|>",
    f"<|tool_call|>[{OBJECT}]<|/tool_call|>",
    f"<tool_call>\n{OBJECT}\n</tool_call><|im_end|>",
    f"<function=query>{json.dumps(ARGS)}</function>",
    f"<function=query> {json.dumps(ARGS)}",
    (
        "<tool_call>\n<function=query>\n<parameter=manager>\nPart\n</parameter>\n"
        f"<parameter=fields>\n{json.dumps(ARGS['fields'])}\n</parameter>\n"
        f"<parameter=note>\n{ARGS['note']}\n</parameter>\n</function>\n</tool_call>"
    ),
]
PROSE = [
    "",
    " \n",
    "Steel is the heaviest.",
    "{",
    "[1] Steel",
    "```",
    "```python\nprint()\n```",
    '{"name": "Steel", "density": 7.8}',
    '{"name": "query"}',
    '{"name": "query", "arguments": {}, "parameters": {}}',
    '{"name": "query", "arguments": {}, "comment": "like this"}',
    '{"name": "query", "function": "query", "arguments": {}}',
    '{"name": "query", "name": "find_path", "arguments": {}}',
    '{"name": "query", "arguments": {"manager": "Part", "manager": "Material"}}',
    '{"name": "query", "arguments": {"limit": NaN}}',
    '{"name": "query", "arguments": {"manager": "Pa',
    '{"name": ["query"], "arguments": {}}',
    '{"name": "nobody", "arguments": {}}',
    '{"name": "quer\\u0079", "arguments": {}}',
    "{'name': 'query', 'arguments': {}}",
    '{name: "query", "arguments": {}}',
    "{}",
    '{"type": "object", "name": "query", "parameters": {}}',
    '{"type": "function", "function": {"name": "query", "description": "Reads.", "parameters": {}}}',
    '{"function": {"name": "query", "arguments": {}}, "name": "query"}',
    '{"function": {}, "type": "function"}',
    json.dumps({"name": "mutate", "arguments": {"manager": "Part"}}),
    f"```json\n{json.dumps({'name': 'mutate', 'arguments': {}})}\n```",
    "<function=mutate>{}</function>",
    "<function=nobody>{}</function>",
    "<function=query> is how a call begins",
    "<function=query>{} is one without arguments",
    "<function=query><parameter=manager>Part</parameter> and so on</function>",
    "<function=query><parameter=a>1</parameter><parameter=a>2</parameter></function>",
    "<function=query>{}</function> runs it",
    "<function",
    "<tool_call>",
    f"Here is the call: {OBJECT}",
    f"{OBJECT}\nThis shows all parts.",
    f"{OBJECT}{OBJECT}",
    f"[{OBJECT}, {OBJECT}]",
    f"<tool_call>{OBJECT}</tool_call>\n<tool_call>{OBJECT}</tool_call>",
    f"Do not run this:\n```json\n{OBJECT}\n```",
    f"```json\n{OBJECT}\n```\nThe block above is an example.",
    f"<think>Hm.</think>{OBJECT}",
    f"{OBJECT}]{{",
]


@pytest.mark.parametrize("text", CALLS)
async def test_what_is_nothing_but_a_call_becomes_one(text: str) -> None:
    assert await decided(text) == ("", [("query", ARGS, None)], DoneEvent(finish_reason="tool_calls"))


@pytest.mark.parametrize("text", PROSE)
async def test_everything_else_stays_what_it_was(text: str) -> None:
    assert await decided(text) == (text, [], DONE)


@pytest.mark.parametrize(
    ("arguments", "args", "error"),
    [("{bad", {}, "not JSON"), ("[1]", {}, "not a JSON object"), ("", {}, None), (None, {}, None), (7, {}, "not a")],
)
async def test_arguments_that_cannot_be_read_are_told_to_the_model(arguments: Any, args: Any, error: Any) -> None:
    _, [(_, seen, reason)], _ = await decided(json.dumps({"name": "query", "arguments": arguments}))
    assert seen == args
    assert (reason or "").startswith(error or "")
    assert (reason is None) == (error is None)


async def test_arguments_in_a_tag_that_cannot_be_read_are_told_too() -> None:
    _, [(name, args, error)], _ = await decided("<function=query>{manager: Part}</function>")
    assert (name, args) == ("query", {})
    assert error is not None
    assert error.startswith("not JSON")


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("<parameter=limit>\n10\n</parameter>", {"limit": 10}),
        ("<parameter=limit>ten</parameter>", {"limit": "ten"}),
        ("<parameter=note>10</parameter>", {"note": "10"}),
        ("<parameter=unknown>10</parameter>", {"unknown": "10"}),
        ("<parameter=note>\n a\n\nb \n</parameter>", {"note": " a\n\nb "}),
        ("", {}),
    ],
)
async def test_parameters_in_tags_are_what_the_schema_says(parameter: str, value: Any) -> None:
    assert await decided(f"<function=query>{parameter}</function>") == (
        "",
        [("query", value, None)],
        DoneEvent(finish_reason="tool_calls"),
    )


@pytest.mark.parametrize(
    "text",
    ['{"name": "query", "arguments": {"man', "<function=query>", "<function=query>{", '```json\n{"name":"query"'],
)
async def test_a_call_that_the_output_limit_cut_off_is_told_and_not_run(text: str) -> None:
    cut = DoneEvent(finish_reason="length")
    seen, [(name, args, error)], done = await decided(text, end=[cut])
    assert (seen, name, args, done) == ("", "query", {}, cut)
    assert error is not None
    assert error.startswith("cut off")


@pytest.mark.parametrize("text", ["Steel is", '{"na', "<function=que", '{"arguments": {', "<tool_call>"])
async def test_other_text_that_was_cut_off_is_text(text: str) -> None:
    cut = DoneEvent(finish_reason="length")
    assert await decided(text, end=[cut]) == (text, [], cut)


@pytest.mark.parametrize("tools", [(), (MUTATE,), (FIND,)])
async def test_a_tool_that_is_not_offered_or_writes_is_never_called(tools: Any) -> None:
    assert await decided(OBJECT, tools=tools) == (OBJECT, [], DONE)
    write = OBJECT.replace("query", "mutate")
    assert await decided(write, tools=tools) == (write, [], DONE)


async def test_a_long_message_is_text() -> None:
    filler = json.dumps({"name": "query", "arguments": {"note": ""}})
    fits, long = (
        filler.replace('""', f'"{"x" * (size - len(filler))}"') for size in (MAX_CHARACTERS, MAX_CHARACTERS + 1)
    )
    assert (await decided(fits))[0] == ""
    for cut in (1, 100, MAX_CHARACTERS):
        assert read(await through([long[:cut], long[cut:]])) == (long, [], DONE)


async def test_a_structured_call_beside_it_leaves_the_text_alone() -> None:
    call = ToolCallEvent("c1", "query", {})
    assert read(await through([OBJECT], end=[call, DONE])) == (OBJECT, [("query", {}, None)], DONE)
    events = await through(["\n", "\n"], end=[call, DONE])
    assert [event for event in events if event != TextChunkEvent("")] == [TextChunkEvent("\n\n"), call, DONE]


async def test_text_goes_out_as_soon_as_it_cannot_be_a_call() -> None:
    sent: list[str] = []
    seen: list[str] = []

    async def source() -> AsyncGenerator[ChatEvent]:
        for chunk in ("Ste", "el", " is", '{"name": "query"'):
            assert "".join(seen) == "".join(sent)
            sent.append(chunk)
            yield TextChunkEvent(chunk)
        yield DONE

    events = structured(source(), TOOLS)
    while (event := await anext(events)) != DONE:
        assert isinstance(event, TextChunkEvent)
        seen.append(event.content)


@pytest.mark.parametrize(
    ("held", "decides"),
    [
        ('{"name": "qu', 'ote"'),
        ("```", "p"),
        ("<too", "n"),
        ("{", '"x"'),
        (OBJECT, " and"),
        (OBJECT, "{"),
        ("<function=query", "1>"),
        ("<function=f", "ind>"),
        (f"[{OBJECT}", ","),
    ],
)
async def test_what_begins_like_a_call_is_held_back_until_it_is_decided(held: str, decides: str) -> None:
    events = await through([*held, *decides, "rest"])
    assert events[: len(held)] == [TextChunkEvent("")] * len(held)  # signs of life, for whoever counts the seconds
    text = [event.content for event in events if isinstance(event, TextChunkEvent) and event.content]
    assert text[0].startswith(held)
    assert len(text[0]) <= len(held + decides)
    assert "".join(text) == f"{held}{decides}rest"


async def test_a_stream_that_fails_has_lost_no_text() -> None:
    async def source() -> AsyncGenerator[ChatEvent]:
        yield TextChunkEvent('{"name": "query"')
        raise ProviderIncompleteError("gone")

    events = structured(source(), TOOLS)
    assert await anext(events) == TextChunkEvent("")
    assert await anext(events) == TextChunkEvent('{"name": "query"')
    with pytest.raises(ProviderIncompleteError):
        await anext(events)


async def test_the_stream_is_closed_with_it() -> None:
    closed = []

    async def source() -> AsyncGenerator[ChatEvent]:
        try:
            while True:
                yield TextChunkEvent("x")
        finally:
            closed.append(True)

    events = structured(source(), TOOLS)
    await anext(events)
    await events.aclose()
    assert closed == [True]


async def test_an_iterator_that_cannot_be_closed_will_do() -> None:
    class Plain:
        def __init__(self) -> None:
            self.events = iter([TextChunkEvent(OBJECT), DONE])

        def __aiter__(self) -> Plain:
            return self

        async def __anext__(self) -> ChatEvent:
            try:
                return next(self.events)
            except StopIteration:
                raise StopAsyncIteration from None

    assert read([event async for event in structured(Plain(), TOOLS)])[1] == [("query", ARGS, None)]


# --- properties -------------------------------------------------------------------------------------------------------

PIECES = st.sampled_from(
    [
        *(
            "```json\n",
            "```",
            "<tool_call>",
            "</tool_call>",
            "<tools>",
            "</tools>",
            "<function=query>",
            "<function=",
            ">",
        ),
        *(
            "</function>",
            "<parameter=manager>",
            "</parameter>",
            "[",
            "]",
            "[TOOL_CALLS]",
            "{",
            "}",
            '"',
            "\\",
            "\\u0022",
        ),
        *(
            '"name"',
            '"query"',
            ":",
            ",",
            '"arguments"',
            '"parameters"',
            '"type": "function"',
            "Part",
            " ",
            "\n",
            "é",
            "😀",
        ),
        *(OBJECT, '{"name": "query", "arguments": {}}', '{"name": "mutate", "arguments": {}}', "{}", "[]", "1", "null"),
    ]
)
TEXTS = st.one_of(
    st.sampled_from([*CALLS, *PROSE]),
    st.lists(PIECES, max_size=12).map("".join),
    st.tuples(st.sampled_from([*CALLS, *PROSE]), PIECES).map("".join),
    st.tuples(PIECES, st.sampled_from([*CALLS, *PROSE])).map("".join),
    st.text(max_size=60),
)
REASONS = st.sampled_from(["stop", "length", "unknown", "tool_calls", "filtered"])


def chunks_of(text: str, cuts: Sequence[int]) -> list[str]:
    edges = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    return [text[start:end] for start, end in itertools.pairwise(edges)]


@given(TEXTS, st.lists(st.integers(0, 10_000), max_size=8), REASONS)
async def test_the_cuts_do_not_matter(text: str, cuts: list[int], reason: Any) -> None:
    end = [DoneEvent(finish_reason=reason)]
    whole = read(await through([text], end=end))
    assert read(await through(chunks_of(text, cuts), end=end)) == whole
    assert read(await through(list(text), end=end)) == whole


@given(TEXTS, REASONS)
async def test_a_message_is_one_call_or_the_text_that_it_was(text: str, reason: Any) -> None:
    seen, calls, _ = await decided(text, end=[DoneEvent(finish_reason=reason)])
    assert (seen, len(calls)) in [(text, 0), ("", 1)]
    assert all(name in ("query", "find_path") for name, _, _ in calls)


@given(TEXTS, st.text(alphabet="abcxyz.,;:!?ÄÖ", min_size=1, max_size=20), st.booleans())
async def test_words_around_a_call_make_it_prose(text: str, words: str, before: bool) -> None:
    message = f"{words} {text}" if before else f"{text} {words}"
    seen, calls, _ = await decided(message)
    assert (seen, calls) == (message, [])
