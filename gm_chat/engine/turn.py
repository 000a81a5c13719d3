"""The only place where a turn happens: accepted, worked by a loop, closed, and only then ended or paused.

The store has the turn before its last event is released, so that the next message sees it. Whatever happens, an
accepted turn is closed exactly once, with the text that came so far and the tokens that were spent. A turn that goes
on after its user's word is the same turn: it settles the pending mutation, and then takes the path of every other.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, Self

from gm_chat.engine.confirmation import TurnPaused, UsersWord
from gm_chat.engine.events import ConfirmMutation, Done, Error, TextChunk
from gm_chat.engine.failures import CANCELLED, TurnStopped, report
from gm_chat.engine.history import to_messages
from gm_chat.engine.limits import TurnLimits
from gm_chat.engine.log import EventLog
from gm_chat.engine.messages import tool_row
from gm_chat.engine.ports import ClosedTurn, PendingMutation, Progress, StoredMessage
from gm_chat.engine.prompt import data_outline, data_overview, instructions, system_prompt
from gm_chat.engine.shielding import to_the_end
from gm_chat.engine.state import WRITE_PATIENCE, Loop, TurnState
from gm_chat.engine.summary import extend_summary, recalled
from gm_chat.engine.tools import Answer, Toolbox
from gm_chat.engine.transcript import Transcript
from gm_chat.plugin.context import TurnContext, TurnOutcome
from gm_chat.providers.base import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractAsyncContextManager

    from gm_chat.engine.events import Event
    from gm_chat.engine.past import DueSummary
    from gm_chat.engine.ports import (
        ConfirmRequest,
        OpenedTurn,
        ResumedTurn,
        TurnRequest,
        TurnServices,
    )
    from gm_chat.engine.rate_limit import Allowance
    from gm_chat.managers.api import ManagerView
    from gm_chat.providers.base import TokenUsage

__all__ = ["BREATH", "Turn", "TurnTimeoutError"]

BREATH: Final = 32
"""Events after which a turn, and who follows it, lets others run: what is there at once is not waited for."""


class TurnTimeoutError(Exception):
    """A turn worked longer than ``turn_timeout_seconds``. Clients learn no more than ``chat_error``."""


class Turn:
    """The course of an accepted turn, or of the part of it that follows a pause. :meth:`run` runs it once."""

    def __init__(
        self,
        services: TurnServices,
        context: TurnContext,
        history: Sequence[StoredMessage],
        *,
        may_pause: bool,
        allowance: Allowance,
        word: UsersWord | None = None,
        summary: str = "",
        due: DueSummary | None = None,
    ) -> None:
        """Use :meth:`accepted` or :meth:`resumed`."""
        self.context = context
        self.log = EventLog(context.turn_id, () if word is None else word.resumed.events)
        self.last: Event | None = None
        """How the turn ended or paused, once it is closed. Whoever runs it adds it to the log when all is over."""
        self._services = services
        self._history = history
        self._summary = summary
        self._due = due
        self._may_pause = may_pause
        self.allowance: Final = allowance
        self._word = word
        self._earlier = Progress() if word is None else word.resumed.pending.progress
        self.resumed_after: Final = len(self.log)
        """The ``seq`` of the pause before this part of the turn; 0 for a fresh one."""
        self._began = time.monotonic()
        self._ends_at: float | None = None
        self._state: TurnState | None = None
        self._tools: Toolbox | None = None

    @classmethod
    def accepted(
        cls, services: TurnServices, request: TurnRequest, turn_id: str, opened: OpenedTurn, allowance: Allowance
    ) -> Self:
        """Begin with a message that the store has accepted."""
        context = TurnContext(
            turn_id, opened.conversation_id, request.actor, request.text, request.transport, request.scope
        )
        history = [*opened.history, StoredMessage(role="user", content=request.text)]
        # Plain HTTP has no way to ask in the middle of its one answer.
        may_pause = request.transport != "http"
        return cls(
            services,
            context,
            history,
            may_pause=may_pause,
            allowance=allowance,
            summary=opened.summary,
            due=opened.due,
        )

    @classmethod
    def resumed(
        cls,
        services: TurnServices,
        request: ConfirmRequest,
        resumed: ResumedTurn,
        allowance: Allowance,
        *,
        stop: bool = False,
    ) -> Self:
        """Go on with a turn whose pending mutation was claimed. ``stop`` ends it once that is settled."""
        context = TurnContext(
            resumed.turn_id, resumed.conversation_id, request.actor, resumed.text, request.transport, request.scope
        )
        word = UsersWord(resumed, request.approved, stop)
        return cls(
            services,
            context,
            resumed.history,
            may_pause=True,
            allowance=allowance,
            word=word,
            summary=resumed.summary,
        )

    @property
    def usage(self) -> TokenUsage:
        """The tokens of the whole turn so far."""
        return self._earlier.usage if self._state is None else self._state.usage

    async def run(
        self,
        loop: Loop,
        heartbeat: AbstractAsyncContextManager[None],
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        """Work the turn and close it, whatever happens. Raises nothing but a cancellation, and that when it is closed.

        ``heartbeat`` (:func:`~gm_chat.engine.pulse.pulsing`) surrounds the work, and is over before the close.
        ``is_stopped`` tells of a cancellation that a provider or a tool has swallowed.
        """
        ended_by: BaseException | None = None
        allowed = self._services.settings.turn_timeout_seconds
        left = None if allowed is None else max(0.0, allowed - self._earlier.seconds)
        limit = asyncio.timeout(left)
        self._ends_at = None if left is None else time.monotonic() + left
        try:
            async with heartbeat, limit:
                await self._work(loop, is_stopped)
        except asyncio.CancelledError as stop:
            await to_the_end(self._close(stop))
            raise
        except (GeneratorExit, KeyboardInterrupt):
            raise  # the process ends
        except BaseException as error:  # noqa: BLE001 (the boundary that turns every failure into one public event)
            ended_by = error  # an SDK's SystemExit, too, which would end the server and all of its turns
            if limit.expired():
                ended_by = TurnTimeoutError(f"turn {self.context.turn_id!r} worked longer than {allowed:g} s")
        await to_the_end(self._close(ended_by))

    async def _work(self, loop: Loop, is_stopped: Callable[[], bool]) -> None:
        answer: Answer | None = None
        if self._word is None:
            await self._services.observer.turn_started(self.context)
        else:
            answer = await to_the_end(self._settle(self._word), patience=WRITE_PATIENCE)
            if answer.failure is not None:
                raise answer.failure
        state = await self._prepare()
        if answer is not None:
            state.go_on([answer])
        async with aclosing(loop(state)) as events:
            async for event in events:
                self.log.append(event)
                if not len(self.log) % BREATH:
                    await asyncio.sleep(0)
                if is_stopped():
                    raise asyncio.CancelledError

    async def _settle(self, word: UsersWord) -> Answer:
        """Learn what the user's word came to, and tell everybody: store, history, client, observer."""
        answer = await word.answer(self._services, self.context, self._toolbox)
        call = answer.call
        self._history = [*self._history, tool_row(call, answer.result)]
        self.log.append(answer.event)
        await self._services.observer.tool_finished(self.context, call.id, call.name, call.args, answer.result)
        return answer

    async def _toolbox(self) -> Toolbox:
        if self._tools is None:
            specs = await self._services.tools_for(self.context)
            self._tools = Toolbox(specs, services=self._services, context=self.context)
        return self._tools

    async def _prepare(self) -> TurnState:
        """Choose the provider and the tools, and write down what the model is to read."""
        services, context = self._services, self.context
        provider = await services.provider_for(context)
        tools = await self._toolbox()
        now = datetime.now(tz=UTC).astimezone()
        project, sections = services.settings.system_prompt, await services.prompt_sections(context)
        view = await self._view(tools)
        overview = "" if view is None else data_overview(view)
        prompt = system_prompt(
            project=project, sections=sections, now=now, with_tools=bool(tools.definitions), data=overview
        )
        messages = [Message("system", prompt), *to_messages(self._history, provider=provider.name)]
        state = self._state = TurnState(
            context=context,
            services=services,
            provider=provider,
            tools=tools,
            transcript=Transcript(messages, provider=provider.name),
            limits=TurnLimits.from_settings(services.settings),
            allowance=self.allowance,
            may_pause=self._may_pause,
            ends_at=self._ends_at,
            instructions=instructions(project=project, sections=sections, now=now),
            outline=str if view is None else partial(data_outline, view, context.text),
            has_overview=bool(overview),
        )
        if self._word is not None:
            state.count_on(self._earlier)
        summary = self._summary
        if self._due is not None:
            summary = await extend_summary(state, self._due, summary)
        state.transcript.recall(recalled(summary))
        tools.recall(self._history)
        if summary:  # a model wrote it from what records say, too
            tools.note_records()
        return state

    async def _view(self, tools: Toolbox) -> ManagerView | None:
        """What the model is told of; nothing if it has no tools to get at it."""
        if not tools.definitions:
            return None
        view = await tools.managers.view(self.context.actor)
        if self._services.settings.taint_mutations and any(info.from_data for info in view):
            tools.note_records()  # its words are before the model from now on
        return view

    async def _close(self, ended_by: BaseException | None) -> None:
        """Leave the turn in the store, tell the observer, and set :attr:`last`."""
        services, context = self._services, self.context
        last = await self._judge(ended_by)
        closed = ClosedTurn(
            turn_id=context.turn_id,
            conversation_id=context.conversation_id,
            messages=() if self._state is None else self._state.transcript.rows,
            outcome=self._outcome(last),
            usage=self.usage,
            events=(*self.log.events, last),
            pending=self._pending(last) if isinstance(last, ConfirmMutation) else None,
            spent=self._earlier.spent if self._state is None else self._state.spent,
        )
        try:
            await services.store.close_turn(closed)
        except Exception as error:  # noqa: BLE001 (a turn that cannot be kept has failed, whatever it said)
            last = await report(services.observer, context, error)
        observer = services.observer
        try:
            tell = observer.turn_paused if isinstance(last, ConfirmMutation) else observer.turn_finished
            await tell(context, self._outcome(last))
        except Exception as error:  # noqa: BLE001 (a required audit sink that did not take it fails the turn)
            last = await report(observer, context, error)
        self.last = last

    async def _judge(self, ended_by: BaseException | None) -> Done | Error | ConfirmMutation:
        match ended_by:
            case None:
                return Done(self.usage, None if self._state is None else self._state.orchestration)
            case TurnPaused() | TurnStopped():
                return ended_by.event
            case asyncio.CancelledError():
                return CANCELLED
        return await report(self._services.observer, self.context, ended_by)

    def _pending(self, asked: ConfirmMutation) -> PendingMutation:
        settings = self._services.settings
        seconds = self._earlier.seconds + time.monotonic() - self._began
        return PendingMutation(
            id=asked.id,
            mutation=asked.mutation,
            input=asked.input,
            expires_at=datetime.now(tz=UTC) + timedelta(seconds=settings.confirm_timeout_seconds),
            progress=self._earlier if self._state is None else self._state.progress(seconds),
            turn_id=self.context.turn_id,
            preview=asked.preview,
        )

    def _outcome(self, last: Done | Error | ConfirmMutation) -> TurnOutcome:
        """Sum up: the tokens of the whole turn, and what was said since it began or was taken up again."""
        events = self.log.events[self.resumed_after :]
        text = "".join(event.content for event in events if isinstance(event, TextChunk))
        state: Literal["done", "failed", "cancelled", "paused"] = "done"
        code = None
        if isinstance(last, ConfirmMutation):
            state = "paused"
        elif isinstance(last, Error):
            code = last.code
            state = "cancelled" if code == CANCELLED.code else "failed"
        return TurnOutcome(state, code, self.usage.input_tokens, self.usage.output_tokens, text)
