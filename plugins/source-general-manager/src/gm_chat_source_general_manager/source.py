"""The manager source: GeneralManager's classes behind gm-chat's port."""

from __future__ import annotations

import hashlib
import logging
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gm_chat.managers.api import ManagerVisibility, Visibility
from gm_chat.managers.orm import execute_aggregate, execute_plan, run_db
from gm_chat.plugin import ToolError
from gm_chat_source_general_manager.calculated import Calculated
from gm_chat_source_general_manager.describe import describe_models, exposed_managers, narrowed
from gm_chat_source_general_manager.narrowing import own_conditions
from gm_chat_source_general_manager.rights import user_of
from gm_chat_source_general_manager.writes import run_mutation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gm_chat.managers.api import ManagerInfo, MutationCall, QueryPage, QueryPlan, RelationInfo
    from gm_chat.managers.measures import AggregatePage, AggregatePlan
    from gm_chat.managers.orm import Binding
    from gm_chat.plugin import Actor
    from gm_chat_source_general_manager.describe import ModelManagers
    from gm_chat_source_general_manager.options import Options
    from gm_chat_source_general_manager.rights import Gate

__all__ = ["GeneralManagerSource"]

logger = logging.getLogger("gm_chat_source_general_manager")


@dataclass(frozen=True, slots=True)
class _Loaded:
    models: ModelManagers
    calculated: Calculated

    @property
    def infos(self) -> Mapping[str, ManagerInfo]:
        return {
            **{name: binding.info for name, binding in self.models.bindings.items()},
            **self.calculated.infos,
        }

    @property
    def gates(self) -> Mapping[str, Gate]:
        return {**self.models.gates, **self.calculated.gates}


class GeneralManagerSource:
    """The exposed classes of a GeneralManager project, described when they are first asked for.

    Those with a Django model are read from its table, the others through GeneralManager's GraphQL schema.
    """

    name = "general_manager"

    def __init__(self, options: Options) -> None:
        """Take the settings under ``plugins["general_manager"]``."""
        self._options = options
        self._lock = threading.Lock()
        self._loaded: _Loaded | None = None

    def describe(self) -> Sequence[ManagerInfo]:
        """Every exposed class. Raises ``ValueError`` that names a wrong setting."""
        return list(self._load().infos.values())

    async def visibility(self, actor: Actor) -> Visibility:
        """What the classes' permissions let the actor read and change."""
        return await run_db(self._visibility, actor)

    async def execute(self, plan: QueryPlan, actor: Actor, *, deadline: float | None) -> QueryPage:
        """Run a plan in a database thread."""
        return await run_db(self._execute, plan, actor, deadline)

    async def aggregate(self, plan: AggregatePlan, actor: Actor, *, deadline: float | None) -> AggregatePage:
        """Run a computation in a database thread."""
        return await run_db(self._aggregate, plan, actor, deadline)

    async def mutate(self, call: MutationCall, actor: Actor, *, deadline: float | None) -> Mapping[str, Any]:
        """Run a mutation in a database thread; see :func:`~gm_chat_source_general_manager.writes.run_mutation`."""
        return await run_db(self._mutate, call, actor, deadline)

    def _execute(self, plan: QueryPlan, actor: Actor, deadline: float | None) -> QueryPage:
        loaded = self._load()
        if plan.manager in loaded.calculated.infos:
            return loaded.calculated.execute(plan, actor, deadline)
        models = loaded.models
        narrow = own_conditions(plan, models.bindings, actor)
        bindings = models.bindings if narrow is None else narrowed(models, plan.manager, narrow)
        return execute_plan(plan, bindings, actor, deadline=deadline)

    def _aggregate(self, plan: AggregatePlan, actor: Actor, deadline: float | None) -> AggregatePage:
        loaded = self._load()
        if plan.manager in loaded.calculated.infos:
            return loaded.calculated.aggregate(plan, actor, deadline)
        return execute_aggregate(plan, loaded.models.bindings, actor, deadline=deadline)

    def _mutate(self, call: MutationCall, actor: Actor, deadline: float | None) -> dict[str, Any]:
        if not user_of(actor).is_authenticated:
            raise ToolError("permission_denied", f"you may not run {call.mutation.name}")
        return run_mutation(call, self._load().models, actor, deadline=deadline)

    def _visibility(self, actor: Actor) -> Visibility:
        loaded, user = self._load(), user_of(actor)
        infos, gates = loaded.infos, loaded.gates
        plans = {name: plan for name in infos if (plan := _plan(gates[name], user)) is not None}
        shown = {name for name, plan in plans.items() if plan.decision != "deny_all"}
        managers: dict[str, ManagerVisibility] = {}
        for name in sorted(shown):
            info, binding = infos[name], loaded.models.bindings.get(name)
            hidden = gates[name].hidden(user)
            relations = [item for item in info.relations if item.name not in hidden and _reaches(item, binding, shown)]
            joined = {name, *(each for item in relations for each in _through(item, binding))}
            managers[name] = ManagerVisibility(
                frozenset(item.name for item in info.fields) - hidden,
                frozenset(item.name for item in relations),
                frozenset(item.name for item in info.mutations) if user.is_authenticated else frozenset(),
                rows_may_be_hidden=not all(gates[each].is_always_open(plans[each], user) for each in joined),
            )
        rights = [
            (name, sorted(each.fields), sorted(each.relations), sorted(each.mutations), each.rows_may_be_hidden)
            for name, each in managers.items()
        ]
        return Visibility(hashlib.sha256(repr(rights).encode("utf-8", "surrogatepass")).hexdigest(), managers)

    def _load(self) -> _Loaded:
        loaded = self._loaded
        if loaded is None:
            with self._lock:
                loaded = self._loaded = self._loaded or self._describe()
        return loaded

    def _describe(self) -> _Loaded:
        exposed = exposed_managers(self._options)
        models = describe_models(exposed, self._options)
        return _Loaded(models, Calculated.of(exposed, models, self._options))


def _plan(gate: Gate, user: Any) -> Any:
    """GeneralManager's read plan; ``None`` if its permission breaks, which hides the one manager and no other."""
    try:
        return gate.plan(user)
    except Exception:
        logger.exception("the read permission of %s failed; nobody sees it", gate.manager.__name__)
        return None


def _through(relation: RelationInfo, binding: Binding | None) -> Sequence[str]:
    return () if binding is None else binding.relations[relation.name].through


def _reaches(relation: RelationInfo, binding: Binding | None, shown: set[str]) -> bool:
    through = _through(relation, binding)
    return relation.target in shown and (not through or any(name in shown for name in through))
