"""From neutral messages and tools to the body of a ``streamGenerateContent`` request."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from gm_chat.encoding import jsonable
from gm_chat.providers.arguments import strict_json
from gm_chat.providers.history import normalise
from gm_chat_provider_google.schema import gemini_schema
from gm_chat_provider_google.signatures import KEY, PLACEHOLDER, arranged, plain, signature_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gm_chat.providers.base import CallOptions, Message, ToolCallEvent, ToolDefinition
    from gm_chat_provider_google.config import GoogleConfig

__all__ = ["build_request", "wire_name"]

_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_.:-]")
_MAX_NAME: Final = 64
_MAX_EXACT: Final = 2**53
_MARKED: Final = re.compile(r"<(data-[0-9a-f]+)>(.*)</\1>(?:\n(.+))?", re.DOTALL)


def wire_name(name: str) -> str:
    """Return a tool's name as Gemini accepts it, in declarations and in the history alike."""
    usable = _NOT_IN_NAMES.sub("_", name)[:_MAX_NAME]
    return usable if usable[:1].isalpha() or usable[:1] == "_" else f"_{usable}"[:_MAX_NAME]


def build_request(
    config: GoogleConfig,
    messages: Sequence[Message],
    tools: Sequence[ToolDefinition],
    options: CallOptions,
    *,
    signed: bool = True,
) -> dict[str, Any]:
    """Return the request body, in the names of the wire.

    ``signed=False`` sends no thought signature of the history, but the placeholder with which Google lets calls pass
    that have none.

    An answer round (``tool_choice="none"``) keeps the tools, which begin the prefix that Gemini caches, and forbids
    calls; with a ``response_format`` it leaves them out, as models refuse to combine the two.
    """
    body: dict[str, Any] = {}
    writer = _HistoryWriter(config.model, signed=signed)
    for message in normalise(messages):
        writer.add(message)
    if writer.system:
        body["systemInstruction"] = {"parts": writer.system}
    body["contents"] = writer.contents
    if tools and not (options.tool_choice == "none" and options.response_format is not None):
        body["tools"] = [{"functionDeclarations": [_declaration(tool) for tool in tools]}]
        mode = {"none": "NONE", "required": "ANY"}.get(options.tool_choice)
        if mode is not None:
            body["toolConfig"] = {"functionCallingConfig": {"mode": mode}}
    generation = _generation(config, options)
    if generation:
        body["generationConfig"] = generation
    return body


def _declaration(tool: ToolDefinition) -> dict[str, Any]:
    declaration: dict[str, Any] = {"name": wire_name(tool.name), "description": tool.description}
    parameters = gemini_schema(tool.input_schema)
    if any(map(parameters.get, ("properties", "additionalProperties", "anyOf", "$ref"))):
        declaration["parametersJsonSchema"] = {"type": "object", **parameters}
    return declaration


def _generation(config: GoogleConfig, options: CallOptions) -> dict[str, Any]:
    generation: dict[str, Any] = {}
    if config.temperature is not None:
        generation["temperature"] = config.temperature
    if config.max_output_tokens is not None:
        generation["maxOutputTokens"] = config.max_output_tokens
    if config.thinking_budget is not None:
        generation["thinkingConfig"] = {"thinkingBudget": config.thinking_budget}
    if options.response_format is not None:
        generation["responseMimeType"] = "application/json"
        generation["responseJsonSchema"] = gemini_schema(options.response_format)
    return generation


class _HistoryWriter:
    """Writes normalised messages as contents, whose roles alternate between "user" and "model".

    The results of calls are a user's, in one content right after their calls; what the user says next joins them.
    """

    def __init__(self, model: str, *, signed: bool) -> None:
        self.system: list[dict[str, Any]] = []
        self.contents: list[dict[str, Any]] = []
        self._model = model
        self._signed = signed
        self._own_ids: set[str] = set()

    def add(self, message: Message) -> None:
        match message.role:
            case "system":
                self.system.append({"text": message.content})
            case "user":
                self._append("user", [{"text": message.content}])
            case "tool":
                self._append("user", [{"functionResponse": self._response(message)}])
            case _:
                calls = [self._call(call) for call in message.tool_calls]
                if self._signed:
                    self._append("model", arranged(message, calls, self._model))
                else:
                    if calls:
                        calls[0][KEY] = PLACEHOLDER
                    self._append("model", plain(message, calls))

    def _append(self, role: str, parts: Sequence[Mapping[str, Any]]) -> None:
        if self.contents and self.contents[-1]["role"] == role:
            self.contents[-1]["parts"].extend(parts)
        else:
            self.contents.append({"role": role, "parts": [*parts]})

    def _call(self, call: ToolCallEvent) -> dict[str, Any]:
        """Convert a call. Only an id that Gemini gave goes back: some of its servers know no ids, and refuse them."""
        function: dict[str, Any] = {"name": wire_name(call.name), "args": _exact(jsonable(call.args))}
        if call.metadata.get("id"):
            self._own_ids.add(call.id)
            function["id"] = call.id
        signature = signature_of(call, self._model) if self._signed else None
        return {"functionCall": function, **({KEY: signature} if signature else {})}

    def _response(self, message: Message) -> dict[str, Any]:
        response: dict[str, Any] = {
            "name": wire_name(message.tool_name or ""),
            "response": _result(message.content),
        }
        if message.tool_call_id in self._own_ids:
            response["id"] = message.tool_call_id
        return response


def _result(content: str) -> dict[str, Any]:
    """Return a tool's result as the object that Gemini wants.

    The keys ``output`` and ``error`` have a meaning there: a result with one of them among others is an ``output``.
    What is marked as data, ``<data-1f0c9a3b>{...}</data-1f0c9a3b>``, is so by a key of that name: as text in an object
    every quotation mark of it would be escaped. What stands behind it is a ``note``.
    """
    if marked := _MARKED.fullmatch(content):
        result = _result(marked[2])
        error = result.keys() == {"error"}
        note = {"note": marked[3]} if marked[3] else {}
        return {"error": {marked[1]: result["error"], **note}} if error else {marked[1]: result, **note}
    try:
        value = _exact(strict_json(content))
    except ValueError:
        value = content
    if (
        isinstance(value, dict)
        and value
        and (value.keys() == {"error"} or value.keys().isdisjoint({"error", "output"}))
    ):
        return value
    return {"output": value}


def _exact(value: Any) -> Any:
    """Write integers that a double cannot hold as text: Gemini reads arguments and results with doubles."""
    if isinstance(value, dict):
        return {key: _exact(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_exact(item) for item in value]
    return str(value) if isinstance(value, int) and abs(value) > _MAX_EXACT else value
