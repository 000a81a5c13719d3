"""A manager source, installed as a plugin, whose managers are described by whoever made a form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gm_chat.managers.api import FieldInfo, ManagerInfo, ManagerVisibility, QueryPage, Visibility
from gm_chat.plugin import hookimpl
from testproject.obedient import DESCRIPTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gm_chat.managers.api import MutationCall, QueryPlan
    from gm_chat.plugin import Actor

NAMES = tuple(f"Form{number}Manager" for number, _ in enumerate(DESCRIPTIONS, 1))


class Forms:
    """One manager per description; all are empty."""

    name = "forms"

    def describe(self) -> Sequence[ManagerInfo]:
        """Say what the forms' authors say."""
        fields = (FieldInfo(name="note", type="string"),)
        return [
            ManagerInfo(name=name, description=item.text, fields=fields, from_data=True)
            for name, item in zip(NAMES, DESCRIPTIONS, strict=True)
        ]

    async def visibility(self, actor: Actor) -> Visibility:
        """Show everybody everything."""
        seen = ManagerVisibility(frozenset({"note"}), frozenset(), frozenset())
        return Visibility("all", dict.fromkeys(NAMES, seen))

    async def execute(self, plan: QueryPlan, actor: Actor, *, deadline: float | None) -> QueryPage:
        """Find nothing."""
        return QueryPage([], 0, has_more=False)

    async def mutate(self, call: MutationCall, actor: Actor, *, deadline: float | None) -> Mapping[str, Any]:
        """There is no mutation."""
        raise NotImplementedError


@hookimpl
def gm_chat_manager_sources(options: Any) -> list[Forms]:
    """Add the forms."""
    return [Forms()]
