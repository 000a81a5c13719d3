"""The provider: drives the dialogue from the messages of the turn, so that it keeps no state of its own."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, ClassVar, Final

from gm_chat.providers.base import (
    MISSING,
    BaseLLMProvider,
    CallOptions,
    Capability,
    ChatEvent,
    DoneEvent,
    Message,
    TextChunkEvent,
    TokenUsage,
    ToolCallEvent,
    ToolDefinition,
)
from gm_chat_provider_offline.answers import interrupted, stuck
from gm_chat_provider_offline.dialogue import Call, converse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

__all__ = ["OfflineProvider", "next_step"]

_DATA: Final = re.compile(r"\A<managers>\n.*?\n</managers>\n\n", re.DOTALL)
"""What the application tells of its data before the question; it is asked for with tools here."""

NEEDED = frozenset({"search_managers", "get_manager_schema", "find_path", "query"})


class OfflineProvider(BaseLLMProvider):
    """Answers plain list, count and show questions by rules. Costs no tokens, opens no connection, ends always."""

    capabilities: ClassVar[frozenset[Capability]] = frozenset({"tool_choice"})

    async def complete(
        self, messages: list[Message], tools: list[ToolDefinition], *, options: CallOptions | None = None
    ) -> AsyncIterator[ChatEvent]:
        """Stream the next batch of calls, or the answer line by line."""
        may_call = options is None or options.tool_choice != "none"
        names = {tool.name for tool in tools} if may_call else set()
        step = next_step(messages if may_call else _without_request(messages), names)
        if isinstance(step, str):
            for line in step.splitlines(keepends=True):
                yield TextChunkEvent(line)
        else:
            for number, (name, args) in enumerate(step):
                yield ToolCallEvent(f"offline-{len(messages)}-{number}", name, args)
        yield DoneEvent(TokenUsage(), finish_reason="stop" if isinstance(step, str) else "tool_calls")


def next_step(messages: Sequence[Message], tools: frozenset[str] | set[str]) -> str | list[Call]:
    """Replay the dialogue over the results so far: the next calls, or the answer.

    A call that was made and has no result, or was refused, counts as an error: nothing is ever called twice in a
    turn, so the dialogue's length bounds the turn.
    """
    question, results = _turn(messages)
    dialogue = converse(question)
    try:
        calls = next(dialogue)
        while True:
            keys = [_key(name, args) for name, args in calls]
            missing = [call for call, key in zip(calls, keys, strict=True) if key not in results]
            if missing and not tools >= NEEDED:
                return interrupted() if results else stuck("I have no tools to look anything up with.", ())
            if missing:
                return missing
            calls = dialogue.send([results[key] for key in keys])
    except StopIteration as end:
        answer: str = end.value
        return answer


def _without_request(messages: Sequence[Message]) -> Sequence[Message]:
    """An answer round without the host's request to answer now: it stands under the user's role, after the results.

    Where calls are allowed a message there is a question: the turn before was interrupted.
    """
    is_request = [message.role for message in messages[-2:]] == ["tool", "user"]
    return messages[:-1] if is_request else messages


def _turn(messages: Sequence[Message]) -> tuple[str, dict[str, Any]]:
    """The last question, and the result of each call since, by name and arguments."""
    start = max((place for place, message in enumerate(messages) if message.role == "user"), default=-1)
    question = _DATA.sub("", messages[start].content) if start >= 0 else ""
    keys: dict[str, str] = {}
    results: dict[str, Any] = {}
    for message in messages[start + 1 :]:
        for call in message.tool_calls:
            keys[call.id] = _key(call.name, call.args)
            results.setdefault(
                keys[call.id], {"error": {"code": "interrupted", "message": "the call was not answered"}}
            )
        if message.role == "tool" and message.tool_call_id in keys:
            results[keys[message.tool_call_id]] = _result(message)
    return question, results


def _result(message: Message) -> Any:
    if message.tool_result is not MISSING:
        return message.tool_result
    try:
        return json.loads(message.content)
    except ValueError:
        return None


def _key(name: str, args: Mapping[str, Any]) -> str:
    return json.dumps([name, args], sort_keys=True)
