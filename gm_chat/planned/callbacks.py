"""A planned read outside a turn of the engine: its caller's functions in the place of the engine's parts.

Each callback may be a plain or an async function. Plain ones are run by ``run_sync`` where there is one, else at once.
"""

from __future__ import annotations

import inspect
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gm_chat.doors import current_runtime
from gm_chat.encoding import jsonable, to_json
from gm_chat.engine.messages import Call, assistant_message, tool_message
from gm_chat.planned.ports import ReadPorts, ToolRun
from gm_chat.planned.provider_calls import ProfileCaller
from gm_chat.planned_audit import emit_planned_audit_event
from gm_chat.plugin.errors import ToolError
from gm_chat.providers.base import Message

if TYPE_CHECKING:
    from gm_chat.planned.config import PlannedChatSettings
    from gm_chat.planned.provider_calls import ProviderRoundResult
    from gm_chat.planned.resolver import ManagerResolver
    from gm_chat.providers.base import ToolCallEvent, ToolDefinition

__all__ = ["CallbackPorts", "SchedulerCallbacks", "callback_ports"]


async def _read(name: str, args: Mapping[str, Any], context: object) -> Any:
    """Run a read tool of the process's chat, as the user of the scope."""
    return await current_runtime().read(name, args, context if isinstance(context, Mapping) else {})


def _nothing(*_: Any, **__: Any) -> None:
    """Keep, tell and limit nothing."""


@dataclass(frozen=True, slots=True)
class SchedulerCallbacks:
    """What a planned read does beside asking providers.

    ``execute_tool(name, args, scope)``
        runs a read tool. :class:`~gm_chat.plugin.ToolError`, or a mapping with the key ``error``, is told to the model.
    ``append_message(conversation, message)``
        keeps a message of the turn: a call, its result, the answer.
    ``emit_tool_called(user=, tool_name=, args=, result=)``
        hears of every result.
    ``emit_audit_event(event)``
        takes the events of :mod:`gm_chat.planned_audit`; ``None`` hands them to the chat's audit sinks.
    ``enforce_rate_limit(scope, usage=None)``
        is asked before each provider call and tool, and told the usage after each call; what it raises ends the turn.
    ``run_sync(function, args, kwargs)``
        runs a plain function where it may block.
    """

    execute_tool: Callable[[str, Mapping[str, Any], object], Any] = _read
    append_message: Callable[..., Any] = _nothing
    emit_tool_called: Callable[..., Any] = _nothing
    emit_audit_event: Callable[..., Any] | None = None
    enforce_rate_limit: Callable[..., Any] | None = _nothing
    run_sync: Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Awaitable[Any]] | None = None

    async def limit(self, scope: Mapping[str, Any], **usage: Any) -> None:
        """Ask, or tell, whoever limits the rate."""
        if self.enforce_rate_limit is not None:
            await self.hand(self.enforce_rate_limit, scope, **usage)

    async def hand(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a callback of either kind, and return what it gives."""
        if self.run_sync is not None and not inspect.iscoroutinefunction(function):
            return await self.run_sync(function, args, kwargs)
        value = function(*args, **kwargs)
        return await value if inspect.isawaitable(value) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class CallbackPorts(ReadPorts):
    """Ports over callbacks. ``said`` keeps the answer."""

    said: Callable[[str], Awaitable[None]]


def callback_ports(
    callbacks: SchedulerCallbacks,
    settings: PlannedChatSettings,
    *,
    scope: Mapping[str, Any],
    conversation: object,
    messages: list[Message],
    resolver: ManagerResolver | None,
    summary: object,
    clock: Callable[[], float],
) -> CallbackPorts:
    """Make ports of callbacks. Without a ``resolver`` executors see the ``summary`` of all managers."""
    tools = _Tools(callbacks, scope, conversation, messages)
    outline = "" if summary is None else f"Managers: {summary if isinstance(summary, str) else to_json(summary)}"
    return CallbackPorts(
        call=_Caller(ProfileCaller(settings), callbacks, scope),
        tools=tools,
        resolver=resolver,
        outline=lambda _: outline,
        tell=lambda kind, payload: emit_planned_audit_event(kind, payload, sink=callbacks.emit_audit_event),
        clock=clock,
        said=lambda text: tools.keep(Message("assistant", text)),
    )


class _Caller:
    """Asks the profiles, within the rate limit."""

    def __init__(self, caller: ProfileCaller, callbacks: SchedulerCallbacks, scope: Mapping[str, Any]) -> None:
        self._caller = caller
        self._callbacks = callbacks
        self._scope = scope

    async def __call__(
        self,
        role: str,
        messages: Sequence[Message],
        tools: Sequence[ToolDefinition],
        *,
        seconds: float,
        response_format: Mapping[str, Any] | None = None,
    ) -> ProviderRoundResult:
        await self._callbacks.limit(self._scope)
        result = await self._caller(role, messages, tools, seconds=seconds, response_format=response_format)
        await self._callbacks.limit(self._scope, usage=result.usage)
        return result


class _Tools:
    """The chat's read tools, run by the callback."""

    def __init__(
        self, callbacks: SchedulerCallbacks, scope: Mapping[str, Any], conversation: object, messages: list[Message]
    ) -> None:
        self._callbacks = callbacks
        self._scope = scope
        self._conversation = conversation
        self._messages = messages

    @property
    def definitions(self) -> Sequence[ToolDefinition]:
        """What the chat of this process can read."""
        return current_runtime().read_tools

    def mint(self, request: ToolCallEvent) -> Call:
        """Give a request an id of ours."""
        args: object = request.args  # a provider may give anything
        if isinstance(args, Mapping):
            return Call(uuid.uuid4().hex, request.name, args, None, request.id or None, request.metadata)
        problem = "the arguments must be a JSON object"
        return Call(uuid.uuid4().hex, request.name, {}, problem, request.id or None, request.metadata)

    async def run(self, call: Call) -> ToolRun:
        """Run a tool, keep the call and its result, and tell of it."""
        callbacks = self._callbacks
        await callbacks.limit(self._scope)
        try:
            result = jsonable(await callbacks.hand(callbacks.execute_tool, call.name, call.args, self._scope))
        except ToolError as error:
            result = error.as_result()
        ours = replace(call, provider_id=None, metadata=None)
        await self.keep(assistant_message("", [(call.id, ours)]))
        await self.keep(tool_message(call.id, call.name, result, key=call.id))
        user = self._scope.get("user")
        await callbacks.hand(callbacks.emit_tool_called, user=user, tool_name=call.name, args=call.args, result=result)
        return ToolRun(result, is_error=isinstance(result, Mapping) and "error" in result)

    async def keep(self, message: Message) -> None:
        """Add a message to the conversation."""
        self._messages.append(message)
        await self._callbacks.hand(self._callbacks.append_message, self._conversation, message)
