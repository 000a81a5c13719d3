"""The provider: it keeps nothing, repeats nothing, and always ends."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from typing import Any, ClassVar

import pytest
from gm_chat_provider_offline import OfflineProvider, plugin
from gm_chat_provider_offline.answers import FOOTER

from gm_chat.encoding import to_json
from gm_chat.plugin import CONTRACT_VERSION
from gm_chat.providers.base import (
    CallOptions,
    ChatEvent,
    DoneEvent,
    Message,
    TextChunkEvent,
    TokenUsage,
    ToolCallEvent,
    ToolDefinition,
)
from gm_chat.testing.hook_contracts import ProvidersContract

TOOLS = [
    ToolDefinition(name, name, {"type": "object"})
    for name in ("search_managers", "get_manager_schema", "find_path", "query", "mutate")
]


class TestHook(ProvidersContract):
    plugin: ClassVar[Any] = plugin


async def collect(messages: list[Message], tools: list[ToolDefinition] = TOOLS, **options: Any) -> list[ChatEvent]:
    provider = OfflineProvider.from_config({})
    chosen = CallOptions(**options) if options else None
    return [event async for event in provider.complete(messages, tools, options=chosen)]


def text_of(events: list[ChatEvent]) -> str:
    return "".join(event.content for event in events if isinstance(event, TextChunkEvent))


def calls_of(events: list[ChatEvent]) -> list[ToolCallEvent]:
    return [event for event in events if isinstance(event, ToolCallEvent)]


async def run(question: str, library: Any, before: list[Message] | None = None) -> tuple[str, list[Message]]:
    """Play the engine: run the calls, append the results, ask again."""
    messages = [Message("system", "Answer."), *(before or []), Message("user", question)]
    for _ in range(10):
        events = await collect(messages)
        assert isinstance(events[-1], DoneEvent)
        calls = calls_of(events)
        assert events[-1].finish_reason == ("tool_calls" if calls else "stop")
        if not calls:
            return text_of(events), messages
        messages.append(Message("assistant", text_of(events), tool_calls=tuple(calls)))
        for call in calls:
            result = library.call(call.name, dict(call.args))
            messages.append(
                Message("tool", to_json(result), tool_call_id=call.id, tool_name=call.name, tool_result=result)
            )
    raise AssertionError("it does not end")


async def test_a_turn(library: Any) -> None:
    answer, messages = await run("how many open loans has Acme?", library)
    assert answer.startswith("There are 2 loans where status is 'open', and member name contains 'Acme'.")
    assert answer.endswith(FOOTER)
    asked = [(call.name, to_json(call.args)) for message in messages for call in message.tool_calls]
    assert len(asked) == len(set(asked))
    ids = [call.id for message in messages for call in message.tool_calls]
    assert len(ids) == len(set(ids))


async def test_what_the_application_tells_of_its_data_is_not_the_question(library: Any) -> None:
    told = "<managers>\nManagers: BookManager.\n- BookManager: title\n</managers>\n\n"
    answer, _ = await run(f"{told}how many open loans has Acme?", library)
    assert answer.startswith("There are 2 loans where status is 'open', and member name contains 'Acme'.")


async def test_an_earlier_turn_is_another_question(library: Any) -> None:
    _, messages = await run("how many books", library)
    before = [*messages[1:], Message("assistant", "There are 4 books.")]
    answer, _ = await run("how many open loans?", library, before)
    assert answer.startswith("There are 3 loans where status is 'open'.")


async def test_results_come_from_text_where_no_value_is_given(library: Any) -> None:
    _, messages = await run("how many books", library)
    plain = [Message(item.role, item.content, item.tool_calls, item.tool_call_id, item.tool_name) for item in messages]
    assert text_of(await collect(plain)).startswith("There are 4 books.")


async def test_a_result_that_is_no_json_is_no_result(library: Any) -> None:
    _, messages = await run("how many books", library)
    broken = [
        Message("tool", "{", tool_call_id=item.tool_call_id, tool_name=item.tool_name) if item.role == "tool" else item
        for item in messages
    ]
    events = await collect(broken)
    assert calls_of(events) or text_of(events).endswith(FOOTER)


async def test_a_call_without_a_result_is_not_made_again(library: Any) -> None:
    _, messages = await run("how many books", library)
    unanswered = [item for item in messages if item.role != "tool" or item.tool_name != "query"]
    events = await collect(unanswered)
    assert not calls_of(events)
    assert text_of(events).startswith("The data could not be read: the call was not answered")


@pytest.mark.parametrize("last", [0, 1])
async def test_the_answer_round_makes_no_call(last: int, library: Any) -> None:
    messages = [Message("user", "how many books")]
    if last:
        call = calls_of(await collect(messages))[0]
        result = library.call(call.name, dict(call.args))
        messages += [Message("assistant", "", (call,)), Message("tool", "", (), call.id, call.name, result)]
    events = await collect(messages, tool_choice="none")
    assert not calls_of(events)
    assert text_of(events).startswith(("I have no tools", "I could not finish")[last])


REQUEST = Message("user", "Answer my question now, in words, from the results above. No more tool calls.")


async def test_the_request_to_answer_now_is_not_the_question(library: Any) -> None:
    _, messages = await run("how many books", library)
    assert text_of(await collect([*messages, REQUEST], tool_choice="none")).startswith("There are 4 books.")


async def test_a_question_after_an_interrupted_turn_is_one(library: Any) -> None:
    _, messages = await run("how many books", library)
    answer, _ = await run("how many open loans?", library, messages[1:])
    assert answer.startswith("There are 3 loans where status is 'open'.")


async def test_without_tools_it_says_so() -> None:
    events = await collect([Message("user", "how many books")], tools=[])
    assert text_of(events).startswith("I have no tools to look anything up with.")
    assert text_of(events).endswith(FOOTER)


async def test_without_a_question_it_greets(library: Any) -> None:
    events = await collect([])
    assert calls_of(events)[0].name == "search_managers"


async def test_text_streams_in_lines_and_costs_nothing(library: Any) -> None:
    _, messages = await run("list books", library)
    events = await collect(messages)
    assert len(events) > 4
    assert events[-1] == DoneEvent(TokenUsage(0, 0), finish_reason="stop")


def test_the_entry_point_is_the_plugin() -> None:
    (entry,) = [item for item in entry_points(group="gm_chat") if item.name == "offline"]
    assert entry.load() is plugin
    assert plugin.GM_CHAT_CONTRACT == CONTRACT_VERSION
    (spec,) = plugin.gm_chat_providers()
    assert spec.name == "offline"
    assert isinstance(spec.build(None), OfflineProvider)
    assert spec.capabilities == {"tool_choice"}


def test_importing_it_imports_no_django() -> None:
    code = (
        "import sys, gm_chat_provider_offline.plugin\nprint(sorted({'django', 'graphql', 'httpx'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
