"""The only place where a turn happens: admitted, opened, worked by a loop, closed, and only then ended.

The store has the turn before its last event is released, so that the next message sees it. Whatever happens, an
accepted turn is closed exactly once, with the text that came so far and the tokens that were spent.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from gm_chat.engine.events import Done, Error, Event, TextChunk
from gm_chat.engine.failures import CANCELLED, TurnStopped, unexpected
from gm_chat.engine.history import to_messages
from gm_chat.engine.limits import TurnLimits
from gm_chat.engine.ports import ClosedTurn, OpenedTurn, TurnRequest, TurnServices
from gm_chat.engine.prompt import data_outline, system_prompt
from gm_chat.engine.state import Loop, TurnState
from gm_chat.engine.tools import Toolbox
from gm_chat.engine.transcript import Transcript
from gm_chat.plugin.context import TurnContext, TurnOutcome
from gm_chat.plugin.decisions import Action, Verdict
from gm_chat.providers.base import Message, TokenUsage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine

__all__ = ["run_turn"]

T = TypeVar("T")

logger = logging.getLogger("gm_chat.engine")


async def run_turn(
    request: TurnRequest, services: TurnServices, *, loop: Loop, turn_id: str | None = None
) -> AsyncGenerator[Event, None]:
    """Answer one message: yield the turn's events, the last of which is one ``Done`` or one ``Error``.

    Cancelling it, or closing it early, closes the turn as cancelled and passes on; the caller then adds
    :data:`~gm_chat.engine.failures.CANCELLED` to whatever stream it serves. No other exception leaves.
    """
    turn = _Turn(request, services, turn_id or services.new_id())
    ended_by: Exception | None = None
    try:
        await turn.open()
        state = await turn.prepare()
        async with aclosing(loop(state)) as events:
            async for event in events:
                turn.events.append(event)
                yield event
    except (asyncio.CancelledError, GeneratorExit) as stop:
        await _to_the_end(turn.close(stop))
        raise
    except Exception as error:  # noqa: BLE001 (the boundary that turns every failure into one public event)
        ended_by = error
    yield await _to_the_end(turn.close(ended_by))


class _Turn:
    """The course of one turn; :meth:`close` ends what :meth:`open` began, wherever between them it broke."""

    def __init__(self, request: TurnRequest, services: TurnServices, turn_id: str) -> None:
        self.events: list[Event] = []
        self._request = request
        self._services = services
        self._turn_id = turn_id
        self._opened: OpenedTurn | None = None
        self._state: TurnState | None = None

    @property
    def context(self) -> TurnContext:
        request = self._request
        conversation_id = None if self._opened is None else self._opened.conversation_id
        return TurnContext(
            self._turn_id, conversation_id, request.actor, request.text, request.transport, request.scope
        )

    async def open(self) -> None:
        """Ask for permission and let the store accept the message."""
        request = self._request
        decision = await self._services.permit(Action("message"), request.actor, {"scope": request.scope})
        if decision.verdict is Verdict.DENY:
            raise TurnStopped("permission_denied")
        await _to_the_end(self._open_in_store())
        await self._services.observer.turn_started(self.context)

    async def _open_in_store(self) -> None:
        limit = self._services.settings.max_recent_messages
        self._opened = await self._services.store.open_turn(self._request, self._turn_id, max_messages=limit)

    async def prepare(self) -> TurnState:
        """Choose the provider and the tools, and write down what the model is to read."""
        services, context = self._services, self.context
        provider = await services.provider_for(context)
        tools = Toolbox(await services.tools_for(context), services=services, context=context)
        prompt = system_prompt(
            project=services.settings.system_prompt,
            sections=await services.prompt_sections(context),
            now=datetime.now(tz=UTC).astimezone(),
            with_tools=bool(tools.definitions),
            data=data_outline(await services.managers.view(context.actor), context.text) if tools.definitions else "",
        )
        history = () if self._opened is None else self._opened.history
        messages = [
            Message("system", prompt),
            *to_messages(history, provider=provider.name),
            Message("user", context.text),
        ]
        self._state = TurnState(
            context=context,
            services=services,
            provider=provider,
            tools=tools,
            transcript=Transcript(messages, provider=provider.name),
            limits=TurnLimits.from_settings(services.settings),
        )
        return self._state

    async def close(self, ended_by: BaseException | None) -> Done | Error:
        """Leave the turn in the store, tell the observer, and return the event that ends the stream."""
        state = self._state
        usage = TokenUsage() if state is None else state.usage
        terminal = await self._judge(ended_by, usage)
        if self._opened is None:
            return terminal
        closed = ClosedTurn(
            turn_id=self._turn_id,
            conversation_id=self._opened.conversation_id,
            messages=() if state is None else state.transcript.rows,
            outcome=self._outcome(terminal, usage),
            usage=usage,
            events=(*self.events, terminal),
        )
        try:
            await self._services.store.close_turn(closed)
        except Exception as error:  # noqa: BLE001 (a turn that cannot be kept has failed, whatever it said)
            terminal = await self._judge(error, usage)
        try:
            await self._services.observer.turn_finished(self.context, self._outcome(terminal, usage))
        except Exception as error:  # noqa: BLE001 (a required audit sink that did not take it fails the turn)
            terminal = unexpected(error, self._turn_id)
        return terminal

    async def _judge(self, ended_by: BaseException | None, usage: TokenUsage) -> Done | Error:
        match ended_by:
            case None:
                return Done(usage)
            case TurnStopped():
                return ended_by.event
            case asyncio.CancelledError() | GeneratorExit():
                return CANCELLED
        public = unexpected(ended_by, self._turn_id)
        try:
            await self._services.observer.turn_failed(self.context, ended_by, public)
        except Exception:
            logger.exception("the observer of turn %s failed", self._turn_id)
        return public

    def _outcome(self, terminal: Done | Error, usage: TokenUsage) -> TurnOutcome:
        text = "".join(event.content for event in self.events if isinstance(event, TextChunk))
        state: Literal["done", "cancelled", "failed"] = "done"
        code = None
        if isinstance(terminal, Error):
            state, code = "cancelled" if terminal is CANCELLED else "failed", terminal.code
        return TurnOutcome(state, code, usage.input_tokens, usage.output_tokens, text)


async def _to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Await work that must not stop half-way: a cancellation meanwhile is raised after it, not into it."""
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
