"""The manager source: a schema's lists and mutations behind gm-chat's port."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.utils.module_loading import import_string

from gm_chat.managers.api import ManagerVisibility, Visibility
from gm_chat.persistence.threads import run_db
from gm_chat.plugin import ToolError
from gm_chat_source_graphql.aggregate import run_aggregate
from gm_chat_source_graphql.context import request_of
from gm_chat_source_graphql.deadline import watched
from gm_chat_source_graphql.describe import describe, with_mutations
from gm_chat_source_graphql.execute import Reader, run_plan
from gm_chat_source_graphql.library import load
from gm_chat_source_graphql.mutations import describe_mutations, run_mutation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gm_chat.managers.api import ManagerInfo, MutationCall, QueryPage, QueryPlan
    from gm_chat.managers.measures import AggregatePage, AggregatePlan
    from gm_chat.plugin import Actor
    from gm_chat_source_graphql.describe import Binding
    from gm_chat_source_graphql.library import Executable
    from gm_chat_source_graphql.mutations import Mutation
    from gm_chat_source_graphql.options import Options

__all__ = ["GraphQLSource"]


@dataclass(frozen=True, slots=True)
class _Loaded:
    library: Executable
    bindings: Mapping[str, Binding]
    mutations: Mapping[str, Mutation]
    context: Callable[[Actor], Any]


class GraphQLSource:
    """Managers of one GraphQL schema, imported when they are first asked for. Its resolvers decide who sees what."""

    name = "graphql"

    def __init__(self, options: Options) -> None:
        """Take the settings under ``plugins["graphql"]``, which name a schema."""
        self._options = options
        self._lock = threading.Lock()
        self._loaded: _Loaded | None = None

    def describe(self) -> Sequence[ManagerInfo]:
        """What the settings expose. Raises ``ImportError``, ``TypeError`` or ``ValueError`` that names the setting."""
        return [binding.info for binding in self._load().bindings.values()]

    async def visibility(self, actor: Actor) -> Visibility:
        """Everything for logged-in users, public managers for everybody. Rows and values are the resolvers' matter."""
        bindings = self._load().bindings
        is_known = actor.is_authenticated and getattr(actor.user, "is_active", True)
        return Visibility(
            f"graphql:{'user' if is_known else 'anybody'}",
            {
                name: ManagerVisibility(
                    frozenset(binding.fields),
                    frozenset(binding.relations),
                    frozenset(item.name for item in binding.info.mutations) if is_known else frozenset(),
                    rows_may_be_hidden=True,
                )
                for name, binding in bindings.items()
                if is_known or binding.info.public
            },
        )

    async def execute(self, plan: QueryPlan, actor: Actor, *, deadline: float | None) -> QueryPage:
        """Run a plan in a database thread; see :func:`~gm_chat_source_graphql.execute.run_plan`."""
        return await run_db(self._execute, plan, actor, deadline)

    async def aggregate(self, plan: AggregatePlan, actor: Actor, *, deadline: float | None) -> AggregatePage:
        """Compute in a database thread; see :func:`~gm_chat_source_graphql.aggregate.run_aggregate`."""
        return await run_db(self._aggregate, plan, actor, deadline)

    async def mutate(self, call: MutationCall, actor: Actor, *, deadline: float | None) -> Mapping[str, Any]:
        """Run a mutation in a database thread; see :func:`~gm_chat_source_graphql.mutations.run_mutation`."""
        return await run_db(self._mutate, call, actor, deadline)

    def _execute(self, plan: QueryPlan, actor: Actor, deadline: float | None) -> QueryPage:
        with watched(deadline):
            return run_plan(plan, self._reader(actor))

    def _aggregate(self, plan: AggregatePlan, actor: Actor, deadline: float | None) -> AggregatePage:
        with watched(deadline):
            return run_aggregate(plan, self._reader(actor))

    def _reader(self, actor: Actor) -> Reader:
        loaded, options = self._load(), self._options
        return Reader(loaded.library, loaded.bindings, loaded.context(actor), options.max_rows, options.page_size)

    def _mutate(self, call: MutationCall, actor: Actor, deadline: float | None) -> dict[str, Any]:
        loaded = self._load()
        mutation = loaded.mutations.get(call.mutation.name)
        if mutation is None or not (actor.is_authenticated and getattr(actor.user, "is_active", True)):
            raise ToolError("permission_denied", f"you may not run {call.mutation.name}")
        binding = loaded.bindings[mutation.info.manager]
        return run_mutation(call, mutation, loaded.library, binding, loaded.context(actor), deadline)

    def _load(self) -> _Loaded:
        loaded = self._loaded
        if loaded is None:
            with self._lock:
                loaded = self._loaded = self._loaded or _load(self._options)
        return loaded


def _load(options: Options) -> _Loaded:
    library = load(str(options.schema))
    bindings = describe(library.schema, options)
    mutations = describe_mutations(library.schema, bindings, options.mutations)
    offered: dict[str, list[Any]] = {}
    for mutation in mutations.values():
        offered.setdefault(mutation.info.manager, []).append(mutation.info)
    context = request_of if options.context is None else import_string(options.context)
    return _Loaded(library, with_mutations(bindings, offered), mutations, context)
