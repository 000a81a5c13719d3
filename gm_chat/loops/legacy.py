"""The ordinary loop: the model answers, or calls tools and is asked again with their results.

It always ends: rounds and failed rounds are bounded (:mod:`gm_chat.engine.limits`), and a round that brings nothing
new is followed by the *answer round*, in which no tool can be called.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from gm_chat.engine.failures import TurnStopped
from gm_chat.engine.limits import Next, Outcome, is_failed_round
from gm_chat.engine.messages import SAME_MISTAKE
from gm_chat.providers.base import CallOptions

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from gm_chat.engine.events import Event
    from gm_chat.engine.state import TurnState
    from gm_chat.engine.tools import Answer

__all__ = ["legacy_loop"]

_WITH_TOOLS: Final = CallOptions()
_ANSWER_ONLY: Final = CallOptions(tool_choice="none")

_USE_TOOLS: Final = "Look the data up with the tools before you answer. Call a tool; do not write the call as text."
_USE_RECORDS: Final = "If my question is about records, look them up with the tools now. If not, answer it again."
_ANSWER_NOW: Final = (
    "Answer my question now in plain words, with the names and values from the results above. No more tool calls."
)
_GIVE_UP: Final = (
    "Stop calling tools. Answer now in plain words, from the results above. If they do not hold the answer, say that "
    "you could not look it up; do not guess."
)
_NOT_DONE: Final = f"{_GIVE_UP} The last change failed: if I asked for it, say that, and why; never that it was made."


async def legacy_loop(turn: TurnState) -> AsyncGenerator[Event, None]:
    """Work a turn with one provider and its tools until there is an answer."""
    turn.introduce_data()
    answering = False
    recovery = _Recovery(turn)
    while True:
        async with aclosing(turn.complete(_ANSWER_ONLY if answering else _WITH_TOOLS)) as texts:
            async for text in texts:
                yield text

        if not turn.completion.calls:
            prompt = recovery.prompt()
            turn.transcript.end_round(metadata=turn.completion.metadata)
            if prompt is None:
                return
            turn.transcript.instruct(prompt)
            answering = prompt is _ANSWER_NOW
        elif answering:
            for event in turn.refuse_calls():
                yield event
            if turn.transcript.has_text:
                return
            raise TurnStopped("tool_retry_limit")
        else:
            calls = turn.accept_calls()
            for call in calls:
                yield call.event
            answers = await turn.run_calls(calls)
            for answer in answers:
                yield answer.event
            prompt = recovery.after(answers)
            if prompt is not None:
                turn.transcript.instruct(prompt)
                answering = prompt is not SAME_MISTAKE


class _Recovery:
    """Says what a small model does not see by itself, and would go on with until the turn's limits end it.

    ``recover_missing_tool_calls`` adds a prompt for an answer without a look at the data, one for no answer after it,
    and an answer round for a model that sends a refused call a third time, has used up its failures, or has one round
    left.
    """

    def __init__(self, turn: TurnState) -> None:
        self._turn = turn
        self._has_failed = False
        enabled = turn.services.settings.recover_missing_tool_calls and turn.tools.definitions
        self._unused = {_USE_TOOLS, _USE_RECORDS, _ANSWER_NOW, _GIVE_UP, _NOT_DONE} if enabled else set()

    def after(self, answers: Sequence[Answer]) -> str | None:
        """Choose what is said after a round of calls, or stop the turn at a limit; mostly nothing is said."""
        turn = self._turn
        if any(turn.tools.is_write(answer.call) for answer in answers):  # it came alone
            self._has_failed = answers[0].outcome is not Outcome.FRESH
        give_up = _NOT_DONE if self._has_failed else _GIVE_UP
        try:
            if turn.go_on(answers) is Next.ANSWER:
                return self._to_answer(_ANSWER_NOW)
        except TurnStopped:
            if not self._take(give_up):
                raise
            return self._to_answer(give_up)
        refusals = max(answer.refusals for answer in answers)
        is_stuck = refusals > 1 and is_failed_round([answer.outcome for answer in answers])
        if (is_stuck or turn.rounds == turn.limits.rounds - 1) and self._take(give_up):
            return self._to_answer(give_up)
        return SAME_MISTAKE if refusals else None

    def _to_answer(self, prompt: str) -> str:
        """No more is asked of a model that was told to answer but an answer."""
        self._unused -= {_USE_TOOLS, _USE_RECORDS}
        return prompt

    def prompt(self) -> str | None:
        """Choose the prompt that the round without calls needs, once each, if a round is left for it."""
        turn = self._turn
        if not turn.has_called:
            wanted = _USE_TOOLS
        elif not turn.has_looked:
            wanted = _USE_RECORDS
        elif not turn.transcript.round_text:
            wanted = _ANSWER_NOW
        else:
            return None
        return wanted if self._take(wanted) else None

    def _take(self, prompt: str) -> bool:
        if prompt not in self._unused or self._turn.rounds >= self._turn.limits.rounds:
            return False
        self._unused.remove(prompt)
        return True
