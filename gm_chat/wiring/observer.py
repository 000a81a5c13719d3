"""What happens in a turn, told to signals, to plugins and to the audit trail."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from gm_chat import signals
from gm_chat.persistence.threads import run_db
from gm_chat.planned_audit import planned_audit_event

if TYPE_CHECKING:
    from django.dispatch import Signal

    from gm_chat.engine.audit import AuditTrail
    from gm_chat.engine.events import Error
    from gm_chat.host import PluginHost
    from gm_chat.plugin import TurnContext, TurnOutcome

__all__ = ["Observer"]

logger = logging.getLogger(__name__)

_OUTCOMES: Final = frozenset({"executed", "cancelled", "failed"})


class Observer:
    """Implements ``engine.ports.TurnObserver``. Receivers and plugins run off the event loop and may use the ORM.

    Nothing is hopped to a thread for nobody: a signal without receivers costs nothing.
    """

    def __init__(self, host: PluginHost, audit: AuditTrail) -> None:
        self._host = host
        self._audit = audit

    async def turn_started(self, context: TurnContext) -> None:
        """Send ``chat_message_received`` and tell the plugins."""
        await self._audit.user_message(context)
        await self._send(
            signals.chat_message_received,
            user=context.actor.user,
            message=context.text,
            conversation_id=context.conversation_id,
        )
        await self._tell("gm_chat_turn_started", self._host.turn_started, context)

    async def tool_started(
        self, context: TurnContext, call_id: str, name: str, args: Mapping[str, Any], *, approved: bool = False
    ) -> None:
        """Audit the call. Raises if a required sink does not take it: the tool must then not run."""
        await self._audit.tool_call(context, name, args, call_id=call_id, approved=approved)

    async def tool_finished(
        self, context: TurnContext, call_id: str, name: str, args: Mapping[str, Any], result: Any
    ) -> None:
        """Send ``chat_tool_called``, and ``chat_mutation_executed`` for a mutation that has an outcome."""
        await self._audit.tool_result(context, name, result, call_id=call_id)
        user = context.actor.user
        await self._send(signals.chat_tool_called, user=user, tool_name=name, args=args, result=result)
        if name == "mutate" and isinstance(result, Mapping) and result.get("status") in _OUTCOMES:
            await self._send(
                signals.chat_mutation_executed,
                user=user,
                mutation=args.get("mutation"),
                input=args.get("input"),
                result=result,
            )

    def planned(self, context: TurnContext, event_type: str, payload: Mapping[str, Any]) -> None:
        """Audit what may be told of a planned turn."""
        if self._audit.hears_planned:
            event = planned_audit_event(event_type, payload)
            if event is not None:
                self._audit.planned(event, context)

    async def turn_failed(self, context: TurnContext, error: BaseException, public: Error) -> None:
        """Send ``chat_error`` with the exact error and the correlation id that the client got."""
        details = {
            "transport": context.transport,
            "turn_id": context.turn_id,
            "conversation_id": context.conversation_id,
            "code": public.code,
            **public.details,
        }
        await self._send(signals.chat_error, user=context.actor.user, error=error, context=details)

    async def turn_paused(self, context: TurnContext, outcome: TurnOutcome) -> None:
        """Tell the audit trail what was said so far, and the plugins."""
        await self._audit.assistant_message(context, outcome.text)
        await self._tell("gm_chat_turn_paused", self._host.turn_paused, context, outcome)

    async def turn_finished(self, context: TurnContext, outcome: TurnOutcome) -> None:
        """Tell the audit trail what was said since, and the plugins."""
        await self._audit.assistant_message(context, outcome.text)
        await self._tell("gm_chat_turn_finished", self._host.turn_finished, context, outcome)

    async def _send(self, signal: Signal, **arguments: Any) -> None:
        if signal.has_listeners():
            await self._guard(lambda: signal.send_robust(sender=Observer, **arguments))

    async def _tell(self, hook: str, call: Callable[..., None], *arguments: Any) -> None:
        if self._host.implementing(hook):
            await self._guard(lambda: call(*arguments))

    async def _guard(self, call: Callable[[], Any]) -> None:
        try:
            await run_db(_contained, call)
        except Exception:
            logger.exception("telling the observers of a turn failed")


def _contained(call: Callable[[], Any]) -> None:
    """Call the project's own code. What Django's robust dispatch lets pass would cancel the turn, or end the server."""
    try:
        call()
    except (SystemExit, asyncio.CancelledError):
        logger.exception("an observer of a turn tried to end it")
