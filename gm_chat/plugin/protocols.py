"""The objects that registration hooks hand out, as protocols with their error contracts.

The host calls every method through a guard: a timeout, an error policy and the plugin's name on what goes wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gm_chat.managers.api import (
        ManagerInfo,
        MutationCall,
        QueryPage,
        QueryPlan,
        Visibility,
    )
    from gm_chat.managers.measures import AggregatePage, AggregatePlan
    from gm_chat.plugin.charges import Charge, Tally
    from gm_chat.plugin.context import Actor
    from gm_chat.plugin.decisions import Action, Decision


@runtime_checkable
class ManagerSource(Protocol):
    """Managers from one place: Django models, a foreign GraphQL schema, a GeneralManager project.

    An exception from :meth:`describe` is fatal for the chat (check E001). :class:`~gm_chat.plugin.ToolError` from
    the other methods goes to the model; anything else ends the call as an internal error.
    """

    name: str

    def describe(self) -> Sequence[ManagerInfo]:
        """Describe every manager once, without the database; called while the index is built."""
        ...

    async def visibility(self, actor: Actor) -> Visibility:
        """Say what the actor may see of :meth:`describe`'s managers. Equal actors' rights give equal values."""
        ...

    async def execute(self, plan: QueryPlan, actor: Actor, *, deadline: float | None) -> QueryPage:
        """Run a validated plan under the actor's rights before ``deadline`` (``time.monotonic()``)."""
        ...

    async def mutate(self, call: MutationCall, actor: Actor, *, deadline: float | None) -> Mapping[str, Any]:
        """Run one mutation, atomically, under the actor's rights; return what was written."""
        ...


@runtime_checkable
class AggregatingSource(ManagerSource, Protocol):
    """A manager source that can also compute; the others' managers are only read."""

    async def aggregate(self, plan: AggregatePlan, actor: Actor, *, deadline: float | None) -> AggregatePage:
        """Run a validated computation under the actor's rights before ``deadline`` (``time.monotonic()``)."""
        ...


@runtime_checkable
class PreviewingSource(ManagerSource, Protocol):
    """A manager source that can tell what a mutation would do; :meth:`mutate` heeds ``call.expected`` and ``shown``.

    Of the others' mutations a user who is to approve one sees only the inputs, and none can be bound to old values.
    """

    async def preview(self, call: MutationCall, actor: Actor, *, deadline: float | None) -> Mapping[str, Any]:
        """Say in JSON types what the call would do, and leave no trace; raise the ``ToolError`` that it would raise."""
        ...


@runtime_checkable
class PermissionCheck(Protocol):
    """An opinion on an action. An exception counts as a denial."""

    async def check(self, action: Action, actor: Actor, context: Mapping[str, Any]) -> Decision:
        """Answer allow, deny or abstain. ``context`` holds ``scope`` and, for tools, ``args``."""
        ...


@runtime_checkable
class AuditSink(Protocol):
    """Receives sanitized audit events, in order.

    A ``required`` sink is awaited before the audited effect, and its failure stops the turn; any other gets a
    bounded queue, and its failures are logged.
    """

    name: str
    required: bool

    async def start(self) -> None:
        """Open what the sink needs; called once per process before the first event."""
        ...

    async def emit(self, event: Mapping[str, Any]) -> None:
        """Take one event; its first key is ``event_type``."""
        ...

    async def aclose(self) -> None:
        """Flush and release."""
        ...


@runtime_checkable
class RateLimitStore(Protocol):
    """Counts what actors use, per key and window, for all processes. An exception is a failure of the store.

    What follows from one is the setting ``rate_limit["on_failure"]``, never the store's decision. The clock is the
    store's own, and so is whether its windows of ``window_seconds`` are fixed or slide.
    """

    async def take(self, charges: Sequence[Charge], *, window_seconds: int) -> Tally:
        """Take all of the charges or none, atomically for each key.

        Granted if something is left of every budget before it: what is taken last may exceed the limit by all of its
        amount but one.
        """
        ...

    async def correct(self, charges: Sequence[Charge], *, window_seconds: int, at: float) -> Tally:
        """Add to what was taken ``at`` that time, whatever the limits: a charge too low or, negative, too high.

        What has left the window meanwhile, or was lost, is not corrected: nothing falls below zero.
        """
        ...
