"""From neutral messages and tools to the body of a request to ``/api/chat``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gm_chat.encoding import jsonable
from gm_chat.providers.history import normalise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gm_chat.providers.base import CallOptions, Message, ToolDefinition
    from gm_chat_provider_ollama.config import OllamaConfig

__all__ = ["build_request"]


def build_request(
    config: OllamaConfig, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: CallOptions
) -> dict[str, Any]:
    """Return the request body.

    Ollama has no ``tool_choice``: an answer round ("none") sends no tools, and "required" cannot be asked for. The
    tools' schemas go out whole; the SDK's own model of a tool would drop nested properties and
    ``additionalProperties``.
    """
    body: dict[str, Any] = {
        "model": config.model,
        "messages": [_message(message) for message in normalise(messages)],
        "stream": True,
    }
    if tools and options.tool_choice != "none":
        body["tools"] = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.input_schema)},
            }
            for tool in tools
        ]
    if options.response_format is not None:
        body["format"] = dict(options.response_format)
    settings = {"num_ctx": config.num_ctx or None, "temperature": config.temperature}
    if given := {name: value for name, value in settings.items() if value is not None}:
        body["options"] = given
    return body


def _message(message: Message) -> dict[str, Any]:
    """Convert one message. Arguments go as objects, and results are told apart by order and the tool's name."""
    if message.role == "tool":
        return {"role": "tool", "tool_name": message.tool_name or "", "content": message.content}
    converted: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        converted["tool_calls"] = [
            {"function": {"name": call.name, "arguments": jsonable(call.args)}} for call in message.tool_calls
        ]
    return converted
