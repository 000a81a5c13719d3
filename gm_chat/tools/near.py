"""What a model could have meant when a text filter matches nothing: values that stand in the rows it may see.

People and models spell "aluminum", the records say "Aluminium EN AW-6060". Told so, a small model mends its filter;
told nothing, it reports that there is none. The look costs a few small reads, and only when a query found no row.
"""

from __future__ import annotations

import dataclasses
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, assert_never

from gm_chat.managers.api import And, Condition, Not, Or, QueryPlan, Related, Selection
from gm_chat.plugin import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gm_chat.managers.api import ManagerView, Path, Where
    from gm_chat.plugin import ToolContext

__all__ = ["near_values"]

MAX_CONDITIONS: Final = 2
MAX_VALUES: Final = 5
MIN_LETTERS: Final = 3
MAX_LENGTH: Final = 60
"""A value longer than this is shown by its beginning."""

_TEXT_LOOKUPS: Final = frozenset(
    {"exact", "iexact", "contains", "icontains", "startswith", "istartswith", "endswith", "iendswith"}
)


@dataclass(frozen=True, slots=True)
class _TextFilter:
    """A condition on a text field: where it stands from the root, and where its values are."""

    path: Path
    manager: str
    field: str
    value: str


async def near_values(plan: QueryPlan, view: ManagerView, context: ToolContext) -> str | None:
    """A hint for a plan that matched nothing, or ``None`` where no similar value is found.

    Reads as the actor, so that a hint can hold nothing that a query could not. The time that is left bounds the look:
    when it is over there is no hint, and the answer that there is none stands.
    """
    try:
        return await _look(plan, view, context)
    except ToolError:
        return None


async def _look(plan: QueryPlan, view: ManagerView, context: ToolContext) -> str | None:
    for condition in list(_text_filters(plan.where, plan.manager, view))[:MAX_CONDITIONS]:
        for part in _parts(condition.value):
            values = await _values_with(part, condition, context)
            if values:
                path = "__".join(condition.path)
                shown = ", ".join(repr(value[:MAX_LENGTH]) for value in values)
                return (
                    f"No row matches {path} {condition.value[:MAX_LENGTH]!r}. Similar values are {shown}. "
                    f'Try the filter {{"{path}__icontains": {json.dumps(part)}}}.'
                )
    return None


async def _values_with(part: str, condition: _TextFilter, context: ToolContext) -> list[str]:
    name = condition.field
    plan = QueryPlan(
        manager=condition.manager,
        selection=Selection((name,)),
        where=And((Condition((name,), "icontains", part),)),
        limit=4 * MAX_VALUES,
    )
    page = await context.managers.query(plan, context.actor, deadline=context.deadline)
    return list(dict.fromkeys(str(row[name]) for row in page.data))[:MAX_VALUES]


def _parts(value: str) -> Iterator[str]:
    """The value, its longest word, and beginnings of that: endings differ more often than beginnings."""
    text = value.strip()
    word = max(re.split(r"\W+", text), key=len)
    parts = (text, word, word[: -(-2 * len(word) // 3)], word[: len(word) // 2])
    yield from dict.fromkeys(part for part in parts if len(part) >= MIN_LETTERS)


def _text_filters(where: Where, manager: str, view: ManagerView, path: Path = ()) -> Iterator[_TextFilter]:
    """The conditions that must hold on text without choices; what stands under ``not`` excludes rows, and is none."""
    match where:
        case And(parts) | Or(parts):
            for part in parts:
                yield from _text_filters(part, manager, view, path)
        case Not():
            return
        case Related(relation, part):
            target = _target(manager, relation, view)
            if target is not None:
                yield from _text_filters(part, target, view, (*path, relation))
        case Condition((hop, *rest), _, _) if rest:
            inner = dataclasses.replace(where, path=tuple(rest))
            yield from _text_filters(Related(hop, inner), manager, view, path)
        case Condition((name,), lookup, str(value)) if lookup in _TEXT_LOOKUPS:
            info = view.get(manager)
            field = next((field for field in info.fields if field.name == name), None) if info else None
            if field is not None and field.type == "string" and not field.choices and not field.computed:
                yield _TextFilter((*path, name), manager, name, value)
        case Condition():
            return
        case _:
            assert_never(where)


def _target(manager: str, relation: str, view: ManagerView) -> str | None:
    info = view.get(manager)
    return next((item.target for item in info.relations if item.name == relation), None) if info else None
