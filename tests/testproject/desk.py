"""Ask the managers directly, as a given user, and watch what the database does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db import connections
from django.test.utils import CaptureQueriesContext

from gm_chat.managers import registry
from gm_chat.managers.api import ManagerVisibility, Visibility
from gm_chat.managers.executor import execute_plan
from gm_chat.managers.index import MaskedView, SchemaIndex
from gm_chat.managers.plan import build_plan
from gm_chat.managers.visibility import visibility_of
from gm_chat.plugin import Actor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gm_chat.managers.api import QueryPage, QueryPlan
    from gm_chat.managers.binding import Binding


def actor_of(user: Any) -> Actor:
    """The actor that a logged-in user is; ``None`` is nobody."""
    return Actor() if user is None else Actor(user_id=str(user.pk), user=user)


def whole_view() -> MaskedView:
    """All that the apps declare, as somebody with every right sees it. Needs no database."""
    infos = [binding.info for binding in registry.bindings().values()]
    rights = {
        info.name: ManagerVisibility(
            frozenset(field.name for field in info.fields),
            frozenset(relation.name for relation in info.relations),
            frozenset(mutation.name for mutation in info.mutations),
        )
        for info in infos
    }
    return SchemaIndex.build(infos).view(Visibility("everything", rights))


@dataclass(frozen=True)
class Desk:
    """Bindings, their index, and who asks."""

    bindings: Mapping[str, Binding]
    actor: Actor
    alias: str = "default"

    @property
    def view(self) -> MaskedView:
        index = SchemaIndex.build(binding.info for binding in self.bindings.values())
        return index.view(visibility_of(self.actor, self.bindings))

    def plan(self, manager: str, fields: list[Any], **args: Any) -> QueryPlan:
        options = {key: args.pop(key) for key in ("max_results", "max_bytes", "limits") if key in args}
        arguments = {"manager": manager, "fields": fields, **args}
        return build_plan(arguments, self.view, **{"max_results": 200, **options})

    def ask(self, manager: str, fields: list[Any], **args: Any) -> QueryPage:
        return execute_plan(self.plan(manager, fields, **args), self.bindings, self.actor)

    def statements(self, manager: str, fields: list[Any], **args: Any) -> int:
        plan = self.plan(manager, fields, **args)
        with CaptureQueriesContext(connections[self.alias]) as queries:
            execute_plan(plan, self.bindings, self.actor)
        return len(queries)
