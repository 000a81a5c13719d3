"""From neutral messages and tools to the body of a chat completions request."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gm_chat.encoding import to_json
from gm_chat.providers.history import normalise

if TYPE_CHECKING:
    # The SDK's own types of the wire format; importing them at run time would import the SDK.
    from collections.abc import Sequence

    from openai.types.chat import ChatCompletionFunctionToolParam, ChatCompletionMessageParam
    from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming

    from gm_chat.providers.base import CallOptions, Message, ToolDefinition
    from gm_chat_provider_openai.config import OpenAIConfig

__all__ = ["build_request"]

_CALL_ID: Final = re.compile(r"\S{1,40}")
"""The API refuses ids of tool calls that are longer than 40 characters."""


def build_request(
    config: OpenAIConfig, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: CallOptions
) -> CompletionCreateParamsStreaming:
    """Return the request body.

    An answer round (``tool_choice="none"``) sends no tools at all: servers that imitate this API treat the choice
    "none" in various ways, and a model that sees no tool calls none. Without tools there is no ``tools`` key either,
    as an empty one is refused.
    """
    body: CompletionCreateParamsStreaming = {
        "model": config.model,
        "messages": [_message(message) for message in normalise(messages, call_id=_CALL_ID)],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if tools and options.tool_choice != "none":
        body["tools"] = [_tool(tool) for tool in tools]
        if options.tool_choice == "required":
            body["tool_choice"] = "required"
    if options.response_format is not None:
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": dict(options.response_format)},
        }
    if config.temperature is not None:
        body["temperature"] = config.temperature
    return body


def _tool(tool: ToolDefinition) -> ChatCompletionFunctionToolParam:
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.input_schema)},
    }


def _message(message: Message) -> ChatCompletionMessageParam:
    match message.role:
        case "system":
            return {"role": "system", "content": message.content}
        case "user":
            return {"role": "user", "content": message.content}
        case "tool":
            return {"role": "tool", "tool_call_id": message.tool_call_id or "", "content": message.content}
    if not message.tool_calls:
        return {"role": "assistant", "content": message.content}
    return {
        "role": "assistant",
        "content": message.content or None,
        "tool_calls": [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": to_json(call.args)}}
            for call in message.tool_calls
        ],
    }
