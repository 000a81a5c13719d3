"""A mutation that waits for its user's word: how it is asked about, and what the word comes to.

Only the built-in ``mutate`` asks for approval. A call of it that does is left unanswered in history and pauses its
turn; the answer comes with the user's word, or when the time for it is over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from gm_chat.engine.events import ConfirmMutation, Done, Event, ToolResult
from gm_chat.engine.failures import TurnStopped
from gm_chat.engine.limits import Outcome
from gm_chat.engine.messages import Call, tool_row
from gm_chat.engine.tools import MUTATE, Answer, broken, failed
from gm_chat.plugin.decisions import Action, Verdict
from gm_chat.plugin.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from gm_chat.engine.ports import PendingMutation, ResumedTurn, StoredMessage, TurnServices
    from gm_chat.engine.tools import Toolbox
    from gm_chat.plugin.context import TurnContext

__all__ = ["NOT_CONFIRMED", "TurnPaused", "UsersWord", "question", "timed_out", "timed_out_events"]

NOT_CONFIRMED: Final[Mapping[str, Any]] = {
    "error": {
        "code": "confirmation_required_transport",
        "message": "Not executed: the change needs the user's approval, which this connection cannot ask for.",
    }
}
"""What history records for a write that could not be put to the user, so that the model does not think it was done."""

_REJECTED: Final[Mapping[str, Any]] = {"status": "cancelled", "reason": "user_rejected"}
_TIMED_OUT: Final[Mapping[str, Any]] = {"status": "cancelled", "reason": "confirmation_timed_out"}


class TurnPaused(Exception):  # noqa: N818 (a decision, not an error)
    """The turn waits for its user's word on ``event``'s mutation."""

    def __init__(self, event: ConfirmMutation) -> None:
        """Give the event that ends the stream for now."""
        super().__init__(event.id)
        self.event: Final = event


def question(answer: Answer) -> ConfirmMutation | None:
    """What the user must be asked, if that is all the call came to."""
    call, result = answer.call, answer.result
    if call.name != MUTATE or not isinstance(result, Mapping) or result.get("status") != "confirmation_required":
        return None
    return ConfirmMutation(call.id, result["mutation"], result["input"], result.get("preview"))


def timed_out(pending: PendingMutation) -> StoredMessage:
    """What history records of a mutation for which no word came in time."""
    return tool_row(_call(pending), _TIMED_OUT)


def timed_out_events(pending: PendingMutation) -> Sequence[Event]:
    """The last two events of a turn for which no word came in time."""
    return ToolResult(pending.id, MUTATE, _TIMED_OUT), Done(pending.progress.usage)


@dataclass(frozen=True, slots=True)
class UsersWord:
    """A claimed mutation and what its user said. ``stop`` ends the turn without another word of the model."""

    resumed: ResumedTurn
    approved: bool
    stop: bool = False

    async def answer(
        self, services: TurnServices, context: TurnContext, toolbox: Callable[[], Awaitable[Toolbox]]
    ) -> Answer:
        """Run the mutation if it is approved and still permitted, and settle its claim.

        :attr:`Answer.failure` is what then ends the turn, if anything does.
        """
        answer = await self._answer(services, context, toolbox)
        state: Literal["executed", "failed", "rejected"] = "rejected"
        if self.approved:
            executed = isinstance(answer.result, Mapping) and answer.result.get("status") == "executed"
            state = "executed" if executed else "failed"
            if not executed and isinstance(answer.result, Mapping):  # whoever approved it learns that it did not run
                answer = replace(answer, result={**answer.result, "status": "failed"})
        await services.store.settle(self.resumed, state=state, answer=tool_row(answer.call, answer.result))
        return answer

    async def _answer(
        self, services: TurnServices, context: TurnContext, toolbox: Callable[[], Awaitable[Toolbox]]
    ) -> Answer:
        pending = self.resumed.pending
        call = _call(pending)
        decision = await services.permit(
            Action("confirm", pending.mutation), context.actor, {"scope": context.scope, "args": call.args}
        )
        ending = TurnStopped("permission_denied") if decision.verdict is Verdict.DENY else None
        if self.stop:
            ending = TurnStopped("cancelled")
        if not self.approved:
            return Answer(call, _REJECTED, Outcome.FRESH, ending)
        if ending is not None:
            refused = ToolError(ending.event.code, "not executed: by now this user may not do that any more")
            return replace(failed(call, refused), failure=ending)
        try:
            answer = await (await toolbox()).run_approved(call, pending.preview)
        except Exception as error:  # noqa: BLE001 (nothing was run: the claim is settled as failed, the turn ends)
            return broken(call, error)
        if question(answer) is not None:
            return broken(call, RuntimeError("the tool 'mutate' asks for the approval that it was given"))
        return answer


def _call(pending: PendingMutation) -> Call:
    """The call that waits, with exactly the arguments that were stored."""
    return Call(pending.id, MUTATE, {"mutation": pending.mutation, "input": pending.input})
