"""What a loop works with: one turn's provider, tools, transcript and counts."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from gm_chat.engine.confirmation import NOT_CONFIRMED, TurnPaused, question
from gm_chat.engine.events import Event, TextChunk
from gm_chat.engine.failures import TurnStopped
from gm_chat.engine.limits import Next, Outcome, TurnLimits, is_failed_round, next_step, refusal
from gm_chat.engine.ports import Progress
from gm_chat.engine.provider import Completion, stream_completion
from gm_chat.engine.retry import is_mended_by_another
from gm_chat.engine.shielding import to_the_end
from gm_chat.providers.base import CallOptions, ProviderFilteredError, TextChunkEvent, TokenUsage

if TYPE_CHECKING:
    from gm_chat.engine.messages import Call
    from gm_chat.engine.ports import ProviderHandle, TurnServices
    from gm_chat.engine.rate_limit import Allowance
    from gm_chat.engine.retry import FallBack
    from gm_chat.engine.tools import Answer, Toolbox
    from gm_chat.engine.transcript import Transcript
    from gm_chat.plugin.context import TurnContext
    from gm_chat.providers.base import Message, ProviderError, ToolDefinition

__all__ = ["WRITE_PATIENCE", "Loop", "TurnState"]

logger = logging.getLogger("gm_chat.engine")

WRITE_PATIENCE: Final = 5.0
"""Seconds that a write gets to come to its end when its turn is cancelled, so that its outcome is known."""


@dataclass(slots=True, kw_only=True)
class TurnState:
    """One turn at work. A loop asks it for rounds and tool results, and releases their events."""

    context: TurnContext
    services: TurnServices
    provider: ProviderHandle
    tools: Toolbox
    transcript: Transcript
    limits: TurnLimits
    allowance: Allowance
    may_pause: bool = False
    """Whether the user can be asked to approve a mutation."""
    ends_at: float | None = None
    """When the turn's time is over, by ``time.monotonic()``."""
    instructions: str = ""
    """What the project and its plugins tell every model, and the day."""
    outline: Callable[[], str] = str
    """Tells what there is to ask for, as far as the actor may see it, and what of it fits the question."""
    has_overview: bool = False
    """Whether the system prompt has all of that already."""
    orchestration: Mapping[str, Any] | None = None
    """What ``done`` says about the coverage of a planned turn."""
    has_called: bool = False
    has_looked: bool = False
    """Whether a tool was called that says more than what there is to ask for."""
    usage: TokenUsage = field(default_factory=TokenUsage)
    spent: dict[str, TokenUsage] = field(default_factory=dict)
    """:attr:`usage` by what is billed, :attr:`~gm_chat.engine.ports.ProviderHandle.billed_as`."""
    rounds: int = 0
    failed_rounds: int = 0
    mutations: int = 0
    completion: Completion = field(default_factory=lambda: Completion(usage=TokenUsage()))
    """The last round that came to its end."""

    def count_on(self, progress: Progress) -> None:
        """Go on from where a paused turn stood. It has called a tool: the one that it paused for."""
        self.usage, self.rounds = progress.usage, progress.rounds
        self.failed_rounds, self.mutations = progress.failed_rounds, progress.mutations
        self.spent = dict(progress.spent)
        self.has_called = self.has_looked = True

    def introduce_data(self) -> None:
        """Tell the model what data fits the question, if the system prompt has not told it of all."""
        if not self.has_overview and (outline := self.outline()):
            self.transcript.introduce(outline)

    def progress(self, seconds: float) -> Progress:
        """What the turn has used so far, in so many seconds of work."""
        return Progress(
            rounds=self.rounds,
            failed_rounds=self.failed_rounds,
            mutations=self.mutations,
            usage=self.usage,
            spent=self.spent,
            seconds=seconds,
        )

    async def complete(self, options: CallOptions) -> AsyncGenerator[TextChunk, None]:
        """Run one provider round: yield its text as it streams, then set :attr:`completion`.

        Takes one of the turn's rounds, or stops the turn with ``turn_limit``, or with ``rate_limited``, also where that
        leaves nothing for the calls that it asks for. A round that a content filter emptied raises
        :class:`ProviderFilteredError`.
        """
        if self.rounds >= self.limits.rounds:
            raise TurnStopped("turn_limit")
        self.rounds += 1
        asked = self.ask(self.transcript.messages, self.tools.definitions, self.in_time(options))
        async with aclosing(asked) as stream:
            async for item in stream:
                match item:
                    case TextChunkEvent(content=content):
                        self.transcript.write(content)
                        yield TextChunk(content)
                    case Completion():
                        self.completion = item
        if self.completion.calls:
            await self.allowance.check()
        if self.completion.finish_reason == "filtered" and not (self.completion.calls or self.transcript.round_text):
            raise ProviderFilteredError(f"provider {self.provider.name!r} ended with a content filter and no text")

    async def ask(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolDefinition],
        options: CallOptions,
        provider: ProviderHandle | None = None,
    ) -> AsyncGenerator[TextChunkEvent | Completion, None]:
        """Call the provider within the actor's budgets, and count in :attr:`usage` what that took.

        A call that breaks off counts as not reported. Stops the turn with ``rate_limited`` instead of calling. Another
        ``provider`` than the turn's has no fallback.
        """
        fall_back = self._falling_back() if provider is None else None
        async with self.allowance.call(messages, tools) as charged:
            stream = stream_completion(
                provider or self.provider, messages, tools, options, fall_back, begun=charged.begin
            )
            try:
                async with aclosing(stream):
                    async for item in stream:
                        match item:
                            case TextChunkEvent(content=content):
                                charged.hear(content)
                            case Completion(usage=usage):
                                charged.end(usage)
                        yield item
            finally:
                self.usage += charged.usage
                billed = (provider or self.provider).billed_as
                self.spent[billed] = self.spent.get(billed, TokenUsage()) + charged.usage

    def in_time(self, options: CallOptions) -> CallOptions:
        """Add the seconds that are left of the turn, if its time is limited."""
        if self.ends_at is None:
            return options
        return replace(options, deadline=max(0.0, self.ends_at - time.monotonic()))

    def _falling_back(self) -> FallBack:
        """How one call goes over to the fallback: where a call beside it went over already, to the same one."""
        asked = self.provider

        async def fall_back(error: ProviderError) -> ProviderHandle | None:
            nonlocal asked
            if self.provider is not asked:
                asked = self.provider
                return asked
            other = await self.fall_back(error)
            asked = self.provider
            return other

        return fall_back

    async def fall_back(self, error: ProviderError) -> ProviderHandle | None:
        """Go over to the fallback provider, for the rest of the turn, after a failure that it may mend."""
        failed = self.provider
        if failed.fallback is None or not is_mended_by_another(error):
            return None
        self.provider = await failed.fallback()
        logger.warning(
            "turn %s goes on with the fallback provider %r, as %r failed: %s",
            self.context.turn_id,
            self.provider.name,
            failed.name,
            error,
        )
        self.transcript.address(self.provider.name)
        return self.provider

    def accept_calls(self) -> list[Call]:
        """End the round with the calls of :attr:`completion`, or stop the turn if they must not run."""
        calls = self.tools.mint(self.completion.calls)
        writes = sum(map(self.tools.is_write, calls))
        code = refusal(self.limits, calls=len(calls), writes=writes, mutations=self.mutations)
        if code is not None:
            raise TurnStopped(code)
        self.transcript.end_round(calls, metadata=self.completion.metadata)
        self.has_called = True
        self.has_looked = self.has_looked or any(map(self.tools.looks, calls))
        return calls

    async def run_calls(self, calls: Sequence[Call]) -> list[Answer]:
        """Run accepted calls. A mutation that needs the user's approval pauses the turn, or stops it.

        The caller releases the answers and then lets :meth:`go_on` decide.
        """
        if not any(map(self.tools.is_write, calls)):
            return await self._run_calls(calls)
        self.mutations += 1  # a write comes alone: refusal() sees to it
        return await to_the_end(self._run_calls(calls), patience=WRITE_PATIENCE)

    async def _run_calls(self, calls: Sequence[Call]) -> list[Answer]:
        answers = await self.tools.run(calls)
        asked = question(answers[0])
        if asked is not None:
            if self.may_pause:
                raise TurnPaused(asked)
            self.transcript.answer([(calls[0], NOT_CONFIRMED)])
            raise TurnStopped("confirmation_required_transport")
        self.transcript.answer((answer.call, answer.result) for answer in answers)
        for answer in answers:
            if answer.outcome is not Outcome.REPEATED:
                call = answer.call
                await self.services.observer.tool_finished(self.context, call.id, call.name, call.args, answer.result)
        return answers

    def go_on(self, answers: Sequence[Answer]) -> Next:
        """Decide what follows a round with these answers: raise what broke a tool, or stop at a limit, or go on."""
        for answer in answers:
            if answer.failure is not None:
                raise answer.failure
        outcomes = [answer.outcome for answer in answers]
        self.failed_rounds += is_failed_round(outcomes)
        if self.failed_rounds > self.limits.failed_rounds:
            raise TurnStopped("tool_retry_limit")
        return next_step(outcomes)

    def refuse_calls(self) -> list[Event]:
        """End the round with calls that come too late: each is answered with an error, none runs."""
        calls = self.tools.mint(self.completion.calls)
        answers = self.tools.refuse(calls)
        self.transcript.end_round(calls, metadata=self.completion.metadata)
        self.transcript.answer((answer.call, answer.result) for answer in answers)
        return [*(call.event for call in calls), *(answer.event for answer in answers)]


Loop: TypeAlias = Callable[[TurnState], AsyncGenerator[Event, None]]
"""A way to work a turn: releases events, returns when the answer is complete, raises when it cannot be."""
