"""Guards around the async methods that plugins hand out: one for time, one for attribution, one for each policy.

A guard wraps one async callable and keeps its signature. They stack: ``denying(origin, timed(5, check.check))``.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from gm_chat.engine.waiting import within
from gm_chat.host.problems import Failed, Origin, attempt
from gm_chat.plugin.decisions import Decision
from gm_chat.plugin.errors import PluginError, ToolError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from gm_chat.managers.api import ManagerInfo, MutationCall, QueryPage, QueryPlan, Visibility
    from gm_chat.plugin.context import Actor
    from gm_chat.plugin.protocols import ManagerSource

__all__ = ["OPTIONAL", "AttributedSource", "attributed", "denying", "timed"]

P = ParamSpec("P")
T = TypeVar("T")
logger = logging.getLogger(__name__)


def timed(seconds: float, call: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """Cancel the call after ``seconds`` and raise ``TimeoutError``."""

    async def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
        return await within(seconds, call(*args, **kwargs))

    return guarded


def attributed(origin: Origin, what: str, call: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """Name the plugin on whatever goes wrong.

    ``ToolError`` is meant for the model and passes, as do cancellation and ``KeyboardInterrupt``. Anything else,
    ``SystemExit`` included, becomes a :class:`~gm_chat.plugin.PluginError` with the original as its cause.
    """

    async def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            awaitable = call(*args, **kwargs)
            if not inspect.isawaitable(awaitable):
                raise TypeError(f"it returned a {type(awaitable).__name__} instead of something to await")
            return await awaitable
        except (ToolError, PluginError, asyncio.CancelledError, KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            raise PluginError(f"plugin {origin.plugin!r} ({origin.distribution}), {what}: {Failed(error)}") from error

    return guarded


def denying(origin: Origin, call: Callable[P, Awaitable[Decision]]) -> Callable[P, Awaitable[Decision]]:
    """Turn a failing permission check into a denial: whoever cannot judge must not let anybody through."""
    judge = attributed(origin, "permission check", call)

    async def guarded(*args: P.args, **kwargs: P.kwargs) -> Decision:
        try:
            decision = await judge(*args, **kwargs)
        except (PluginError, ToolError) as error:  # a ToolError, too: no model listens to a check
            logger.exception("%s; the action is denied", error)
            return Decision.deny(str(error))
        if isinstance(decision, Decision):
            return decision
        reason = f"plugin {origin.plugin!r}: its permission check returned a {type(decision).__name__}, not a Decision"
        logger.error("%s; the action is denied", reason)
        return Decision.deny(reason)

    return guarded


OPTIONAL: Final = ("aggregate", "preview")
"""What a manager source may have beside the methods of every source."""


class AttributedSource:
    """A manager source whose failures name its plugin; deadlines are the source's own arguments.

    Of the :data:`OPTIONAL` methods it has those that the source has, so that it is an instance of the same protocols.
    """

    def __init__(self, origin: Origin, source: ManagerSource) -> None:
        """Guard ``source``, which ``origin`` handed out."""
        self.origin = origin
        self.source = source
        self.name = source.name
        for method in OPTIONAL:
            call = getattr(source, method, None)
            if call is not None:
                setattr(self, method, attributed(origin, self._what(method), call))

    def describe(self) -> Sequence[ManagerInfo]:
        """See :meth:`gm_chat.plugin.ManagerSource.describe`."""
        infos = attempt(lambda: list(self.source.describe()))
        if isinstance(infos, Failed):
            raise self._broken("describe", str(infos)) from infos.error
        for info in infos:
            if not hasattr(info, "exposed"):  # the host stands below the managers and does not know their class
                raise self._broken("describe", f"it gave a {type(info).__name__}, which is no ManagerInfo")
        return infos

    async def visibility(self, actor: Actor) -> Visibility:
        """See :meth:`gm_chat.plugin.ManagerSource.visibility`."""
        return await attributed(self.origin, self._what("visibility"), self.source.visibility)(actor)

    async def execute(self, plan: QueryPlan, actor: Actor, *, deadline: float | None) -> QueryPage:
        """See :meth:`gm_chat.plugin.ManagerSource.execute`."""
        return await attributed(self.origin, self._what("execute"), self.source.execute)(plan, actor, deadline=deadline)

    async def mutate(self, call: MutationCall, actor: Actor, *, deadline: float | None) -> Mapping[str, Any]:
        """See :meth:`gm_chat.plugin.ManagerSource.mutate`."""
        return await attributed(self.origin, self._what("mutate"), self.source.mutate)(call, actor, deadline=deadline)

    def _broken(self, method: str, what: str) -> PluginError:
        return PluginError(f"plugin {self.origin.plugin!r} ({self.origin.distribution}), {self._what(method)}: {what}")

    def _what(self, method: str) -> str:
        return f"manager source {self.name!r}, {method}"
