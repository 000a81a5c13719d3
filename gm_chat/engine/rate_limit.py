"""Keeping actors within their budgets: admitted before each step, charged before each call, corrected after it.

(Specification: "Rate limits"; faults L1 and L2.)

A turn is charged one request when it is admitted, whatever its rounds. Before a provider is called, the tokens that
the call is expected to take are charged, so that turns side by side see each other; when it is over, the charge is
corrected to what the provider reported:

==================================================  =========================================================
the call                                            is charged
==================================================  =========================================================
reported its usage                                  that
ended, and reported nothing                         what was expected
broke off, was cancelled, or brought no event in    its estimated input, and the text that came
time
failed before its first event for another reason    nothing
lost its process                                    what was expected, until the window has passed
==================================================  =========================================================

Tools and approvals cost no tokens; they are refused while a token budget is used up. What the last answer of the store
said is good enough for that: it is as old as the round before.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from typing import TYPE_CHECKING, Any, Final

from gm_chat.engine.budgets import (
    BYTES_PER_TOKEN,
    REQUESTS,
    Budget,
    BudgetState,
    budgets_of,
    estimated_tokens,
    has_budgets,
    tightest,
)
from gm_chat.engine.failures import TurnStopped
from gm_chat.engine.shielding import to_the_end
from gm_chat.plugin.charges import Charge, Standing, Tally
from gm_chat.providers.base import ProviderError, ProviderIncompleteError, ProviderTimeoutError, TokenUsage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from gm_chat.plugin.context import Actor
    from gm_chat.plugin.protocols import RateLimitStore
    from gm_chat.providers.base import Message, ToolDefinition

__all__ = ["Allowance", "ChargedCall", "RateLimited", "RateLimiter"]

logger = logging.getLogger("gm_chat.engine")


class RateLimited(TurnStopped):
    """A budget is used up. ``budgets`` tells its actor how all of them stand."""

    def __init__(self, seconds: float, budgets: Sequence[BudgetState]) -> None:
        """Give the seconds until something is left again; clients are told whole ones, at least one."""
        super().__init__("rate_limited", retry_after_seconds=max(1, math.ceil(seconds)))
        self.budgets = tuple(budgets)


class RateLimiter:
    """Hands out allowances. Without any budget in the ``rate_limit`` settings it never asks for the store."""

    def __init__(self, settings: Any, store: Callable[[], RateLimitStore]) -> None:
        """``store`` gives the chosen store, made on first use; what it raises counts as the store's failure."""
        self._settings = settings
        self._store = store
        self._limits = has_budgets(settings)

    async def admit(self, actor: Actor) -> Allowance:
        """Charge a request, or raise :class:`RateLimited`: for it, or because a token budget is used up."""
        allowance = self.resume(actor)
        await allowance.enter()
        return allowance

    def resume(self, actor: Actor) -> Allowance:
        """The allowance for a turn that goes on: its request was charged when it was admitted."""
        return Allowance(self, budgets_of(actor, self._settings) if self._limits else ())

    @property
    def expected_output(self) -> int:
        """The tokens that a call is expected to bring."""
        return int(self._settings.output_reservation)

    async def take(self, charges: Sequence[Charge]) -> Tally | None:
        """Charge the store. If it fails, ``None`` where the settings allow to go on uncounted, else raise that."""
        try:
            return await self._store().take(charges, window_seconds=self._settings.window_seconds)
        except Exception:
            if self._settings.on_failure != "allow":
                raise
            logger.warning("the rate-limit store failed; the chat goes on without counting", exc_info=True)
            return None

    async def correct(self, charges: Sequence[Charge], at: float) -> Tally | None:
        """Correct what was charged; ``None`` if that failed: what was expected then stays counted."""
        try:
            return await self._store().correct(charges, window_seconds=self._settings.window_seconds, at=at)
        except Exception:
            logger.warning("the rate-limit store failed; a charge stays as it was expected to be", exc_info=True)
            return None


class Allowance:
    """What one actor's turn may use. Free of any cost where there is no budget."""

    def __init__(self, limiter: RateLimiter, budgets: Sequence[Budget]) -> None:
        """Use :meth:`RateLimiter.admit` or :meth:`RateLimiter.resume`."""
        self.limiter: Final = limiter
        self._budgets = budgets
        self.token_budgets: Final = tuple(budget for budget in budgets if budget.kind != REQUESTS)
        self._known: dict[str, Standing] = {}
        self._known_at = 0.0
        self._entered_at: float | None = None

    @property
    def states(self) -> tuple[BudgetState, ...]:
        """How the budgets stood when the store was last asked; nothing before that."""
        known = [budget for budget in self._budgets if budget.key in self._known]
        return tightest(known, [self._known[budget.key] for budget in known])

    async def enter(self) -> None:
        """Charge the request of a turn, or raise :class:`RateLimited`."""
        if self._budgets:
            self._entered_at = await self.charge({budget.key: int(budget.kind == REQUESTS) for budget in self._budgets})

    async def leave(self) -> None:
        """Give the request back: no turn came of it."""
        if self._entered_at is not None:
            changes = {budget.key: -1 for budget in self._budgets if budget.kind == REQUESTS}
            at, self._entered_at = self._entered_at, None
            await self.correct(changes, at)

    async def check(self) -> None:
        """Raise :class:`RateLimited` if a token budget is used up."""
        if not self.token_budgets:
            return
        if not all(self._is_known(budget) for budget in self.token_budgets):
            await self.charge({budget.key: 0 for budget in self.token_budgets})
        elif any(self._known[budget.key].used >= budget.limit for budget in self.token_budgets):
            raise self._refusal(self.token_budgets)

    def call(self, messages: Sequence[Message], tools: Sequence[ToolDefinition]) -> ChargedCall:
        """A provider call with these messages and tools: enter it before the provider is asked."""
        return ChargedCall(self, estimated_tokens(messages, tools) if self.token_budgets else 0)

    async def charge(self, amounts: Mapping[str, int]) -> float | None:
        """Take so much by budget's key, all or nothing; return the store's time. Raise :class:`RateLimited`."""
        charged = [budget for budget in self._budgets if budget.key in amounts]
        if not charged:
            return None
        tally = await self.limiter.take([Charge(item.key, amounts[item.key], item.limit) for item in charged])
        if tally is None:
            return None
        self._learn(charged, tally)
        if not tally.granted:
            raise self._refusal(charged)
        return tally.at

    async def correct(self, changes: Mapping[str, int], at: float) -> None:
        """Change what was charged at that time of the store. Never raises."""
        changed = [budget for budget in self._budgets if budget.key in changes]
        if changed:
            tally = await self.limiter.correct(
                [Charge(item.key, changes[item.key], item.limit) for item in changed], at
            )
            if tally is not None:
                self._learn(changed, tally)

    def _learn(self, budgets: Sequence[Budget], tally: Tally) -> None:
        self._known_at = time.monotonic()
        self._known.update({budget.key: item for budget, item in zip(budgets, tally.standings, strict=True)})

    def _is_known(self, budget: Budget) -> bool:
        """Whether what was heard of the budget still holds: of a full one, until something may be left again."""
        standing = self._known.get(budget.key)
        if standing is None:
            return False
        return standing.used < budget.limit or time.monotonic() - self._known_at < standing.wait_seconds

    def _refusal(self, budgets: Sequence[Budget]) -> RateLimited:
        used_up = [budget.key for budget in budgets if self._known[budget.key].used >= budget.limit]
        return RateLimited(max((self._known[key].wait_seconds for key in used_up), default=1.0), self.states)


class ChargedCall:
    """One provider call: an async context that charges what it is expected to take, and corrects that at its end.

    Entering raises :class:`RateLimited`; leaving raises nothing of its own.
    """

    def __init__(self, allowance: Allowance, input_tokens: int) -> None:
        """Expect ``input_tokens`` to be counted for what is sent."""
        self._allowance = allowance
        self._input = input_tokens
        self._charged: dict[str, int] = {}
        self._at: float | None = None
        self._heard_bytes = 0
        self._has_begun = False
        self._has_ended = False
        self.usage = TokenUsage(reported=False)
        """What the call took, as far as it is reported."""

    def begin(self) -> None:
        """Note that the provider has begun to answer."""
        self._has_begun = True

    def hear(self, text: str) -> None:
        """Note text that came."""
        if self._allowance.token_budgets:
            self._heard_bytes += len(text.encode("utf-8", "surrogatepass"))

    def end(self, usage: TokenUsage) -> None:
        """Note that the call came to its end, and what it took."""
        self.usage = usage
        self._has_ended = True

    async def __aenter__(self) -> ChargedCall:
        if self._allowance.token_budgets:
            try:
                await to_the_end(self._charge())
            except asyncio.CancelledError:  # the provider will not be asked
                await to_the_end(self._settle(0, 0))
                raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._at is not None:
            await to_the_end(self._settle(*self._spent(error)))

    async def _charge(self) -> None:
        output = self._allowance.limiter.expected_output
        self._charged = {budget.key: budget.share(self._input, output) for budget in self._allowance.token_budgets}
        self._at = await self._allowance.charge(self._charged)

    async def _settle(self, input_tokens: int, output_tokens: int) -> None:
        if self._at is None:
            return
        changes = {
            budget.key: budget.share(input_tokens, output_tokens) - self._charged[budget.key]
            for budget in self._allowance.token_budgets
        }
        at, self._at = self._at, None
        if any(changes.values()):
            await self._allowance.correct(changes, at)

    def _spent(self, error: BaseException | None) -> tuple[int, int]:
        """Input and output tokens to be charged, by the module's table."""
        output = self._allowance.limiter.expected_output
        if self.usage.reported:
            return self.usage.input_tokens, self.usage.output_tokens
        if self._has_ended:
            # Parts may be counted, as when an attempt before the one that succeeded broke off.
            return max(self._input, self.usage.input_tokens), max(output, self.usage.output_tokens)
        if not self._has_begun and _was_refused(error):
            return 0, 0
        return self._input, self._heard_bytes // BYTES_PER_TOKEN


def _was_refused(error: BaseException | None) -> bool:
    """Whether nothing can have been counted for a call that brought no event: the provider did not begin with it."""
    if isinstance(error, ProviderTimeoutError | ProviderIncompleteError):
        return False
    return isinstance(error, ProviderError) or not isinstance(error, asyncio.CancelledError | GeneratorExit | None)
