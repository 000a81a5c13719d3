"""What a model could have meant when a text filter matches nothing: rows that a slightly wider filter matches.

People and models spell "aluminum", the records say "Aluminium EN AW-6060". Shown those rows, under a name that cannot
be taken for the answer to the filter that was sent, a small model goes on; told nothing, it reports that there is none.
The look costs a few small reads, and only when a query found no row.
"""

from __future__ import annotations

import dataclasses
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, assert_never

from gm_chat.managers.api import And, Condition, First, Not, Or, Related
from gm_chat.plugin import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gm_chat.managers.api import ManagerView, Path, QueryPlan, Where
    from gm_chat.plugin import ToolContext

__all__ = ["similar_rows"]

MAX_CONDITIONS: Final = 2
MAX_ROWS: Final = 10
MIN_LETTERS: Final = 3
MAX_LENGTH: Final = 60
"""A value longer than this is quoted by its beginning."""

_TEXT_LOOKUPS: Final = frozenset(
    {"exact", "iexact", "contains", "icontains", "startswith", "istartswith", "endswith", "iendswith"}
)


@dataclass(frozen=True, slots=True)
class _TextFilter:
    """A condition of the plan on a text field, and the field's path from the plan's root."""

    condition: Condition
    path: Path


async def similar_rows(plan: QueryPlan, view: ManagerView, context: ToolContext) -> dict[str, Any]:
    """Keys to add to the result of a plan that matched nothing: ``hint`` and ``similar_rows``, or none.

    Reads as the actor, so that they can hold nothing that a query could not. The time that is left bounds the look:
    when it is over, the answer that there is no row stands alone.
    """
    try:
        return await _look(plan, view, context)
    except ToolError:
        return {}


async def _look(plan: QueryPlan, view: ManagerView, context: ToolContext) -> dict[str, Any]:
    for found in list(_text_filters(plan.where, plan.manager, view))[:MAX_CONDITIONS]:
        value = str(found.condition.value)
        for part in _parts(value, found.condition.lookup):
            wider = _with(plan.where, found.condition, part)
            assert isinstance(wider, And)  # noqa: S101 (a plan's root stays what it is)
            near = dataclasses.replace(plan, where=wider, limit=MAX_ROWS, offset=0)
            page = await context.managers.query(near, context.actor, deadline=context.deadline)
            if page.total_count:
                path = "__".join(found.path)
                return {
                    "hint": f"No row has {path} {value[:MAX_LENGTH]!r}. The filter "
                    f'{{"{path}__icontains": {json.dumps(part, ensure_ascii=False)}}} instead matches '
                    f"{page.total_count} rows; similar_rows are the first of them.",
                    "similar_rows": list(page.data),
                }
    return {}


def _parts(value: str, lookup: str) -> Iterator[str]:
    """The value, its longest word, and beginnings of that: endings differ more often than beginnings."""
    text = value.strip()
    word = max(re.split(r"\W+", text), key=len)
    parts = (text, word, word[: -(-2 * len(word) // 3)], word[: len(word) // 2])
    for part in dict.fromkeys(parts):
        if len(part) >= MIN_LETTERS and not (lookup == "icontains" and part == value):
            yield part


def _text_filters(where: Where, manager: str, view: ManagerView, path: Path = ()) -> Iterator[_TextFilter]:
    """The conditions that must hold on text without choices; what stands under ``not`` excludes rows, and is none."""
    match where:
        case And(parts) | Or(parts):
            for part in parts:
                yield from _text_filters(part, manager, view, path)
        case Related(relation, part):
            target = _target(manager, relation, view)
            if target is not None:
                yield from _text_filters(part, target, view, (*path, relation))
        case Condition((*hops, name), lookup, str()) if lookup in _TEXT_LOOKUPS:
            owner: str | None = manager
            for hop in hops:
                owner = owner and _target(owner, hop, view)
            if owner is not None and _is_free_text(owner, name, view):
                yield _TextFilter(where, (*path, *where.path))
        case First():
            yield from _text_filters(where.where, manager, view, path)
        case Condition() | Not():
            return
        case _:
            assert_never(where)


def _with(where: Where, condition: Condition, part: str) -> Where:
    """The same filter, but for one condition, which looks for ``part`` anywhere in the text."""
    match where:
        case Condition():
            return dataclasses.replace(where, lookup="icontains", value=part) if where is condition else where
        case And(parts):
            return And(tuple(_with(item, condition, part) for item in parts))
        case Or(parts):
            return Or(tuple(_with(item, condition, part) for item in parts))
        case Related(relation, inner):
            return Related(relation, _with(inner, condition, part))
        case First():
            within = _with(where.where, condition, part)
            assert isinstance(within, And)  # noqa: S101 (as above)
            return dataclasses.replace(where, where=within)
        case Not():
            return where
        case _:
            assert_never(where)


def _is_free_text(manager: str, name: str, view: ManagerView) -> bool:
    info = view.get(manager)
    field = next((field for field in info.fields if field.name == name), None) if info else None
    return field is not None and field.type == "string" and not field.choices and not field.computed


def _target(manager: str, relation: str, view: ManagerView) -> str | None:
    info = view.get(manager)
    return next((item.target for item in info.relations if item.name == relation), None) if info else None
