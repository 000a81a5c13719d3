"""From neutral messages and tools to the body of a messages request."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal

from gm_chat.encoding import jsonable
from gm_chat.providers.history import normalise
from gm_chat_provider_anthropic.thinking import read_thoughts

if TYPE_CHECKING:
    # The SDK's own types of the wire format; importing them at run time would import the SDK.
    from collections.abc import Iterator

    from anthropic.types import (
        CacheControlEphemeralParam,
        MessageParam,
        RedactedThinkingBlockParam,
        TextBlockParam,
        ThinkingBlockParam,
        ThinkingConfigParam,
        ToolParam,
        ToolResultBlockParam,
        ToolUseBlockParam,
    )
    from anthropic.types.message_create_params import MessageCreateParamsStreaming

    from gm_chat.providers.base import CallOptions, Message, ToolCallEvent, ToolDefinition
    from gm_chat_provider_anthropic.config import AnthropicConfig

    Block = TextBlockParam | ToolUseBlockParam | ToolResultBlockParam | ThinkingBlockParam | RedactedThinkingBlockParam
    Turn = tuple[Literal["user", "assistant"], list[Block]]

__all__ = ["build_request"]

_CALL_ID: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_NOT_IN_A_NAME: Final = re.compile(r"[^a-zA-Z0-9_-]")
_CACHED: Final[CacheControlEphemeralParam] = {"type": "ephemeral"}
_EARLIER: Final = "[Earlier messages are left out.]"
_GO_ON: Final = "[Please go on.]"


def build_request(
    config: AnthropicConfig, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: CallOptions
) -> MessageCreateParamsStreaming:
    """Return the request body.

    What the API demands and a history may lack: the roles alternate, beginning and ending with a user's message (an
    assistant's at the end would be continued, which newer models refuse); results come first in the message after
    their calls; tools are declared where calls were made, in an answer round (``tool_choice="none"``) too.

    The prompt is cached up to the tools, up to the system prompt and, where tools make another round likely, up to
    the last message: three of the four marks that the API allows.
    """
    history = normalise([message for message in messages if message.role != "system"], call_id=_CALL_ID)
    turns = _turns(history)
    if tools:
        turns[-1][1][-1]["cache_control"] = _CACHED  # type: ignore[typeddict-unknown-key]  # a user's, so no thought
    body: MessageCreateParamsStreaming = {
        "model": config.model,
        "max_tokens": config.max_tokens,
        "messages": [_turn(role, blocks) for role, blocks in turns],
        "stream": True,
    }
    if system := _system(messages):
        body["system"] = system
    if declared := _tools(tools) or _used_tools(history):
        declared[-1]["cache_control"] = _CACHED
        body["tools"] = declared
        if options.tool_choice == "none" or not tools:
            body["tool_choice"] = {"type": "none"}
        elif options.tool_choice == "required":
            body["tool_choice"] = {"type": "any"}
    if options.response_format is not None:
        body["output_config"] = {"format": {"type": "json_schema", "schema": dict(options.response_format)}}
    thinking = _thinking(config, turns, forced=options.tool_choice == "required")
    if thinking is not None:
        body["thinking"] = thinking
    return body


def _turn(role: Literal["user", "assistant"], blocks: list[Block]) -> MessageParam:
    return {"role": "user", "content": blocks} if role == "user" else {"role": "assistant", "content": blocks}


def _system(messages: Sequence[Message]) -> list[TextBlockParam]:
    """One block per message, since what follows the first one, say a summary, changes more often than the prompt."""
    blocks = [_text(part.content) for item in messages if item.role == "system" for part in normalise([item])]
    if blocks:
        blocks[0]["cache_control"] = _CACHED
    return blocks


def _tools(tools: Sequence[ToolDefinition]) -> list[ToolParam]:
    return [
        {"name": tool.name, "description": tool.description, "input_schema": dict(tool.input_schema)} for tool in tools
    ]


def _used_tools(history: Sequence[Message]) -> list[ToolParam]:
    """Declare the tools of the history's calls in name only, as the API refuses calls of undeclared ones."""
    names = {_name(call.name) for message in history for call in message.tool_calls}
    return [{"name": name, "input_schema": {"type": "object"}} for name in sorted(names)]


def _turns(history: Sequence[Message]) -> list[Turn]:
    asked = _question(history)
    turns: list[Turn] = []
    for position, message in enumerate(history):
        role: Literal["user", "assistant"] = "assistant" if message.role == "assistant" else "user"
        if role == "assistant" and not turns:
            turns.append(("user", [_text(_EARLIER)]))
        if not turns or turns[-1][0] != role:
            turns.append((role, []))
        turns[-1][1].extend(_blocks(message, running=position > asked))
    if not turns or turns[-1][0] == "assistant":
        turns.append(("user", [_text(_GO_ON)]))
    return turns


def _question(history: Sequence[Message]) -> int:
    """Return where the running turn began: what is said right after a result is an instruction within the turn."""
    for position in reversed(range(len(history))):
        if history[position].role == "user" and (position == 0 or history[position - 1].role != "tool"):
            return position
    return -1


def _blocks(message: Message, *, running: bool) -> Iterator[Block]:
    """Yield a message's content; its thoughts, each in its place, only if it belongs to the running turn."""
    if message.role == "tool":
        yield _result(message)
        return
    character = call = 0
    for thought in read_thoughts(message.metadata) if running else ():
        end, last = max(character, thought.characters), max(call, thought.calls)
        yield from _said(message.content[character:end], message.tool_calls[call:last])
        yield thought.block
        character, call = end, last
    yield from _said(message.content[character:], message.tool_calls[call:])


def _said(text: str, calls: Sequence[ToolCallEvent]) -> Iterator[TextBlockParam | ToolUseBlockParam]:
    if text.strip():
        yield _text(text)
    for call in calls:
        yield {"type": "tool_use", "id": call.id, "name": _name(call.name), "input": jsonable(call.args)}


def _text(text: str) -> TextBlockParam:
    return {"type": "text", "text": text}


def _result(message: Message) -> ToolResultBlockParam:
    block: ToolResultBlockParam = {
        "type": "tool_result",
        "tool_use_id": message.tool_call_id or "",
        "content": message.content,
    }
    if isinstance(message.tool_result, Mapping) and message.tool_result.get("error"):
        block["is_error"] = True
    return block


def _name(name: str) -> str:
    """The API checks the names of past calls too, of which a model may have invented any."""
    return _NOT_IN_A_NAME.sub("_", name)[:64] or "_"


def _thinking(config: AnthropicConfig, turns: Sequence[Turn], *, forced: bool) -> ThinkingConfigParam | None:
    """Return how the model shall think, if it may.

    With a budget it may not where a call is forced, nor in the middle of a turn that began without a thought: another
    provider's, say, or one from before the budget was configured.
    """
    budget = config.thinking_budget
    if budget is None:
        return None
    if budget == "adaptive":
        return {"type": "adaptive"}
    goes_on = any(block["type"] == "tool_result" for block in turns[-1][1])
    if forced or (goes_on and turns[-2][1][0]["type"] not in ("thinking", "redacted_thinking")):
        return None
    return {"type": "enabled", "budget_tokens": budget}
