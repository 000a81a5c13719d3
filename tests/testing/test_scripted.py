from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from gm_chat.providers.base import (
    CallOptions,
    ChatEvent,
    DoneEvent,
    Message,
    Provider,
    ProviderQuotaError,
    TextChunkEvent,
    TokenUsage,
    ToolCallEvent,
    ToolDefinition,
)
from gm_chat.testing.scripted import (
    NO_DONE,
    ScriptedProvider,
    ScriptedRequest,
    ScriptExhaustedError,
    Step,
    call,
    done,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

QUESTION = [Message("system", "Be brief."), Message("user", "Parts?")]
QUERY = ToolDefinition("query", "Reads.", {"type": "object"})


async def answer(provider: ScriptedProvider | None = None, messages: list[Message] = QUESTION) -> list[ChatEvent]:
    return [event async for event in (provider or ScriptedProvider({})).complete(messages, [QUERY])]


async def test_plays_round_by_round_over_instances() -> None:
    with ScriptedProvider.playing(["a", "b"], [call("query", manager="Part"), "c"]) as script:
        assert await answer() == [
            TextChunkEvent("a"),
            TextChunkEvent("b"),
            DoneEvent(TokenUsage(10, 5), "stop"),
        ]
        assert await answer() == [
            ToolCallEvent("scripted-2-1", "query", {"manager": "Part"}),
            TextChunkEvent("c"),
            DoneEvent(TokenUsage(10, 5), "stop"),
        ]
    assert len(script.requests) == 2
    assert ScriptedProvider.script is None


async def test_provider_events_pass_and_done_ends_the_round() -> None:
    steps: list[Step] = [TextChunkEvent("x"), call("query", call_id="mine", error="cut off"), done(1, 2), "never"]
    with ScriptedProvider.playing(steps):
        assert await answer() == [
            TextChunkEvent("x"),
            ToolCallEvent("mine", "query", {}, error="cut off"),
            DoneEvent(TokenUsage(1, 2), "stop"),
        ]


async def test_no_done_leaves_out_the_terminal_event() -> None:
    with ScriptedProvider.playing(["a", NO_DONE]):
        assert await answer() == [TextChunkEvent("a")]


async def test_exceptions_are_raised_after_what_came_before() -> None:
    with ScriptedProvider.playing(["a", ProviderQuotaError("429")]) as script:
        stream = ScriptedProvider({}).complete(QUESTION, [])
        assert await anext(stream) == TextChunkEvent("a")
        with pytest.raises(ProviderQuotaError, match="429"):
            await anext(stream)
    assert script.open_streams == 0


async def test_numbers_wait_and_callables_hold_the_stream() -> None:
    gate = asyncio.Event()
    with ScriptedProvider.playing(["a", 0.001, gate.wait, "b"]) as script:
        stream = ScriptedProvider({}).complete(QUESTION, [])
        assert await anext(stream) == TextChunkEvent("a")
        later = asyncio.create_task(anext(stream))
        await asyncio.sleep(0.01)
        assert not later.done()
        assert script.open_streams == 1
        gate.set()
        assert await asyncio.wait_for(later, 1) == TextChunkEvent("b")
        await stream.aclose()
        assert script.open_streams == 0


async def test_a_round_may_depend_on_the_request() -> None:
    def reply(request: ScriptedRequest) -> Sequence[Step]:
        return [f"{request.messages[-1].content} {request.tool_names} {request.options.tool_choice}"]

    with ScriptedProvider.playing(reply):
        first, _ = await answer()
    assert first == TextChunkEvent("Parts? ['query'] auto")


async def test_requests_are_recorded_with_prompt_results_and_options() -> None:
    messages = [
        *QUESTION,
        Message("assistant", "", (ToolCallEvent("a", "query", {}),)),
        Message("tool", "1", tool_call_id="a", tool_result=1),
        Message("assistant", "One."),
        Message("user", "More?"),
        Message("tool", "null", tool_call_id="b", tool_result=None),
        Message("tool", "3", tool_call_id="c", tool_result=3),
        Message("user", "Answer now."),
    ]
    with ScriptedProvider.playing([]) as script:
        async for _ in ScriptedProvider({}).complete(messages, [], options=CallOptions(tool_choice="none")):
            pass
    (request,) = script.requests
    assert request.system == "Be brief."
    assert request.results == [None, 3]
    assert request.options.tool_choice == "none"
    assert request.messages == tuple(messages)


async def test_too_many_calls_are_named() -> None:
    with ScriptedProvider.playing(["a"]):
        await answer()
        with pytest.raises(ScriptExhaustedError, match=r"has 1 round\(s\), but the provider was called 2 times"):
            await answer()


async def test_a_repeated_script_starts_over() -> None:
    with ScriptedProvider.playing(["a"], ["b"], repeat=True) as script:
        texts = [(await answer())[0] for _ in range(3)]
    assert texts == [TextChunkEvent("a"), TextChunkEvent("b"), TextChunkEvent("a")]
    assert len(script.requests) == 3


async def test_scripts_nest() -> None:
    with ScriptedProvider.playing(["outer"]):
        with ScriptedProvider.playing(["inner"]):
            assert (await answer())[0] == TextChunkEvent("inner")
        assert (await answer())[0] == TextChunkEvent("outer")


async def test_a_script_from_the_settings_is_plain_data_and_starts_over_with_each_instance() -> None:
    config: dict[str, Any] = {"script": [["a", 0, {"call": "query", "args": {"n": 1}}], ["b"]]}
    for _ in range(2):
        provider = ScriptedProvider.from_config(config)
        assert await answer(provider) == [
            TextChunkEvent("a"),
            ToolCallEvent("scripted-1-1", "query", {"n": 1}),
            DoneEvent(TokenUsage(10, 5), "stop"),
        ]
        assert (await answer(provider))[0] == TextChunkEvent("b")


async def test_without_a_script_it_says_how_to_give_one() -> None:
    with pytest.raises(LookupError, match=r"nothing to play: use `with ScriptedProvider\.playing"):
        await answer()


def test_it_is_a_provider() -> None:
    assert isinstance(ScriptedProvider({}), Provider)
    assert ScriptedProvider.capabilities == {"tool_choice", "response_format", "deadline"}
    assert repr(NO_DONE) == "NO_DONE"
