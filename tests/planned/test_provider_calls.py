"""Rounds with a provider: words or one call, within their time, and nothing left open."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from django.test import override_settings

from gm_chat.engine.ports import ProviderHandle
from gm_chat.errors import planned_public_error, public_chat_error
from gm_chat.planned.config import get_planned_chat_settings
from gm_chat.planned.provider_calls import (
    InvalidProviderRoundError,
    ProfileCaller,
    ProviderRoundResult,
    complete_provider_round,
    complete_round,
)
from gm_chat.providers.base import (
    CallOptions,
    Message,
    ProviderQuotaError,
    ProviderTimeoutError,
    TextChunkEvent,
    TokenUsage,
    ToolCallEvent,
    ToolDefinition,
)
from gm_chat.testing.scripted import NO_DONE, ScriptedProvider, Step, call, done

QUESTION = [Message("user", "Parts?")]
QUERY = ToolDefinition("query", "Reads.", {"type": "object"})
USAGE = TokenUsage(10, 5)


async def play(*steps: Step, seconds: float = 5) -> ProviderRoundResult:
    with ScriptedProvider.playing(steps) as script:
        try:
            return await complete_provider_round(ScriptedProvider({}), QUESTION, [QUERY], seconds)
        finally:
            assert script.open_streams == 0


@pytest.mark.parametrize(
    ("steps", "text", "tool"),
    [
        (["a", "b"], "ab", None),
        (["", "{}", ""], "{}", None),
        ([call("query", manager="PartManager")], "", "query"),
        ([" ", call("query"), "\n"], "", "query"),
    ],
)
async def test_words_or_one_call(steps: Sequence[Step], text: str, tool: str | None) -> None:
    result = await play(*steps)
    assert (result.text, result.usage) == (text, USAGE)
    assert (result.tool_call and result.tool_call.name) == tool


@pytest.mark.parametrize(
    ("steps", "words", "usage"),
    [
        (["a", call("query")], "words or one tool call, not both", USAGE),
        ([call("query"), call("find_path")], r"one tool call, not 2 \(query, find_path\)", USAGE),
        ([call("query", error="cut off")], "arguments of the call of query cannot be read: cut off", USAGE),
        ([], "neither words nor a tool call", USAGE),
        ([" \n"], "neither words nor a tool call", USAGE),
        (["a", done(7, 3, finish_reason="length")], "cut off", TokenUsage(7, 3)),
        (["a", NO_DONE], "broke off", None),
        ([call("query"), NO_DONE], "broke off", None),
    ],
)
async def test_anything_else_is_no_round(steps: Sequence[Step], words: str, usage: TokenUsage | None) -> None:
    with pytest.raises(InvalidProviderRoundError, match=words) as caught:
        await play(*steps)
    assert caught.value.usage == usage
    assert public_chat_error(caught.value) == planned_public_error("provider_failed")


async def test_a_provider_s_failure_stays_what_it_is() -> None:
    failure = ProviderQuotaError("too many", retryable=False)
    with pytest.raises(ProviderQuotaError) as caught:
        await play("a", failure)
    assert caught.value is failure


@pytest.mark.parametrize("before", [[], ["a"]])
async def test_the_time_is_for_the_whole_round(before: list[Step]) -> None:
    with pytest.raises(TimeoutError) as caught:
        await play(*before, 60.0, "b", seconds=0.05)
    assert not isinstance(caught.value, ProviderTimeoutError)
    assert public_chat_error(caught.value) == planned_public_error("deadline_exceeded")


async def test_a_round_can_be_cancelled() -> None:
    reached = asyncio.Event()

    async def reach() -> None:
        reached.set()

    round_ = asyncio.create_task(play("a", reach, 60.0))
    await reached.wait()
    round_.cancel()
    with pytest.raises(asyncio.CancelledError):
        await round_


class TestOptions:
    async def test_a_provider_without_capabilities_gets_none(self) -> None:
        class Plain:
            async def complete(self, messages: list[Message], tools: list[ToolDefinition]) -> Any:
                assert (messages, tools) == (QUESTION, [QUERY])
                yield TextChunkEvent("a")
                yield done(1, 1)

        result = await complete_provider_round(Plain(), QUESTION, [QUERY], 5)
        assert result == ProviderRoundResult("a", None, TokenUsage(1, 1))

    async def test_one_with_some_gets_those(self) -> None:
        class Strict:
            capabilities = frozenset({"response_format"})

            async def complete(
                self, messages: list[Message], tools: list[ToolDefinition], *, options: CallOptions | None = None
            ) -> Any:
                assert options == CallOptions()
                yield ToolCallEvent("c", "query", {})
                yield done()

        assert (await complete_provider_round(Strict(), QUESTION, [], 5)).tool_call is not None

    async def test_a_handle_gets_them_all(self) -> None:
        seen: list[CallOptions] = []

        async def complete(messages: list[Message], tools: list[ToolDefinition], options: CallOptions) -> Any:
            seen.append(options)
            yield TextChunkEvent("a")
            yield done()

        options = CallOptions(response_format={"type": "object"}, deadline=3)
        await complete_round(ProviderHandle("p", complete), QUESTION, [], options, seconds=3)
        assert seen == [options]


class TestProfileCaller:
    async def test_it_calls_the_role_s_provider(self) -> None:
        provider = "gm_chat.testing.scripted.ScriptedProvider"
        roles = dict.fromkeys(("simple_executor", "complex_executor", "synthesizer", "fallback_executor"), "b")
        chat = {
            "provider_profiles": {
                "a": {"provider": provider, "provider_config": {"script": [["plan"], ["more"]]}, "trust_group": "us"},
                "b": {"provider": provider, "provider_config": {"script": [["answer"]]}, "trust_group": "us"},
            },
            "planned": {"enabled": True, "roles": {"planner": "a", **roles}},
        }
        with override_settings(GM_CHAT=chat):
            caller = ProfileCaller(get_planned_chat_settings())
            texts = [
                (await caller(role, QUESTION, [], seconds=5)).text for role in ("planner", "synthesizer", "planner")
            ]
        assert texts == ["plan", "answer", "more"]

    async def test_a_schema_reaches_a_provider_that_takes_one(self) -> None:
        with (
            override_settings(GM_CHAT={"provider": "gm_chat.testing.scripted.ScriptedProvider"}),
            ScriptedProvider.playing(["{}"]) as script,
        ):
            caller = ProfileCaller(get_planned_chat_settings())
            await caller("planner", QUESTION, [QUERY], seconds=5, response_format={"type": "object"})
        assert script.requests[0].options == CallOptions(response_format={"type": "object"}, deadline=5)
        assert script.requests[0].tool_names == ["query"]
