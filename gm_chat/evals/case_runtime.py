"""The Runtime of one case: the product's own, over a conversation of its own, and counting what it costs."""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from gm_chat.engine.memory_store import MemoryTurnStore
from gm_chat.engine.rate_limit import RateLimiter
from gm_chat.engine.tools import MUTATE
from gm_chat.settings import RateLimitSettings
from gm_chat.wiring import Runtime
from gm_chat.wiring.observer import Observer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from gm_chat.engine.events import Error
    from gm_chat.engine.ports import ClosedTurn, ProviderHandle
    from gm_chat.plugin import RateLimitStore, ToolSpec, TurnContext
    from gm_chat.providers.base import CallOptions, ChatEvent, Message, ToolDefinition

__all__ = ["CaseRuntime", "CaseStore", "Tally", "case_runtime", "seeded_ids"]


def seeded_ids(*seed: object) -> Callable[[], str]:
    """A factory of ids that are the same for the same seed, and look like the others."""
    numbers = itertools.count(1)
    return lambda: hashlib.sha256(repr((*seed, next(numbers))).encode()).hexdigest()[:32]


class CaseStore(MemoryTurnStore):
    """The case's conversation; ``closed`` is what each turn, or the part of it before a pause, left last, by its id."""

    def __init__(self) -> None:
        """Start empty."""
        super().__init__()
        self.closed: dict[str, ClosedTurn] = {}

    async def close_turn(self, turn: ClosedTurn) -> None:
        """Record what a turn left."""
        self.closed[turn.turn_id] = turn
        await super().close_turn(turn)


@dataclass(slots=True)
class Tally:
    """What the turns of a case do not tell by themselves: requests to providers, and what broke."""

    rounds: int = 0
    failure: BaseException | None = None


@dataclass(frozen=True)
class CaseRuntime(Runtime):
    """A :class:`~gm_chat.wiring.Runtime` beside ``base``, whose schema and plugins it shares.

    ``before_write`` is awaited before a tool runs that writes. Without ``may_write`` there is none but ``mutate``,
    which the settings rule. Rate limits are for visitors, and do not apply.
    """

    base: Runtime = field(kw_only=True, repr=False)
    before_write: Callable[[], Awaitable[None]] = field(kw_only=True, repr=False)
    may_write: bool = field(default=True, kw_only=True)
    tally: Tally = field(default_factory=Tally, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "audit", self.base.audit)
        # What the base has read and built is taken over in the place where it would be kept.
        vars(self).update(
            managers=self.base.managers,
            limiter=RateLimiter(RateLimitSettings(requests=None), _no_store),
            observer=_CaseObserver(self),
        )

    async def provider_for(self, context: TurnContext) -> ProviderHandle:
        """Select and build the turn's provider."""
        return self._counted(await super().provider_for(context))

    async def profile_provider(self, name: str) -> ProviderHandle:
        """Build the provider of a profile of the settings."""
        return self._counted(await super().profile_provider(name))

    async def tools_for(self, context: TurnContext) -> Sequence[ToolSpec]:
        """The turn's tools."""
        tools = await super().tools_for(context)
        return [tool for tool in tools if self.may_write or tool.kind == "read" or tool.definition.name == MUTATE]

    def _counted(self, handle: ProviderHandle) -> ProviderHandle:
        def complete(
            messages: list[Message], tools: list[ToolDefinition], options: CallOptions
        ) -> AsyncIterator[ChatEvent]:
            self.tally.rounds += 1
            return handle.complete(messages, tools, options)

        take_over = handle.fallback

        async def fallback() -> ProviderHandle:
            assert take_over is not None  # noqa: S101 (else it is not handed out)
            return self._counted(await take_over())

        return replace(handle, complete=complete, fallback=None if take_over is None else fallback)


class _CaseObserver(Observer):
    """Tells everybody, as ever, and the case of what it has to know."""

    def __init__(self, runtime: CaseRuntime) -> None:
        super().__init__(runtime.host, runtime.audit)
        self._runtime = runtime
        self._writes = {tool.definition.name for tool in runtime.host.tools if tool.kind == "write"}

    async def tool_started(
        self, context: TurnContext, call_id: str, name: str, args: Mapping[str, Any], *, approved: bool = False
    ) -> None:
        """Let a tool that writes wait until it may."""
        await super().tool_started(context, call_id, name, args, approved=approved)
        if name in self._writes:
            await self._runtime.before_write()

    async def turn_failed(self, context: TurnContext, error: BaseException, public: Error) -> None:
        """Keep the exception that clients are not told of."""
        self._runtime.tally.failure = error
        await super().turn_failed(context, error, public)


def case_runtime(
    base: Runtime, new_id: Callable[[], str], before_write: Callable[[], Awaitable[None]], *, may_write: bool
) -> tuple[CaseRuntime, CaseStore]:
    """Put a case's Runtime together; its store is new, and handed out with the type that it has."""
    store = CaseStore()
    runtime = CaseRuntime(
        base.settings,
        base.host,
        store,
        new_id,
        base.builds,
        base=base,
        before_write=before_write,
        may_write=may_write,
    )
    return runtime, store


def _no_store() -> RateLimitStore:
    raise AssertionError("without budgets no store is asked")
