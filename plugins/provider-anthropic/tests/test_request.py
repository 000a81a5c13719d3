"""From neutral messages to the body: what the API demands, what is cached, whose thoughts return."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from gm_chat_provider_anthropic.config import AnthropicConfig
from gm_chat_provider_anthropic.request import build_request

from gm_chat.providers.base import CallOptions, Message, ToolCallEvent, ToolDefinition
from gm_chat.testing.histories import QUESTION, TOOLS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MARK = {"type": "ephemeral"}
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
REDACTED = {"type": "redacted_thinking", "data": "b3BhcXVl"}
BUDGET = AnthropicConfig(thinking_budget=2048, max_tokens=4096)


def build(
    messages: Sequence[Message],
    tools: Sequence[ToolDefinition] = TOOLS,
    config: AnthropicConfig | None = None,
    **options: Any,
) -> Any:
    return build_request(config or AnthropicConfig(), messages, tools, CallOptions(**options))


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def asks(*ids: str, content: str = "", metadata: Mapping[str, Any] | None = None) -> Message:
    calls = tuple(ToolCallEvent(id, "query", {"manager": id}) for id in ids)
    return Message("assistant", content, calls, provider="anthropic", metadata=metadata or {})


def answers(id: str, value: Any = "[1]", **more: Any) -> Message:
    return Message("tool", value if isinstance(value, str) else json.dumps(value), tool_call_id=id, **more)


def thoughts(*placed: tuple[Mapping[str, Any], int, int]) -> dict[str, Any]:
    return {"thinking": [{"block": block, "characters": text, "calls": calls} for block, text, calls in placed]}


def contents(body: Any) -> list[tuple[str, list[Any]]]:
    """Roles and blocks, without the cache marks."""
    return [
        (
            message["role"],
            [
                {key: value for key, value in block.items() if key != "cache_control"}
                if block["type"] != "text"
                else block["text"]
                for block in message["content"]
            ],
        )
        for message in body["messages"]
    ]


class TestMessages:
    def test_a_question(self) -> None:
        assert build(QUESTION, [], AnthropicConfig(model="claude-x", max_tokens=7)) == {
            "model": "claude-x",
            "max_tokens": 7,
            "stream": True,
            "system": [text("Be brief.", cache_control=MARK)],
            "messages": [{"role": "user", "content": [text("Which parts are there?")]}],
        }

    def test_calls_and_results(self) -> None:
        history = [*QUESTION, asks("a", "b", content="I look."), answers("a"), answers("b", "[2]")]
        assert contents(build(history))[1:] == [
            (
                "assistant",
                [
                    "I look.",
                    {"type": "tool_use", "id": "a", "name": "query", "input": {"manager": "a"}},
                    {"type": "tool_use", "id": "b", "name": "query", "input": {"manager": "b"}},
                ],
            ),
            (
                "user",
                [
                    {"type": "tool_result", "tool_use_id": "a", "content": "[1]"},
                    {"type": "tool_result", "tool_use_id": "b", "content": "[2]"},
                ],
            ),
        ]

    def test_what_the_user_says_after_results_follows_them_in_one_message(self) -> None:
        *_, (role, blocks) = contents(build([*QUESTION, asks("a"), answers("a"), Message("user", "And?")]))
        assert (role, blocks[0]["type"], blocks[1]) == ("user", "tool_result", "And?")

    def test_a_system_message_between_two_of_the_user_leaves_one(self) -> None:
        history = [Message("user", "A"), Message("system", "Be brief."), Message("user", "B")]
        assert contents(build(history)) == [("user", ["A\n\nB"])]

    def test_the_first_message_is_the_users(self) -> None:
        assert contents(build([Message("assistant", "Hello."), Message("user", "Hi")])) == [
            ("user", ["[Earlier messages are left out.]"]),
            ("assistant", ["Hello."]),
            ("user", ["Hi"]),
        ]

    @pytest.mark.parametrize("history", [[], [Message("system", "Be brief.")], [*QUESTION, Message("assistant", "2 ")]])
    def test_the_last_message_is_the_users(self, history: list[Message]) -> None:
        assert contents(build(history))[-1] == ("user", ["[Please go on.]"])

    @pytest.mark.parametrize(
        ("name", "sent"),
        [("query", "query"), ("no such tool", "no_such_tool"), ("größe", "gr__e"), ("", "_"), ("x" * 99, "x" * 64)],
    )
    def test_an_invented_name_is_sent_in_letters_that_the_api_takes(self, name: str, sent: str) -> None:
        history = [*QUESTION, Message("assistant", "", (ToolCallEvent("a", name, {}),)), answers("a")]
        assert contents(build(history))[1][1][0]["name"] == sent

    @pytest.mark.parametrize(
        ("result", "is_error"),
        [
            ({"error": {"code": "unknown_field"}}, True),
            ({"error": None, "data": []}, False),
            ({"data": []}, False),
            (["error"], False),
        ],
    )
    def test_the_result_of_a_failed_call_is_marked(self, result: Any, is_error: bool) -> None:
        history = [*QUESTION, asks("a"), answers("a", result, tool_result=result)]
        (block,) = build(history)["messages"][-1]["content"]
        assert block.get("is_error", False) is is_error


class TestTools:
    @pytest.mark.parametrize(
        ("choice", "sent"), [("auto", None), ("none", {"type": "none"}), ("required", {"type": "any"})]
    )
    def test_the_choice(self, choice: str, sent: Any) -> None:
        body = build(QUESTION, tool_choice=choice)
        assert [tool["name"] for tool in body["tools"]] == ["query"]
        assert body.get("tool_choice") == sent

    def test_without_tools_those_of_the_history_are_declared_and_not_offered(self) -> None:
        history = [*QUESTION, asks("a"), answers("a"), Message("user", "Sum it up.")]
        body = build(history, [], tool_choice="required")
        assert [(tool["name"], tool["input_schema"]) for tool in body["tools"]] == [("query", {"type": "object"})]
        assert body["tool_choice"] == {"type": "none"}

    def test_their_order_is_that_of_the_host(self) -> None:
        tools = [ToolDefinition(name, name, {"type": "object"}) for name in ("b", "a", "c")]
        assert [tool["name"] for tool in build(QUESTION, tools)["tools"]] == ["b", "a", "c"]

    def test_a_response_format(self) -> None:
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
        body = build(QUESTION, [], response_format=schema)
        assert body["output_config"] == {"format": {"type": "json_schema", "schema": schema}}


class TestCaching:
    def test_tools_prompt_and_last_message_are_marked(self) -> None:
        tools = [*TOOLS, ToolDefinition("find_path", "Find a path.", {"type": "object"})]
        body = build([*QUESTION, asks("a"), answers("a")], tools)
        assert ["cache_control" in tool for tool in body["tools"]] == [False, True]
        assert [block.get("cache_control") for block in body["system"]] == [MARK]
        marks = [[block.get("cache_control") for block in message["content"]] for message in body["messages"]]
        assert marks == [[None], [None], [MARK]]

    def test_the_prompt_is_marked_not_the_summary_after_it(self) -> None:
        body = build([QUESTION[0], Message("system", "Earlier: hello."), Message("system", " "), QUESTION[1]])
        assert body["system"] == [text("Be brief.", cache_control=MARK), text("Earlier: hello.")]

    def test_a_single_call_without_tools_writes_no_cache_that_nobody_reads(self) -> None:
        body = build([*QUESTION, asks("a"), answers("a")], [])
        assert "cache_control" not in body["messages"][-1]["content"][-1]

    def test_a_longer_history_begins_with_the_same_bytes(self) -> None:
        history = [*QUESTION, asks("a", metadata=thoughts((THOUGHT, 0, 0))), answers("a")]
        longer = [*history, asks("b"), answers("b"), Message("user", "Answer now.")]
        first, second = (build(messages) for messages in (history, longer))
        assert (second["tools"], second["system"]) == (first["tools"], first["system"])
        assert contents(second)[: len(contents(first))] == contents(first)


class TestThoughts:
    def sent(self, *history: Message, config: AnthropicConfig = BUDGET, **options: Any) -> tuple[Any, list[Any]]:
        body = build([*QUESTION, *history], config=config, **options)
        return body.get("thinking"), [content for role, content in contents(body) if role == "assistant"]

    def test_they_return_unchanged_and_in_their_places(self) -> None:
        placed = thoughts((THOUGHT, 0, 0), (REDACTED, 2, 0), (THOUGHT, 4, 1))
        said = asks("a", "b", content="ab\n d", metadata=placed)
        use = {"type": "tool_use", "name": "query"}
        a, b = ({**use, "id": id, "input": {"manager": id}} for id in "ab")
        thinking, blocks = self.sent(said, answers("a"), answers("b"))
        assert thinking == {"type": "enabled", "budget_tokens": 2048}
        assert blocks == [[THOUGHT, "ab", REDACTED, a, THOUGHT, "d", b]], "the blank text between two is refused"

    def test_with_a_place_that_the_text_no_longer_has(self) -> None:
        placed = thoughts((THOUGHT, 99, 0), (REDACTED, -5, -1))
        _, ((first, *rest),) = self.sent(asks("a", content="ab", metadata=placed), answers("a"))
        assert first == "ab"
        assert [block["type"] for block in rest] == ["thinking", "redacted_thinking", "tool_use"]

    def test_an_instruction_after_the_results_belongs_to_the_turn(self) -> None:
        history = (asks("a", metadata=thoughts((THOUGHT, 0, 0))), answers("a"), Message("user", "Answer now."))
        _, ((first, _),) = self.sent(*history, tool_choice="none")
        assert first == THOUGHT

    def test_those_of_earlier_turns_do_not_return(self) -> None:
        placed = thoughts((THOUGHT, 0, 0))
        thinking, said = self.sent(
            *(asks("a", metadata=placed), answers("a")),
            *(Message("assistant", "One.", metadata=placed), Message("user", "And orders?")),
            *(asks("b", metadata=placed), answers("b")),
        )
        assert [[block if isinstance(block, str) else block["type"] for block in blocks] for blocks in said] == [
            ["tool_use"],
            ["One."],
            ["thinking", "tool_use"],
        ]
        assert thinking == {"type": "enabled", "budget_tokens": 2048}

    def test_the_models_that_think_unasked_get_theirs_too(self) -> None:
        thinking, ((first, _),) = self.sent(
            asks("a", metadata=thoughts((THOUGHT, 0, 0))), answers("a"), config=AnthropicConfig()
        )
        assert (thinking, first) == (None, THOUGHT)

    @pytest.mark.parametrize(
        "metadata",
        [
            {},
            {"thinking": "hm"},
            {"thinking": [{"text": "hm", "signature": "x"}]},
            thoughts(({"type": "thinking", "thinking": "hm"}, 0, 0)),
            thoughts(({**THOUGHT, "signature": None}, 0, 0)),
            thoughts(({**THOUGHT, "more": 1}, 0, 0)),
            thoughts(({"type": "text", "text": "hm"}, 0, 0)),
            thoughts(({"type": ["thinking"]}, 0, 0)),
            thoughts((THOUGHT, 0, 0), ({}, 0, 0)),
            {"thinking": [{"block": THOUGHT, "characters": "0", "calls": 0}]},
            {"thinking": [7]},
        ],
    )
    def test_what_another_adapter_wrote_is_none(self, metadata: dict[str, Any]) -> None:
        thinking, ((first,),) = self.sent(asks("a", metadata=metadata), answers("a"))
        assert first["type"] == "tool_use"
        assert thinking is None, "a turn that began without a thought goes on without"

    def test_a_forced_call_is_made_without_a_budget(self) -> None:
        assert self.sent(tool_choice="required") == (None, [])
        assert self.sent() == ({"type": "enabled", "budget_tokens": 2048}, [])

    def test_adaptive_thinking_is_left_to_the_model(self) -> None:
        config = AnthropicConfig(thinking_budget="adaptive")
        assert self.sent(asks("a"), answers("a"), config=config)[0] == {"type": "adaptive"}
