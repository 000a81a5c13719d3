"""What a model could have meant when a text filter matches nothing: rows that a slightly wider filter matches.

People and models spell "aluminum", the records say "Aluminium EN AW-6060"; they look for a project's name among the
names of parts, and it stands one relation away. Shown those rows, under a name that cannot be taken for the answer to
the filter that was sent, a small model goes on; told nothing, it reports that there is none. The look costs a few small
reads, and only when a query found no row.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, assert_never

from gm_chat.managers.api import And, Condition, First, Not, Or, QueryPlan, Related, Selection
from gm_chat.plugin import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gm_chat.managers.api import FieldInfo, ManagerInfo, ManagerView, Path, Where
    from gm_chat.managers.measures import AggregatePlan
    from gm_chat.plugin import ToolContext

__all__ = ["similar_filter", "similar_rows"]

MAX_CONDITIONS: Final = 2
MAX_ROWS: Final = 10
MIN_LETTERS: Final = 3
MAX_LENGTH: Final = 60
"""A value longer than this is quoted by its beginning."""

MAX_SECONDS: Final = 3.0
"""The look ends after this, as nobody asked for it."""

MAX_HOPS: Final = 2
MAX_MANAGERS: Final = 12
"""Managers nearby of whose texts values are sought, counted over the whole look."""

_TEXT_LOOKUPS: Final = frozenset(
    {"exact", "iexact", "contains", "icontains", "startswith", "istartswith", "endswith", "iendswith"}
)


@dataclass(frozen=True, slots=True)
class _TextFilter:
    """A condition of the plan on a text field, the field's path from the plan's root, and the field's manager."""

    condition: Condition
    path: Path
    owner: str

    def texts(self) -> list[str]:
        """The text that is sought, and its longest word."""
        text = str(self.condition.value).strip()
        return [text, max(re.split(r"\W+", text), key=len)]


async def similar_rows(plan: QueryPlan, view: ManagerView, context: ToolContext) -> dict[str, Any]:
    """Keys to add to the result of a plan that matched nothing: ``hint`` and ``similar_rows``, or none.

    Reads as the actor, so that they can hold nothing that a query could not. The time that is left bounds the look:
    when it is over, the answer that there is no row stands alone.
    """
    limit = time.monotonic() + MAX_SECONDS
    look = _Look(plan, view, context, limit if context.deadline is None else min(context.deadline, limit))
    for found in list(_text_filters(plan.where, plan.manager, view))[:MAX_CONDITIONS]:
        for step in (look.spelled_otherwise, look.elsewhere, look.begun_alike):
            try:
                hint = await step(found)
            except ToolError as error:  # a source may be unable to run one of the filters
                if error.code == "timeout":
                    return {}
                continue
            if hint:
                return hint
    return {}


async def similar_filter(plan: AggregatePlan, view: ManagerView, context: ToolContext) -> dict[str, Any]:
    """As :func:`similar_rows`, for a computation whose result may come from no row at all: ``hint`` alone, or none."""
    info = view.get(plan.manager)
    names = [field.name for field in info.fields if not field.computed][:1] if info is not None else []
    if not names or next(_text_filters(plan.where, plan.manager, view), None) is None:
        return {}
    rows = QueryPlan(manager=plan.manager, selection=Selection(tuple(names)), where=plan.where, limit=1)
    try:
        page = await context.managers.query(rows, context.actor, deadline=context.deadline)
    except ToolError:
        return {}
    found = {} if page.total_count else await similar_rows(rows, view, context)
    return {"hint": found["hint"]} if found else {}


@dataclass(slots=True)
class _Look:
    """One look for what a plan without rows may have meant; it counts the managers that it has searched."""

    plan: QueryPlan
    view: ManagerView
    context: ToolContext
    deadline: float
    searched: int = 0

    async def spelled_otherwise(self, found: _TextFilter) -> dict[str, Any]:
        """Rows that hold the text, or its longest word, anywhere in the field."""
        return await self._in_parts(found, found.texts())

    async def begun_alike(self, found: _TextFilter) -> dict[str, Any]:
        """Rows that hold a beginning of its longest word: endings differ more often than beginnings."""
        word = found.texts()[-1]
        return await self._in_parts(found, [word[: -(-2 * len(word) // 3)], word[: len(word) // 2]])

    async def elsewhere(self, found: _TextFilter) -> dict[str, Any]:
        """Rows that hold the text in another field, of the same manager or of one that it is related to."""
        text = found.texts()[0]
        if len(text) < MIN_LETTERS:
            return {}
        for paths, manager in _nearby(found.owner, self.view):
            fields = [field.name for field in manager.fields if _is_free_text(field)]
            if manager.name == found.owner:
                fields.remove(found.condition.path[-1])
            if not fields:
                continue
            if self.searched == MAX_MANAGERS:
                break
            self.searched += 1
            holders = await self._fields_with(text, manager.name, fields)
            for path, name in itertools.product(paths, holders):
                hint = await self._rows(found, (*path, name), text)
                if hint:
                    return hint
        return {}

    async def _fields_with(self, text: str, manager: str, fields: list[str]) -> list[str]:
        """The fields that hold the text in a row of the manager: sought there first, as that is one plain read."""
        where = And((Or(tuple(Condition((name,), "icontains", text) for name in fields)),))
        plan = QueryPlan(manager=manager, selection=Selection(tuple(fields)), where=where, limit=1)
        page = await self.context.managers.query(plan, self.context.actor, deadline=self.deadline)
        return [name for row in page.data for name in fields if text.casefold() in str(row[name]).casefold()]

    async def _in_parts(self, found: _TextFilter, parts: Iterable[str]) -> dict[str, Any]:
        for part in dict.fromkeys(parts):
            is_same = found.condition.lookup == "icontains" and part == found.condition.value
            if len(part) >= MIN_LETTERS and not is_same:
                hint = await self._rows(found, found.condition.path[-1:], part)
                if hint:
                    return hint
        return {}

    async def _rows(self, found: _TextFilter, path: Path, text: str) -> dict[str, Any]:
        """The plan's rows where ``text`` is sought at ``path`` from the condition's owner, and how to ask for them."""
        where = _with(self.plan.where, found.condition, (*found.condition.path[:-1], *path), text)
        assert isinstance(where, And)  # noqa: S101 (a plan's root stays what it is)
        near = dataclasses.replace(self.plan, where=where, limit=MAX_ROWS, offset=0)
        page = await self.context.managers.query(near, self.context.actor, deadline=self.deadline)
        if not page.total_count:
            return {}
        written = {f"{'__'.join((*found.path[:-1], *path))}__icontains": text}
        return {
            "hint": f"No row has {'__'.join(found.path)} {str(found.condition.value)[:MAX_LENGTH]!r}. The filter "
            f"{json.dumps(written, ensure_ascii=False)} instead matches {page.total_count} rows.",
            "similar_rows": list(page.data),
        }


def _nearby(name: str, view: ManagerView) -> Iterator[tuple[list[Path], ManagerInfo]]:
    """The manager itself and those around it, nearest first, each with the shortest relation paths that lead there."""
    reached: dict[str, list[Path]] = {name: [()]}
    known = {name}
    for _ in range(MAX_HOPS + 1):
        further: dict[str, list[Path]] = {}
        for manager, paths in reached.items():
            info = view.get(manager)
            if info is None:
                continue
            yield paths, info
            if manager in view.hubs and manager != name:
                continue
            for relation in info.relations:
                if relation.target not in known:
                    further.setdefault(relation.target, []).extend((*path, relation.name) for path in paths)
        known.update(further)
        reached = further


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
            info = view.get(owner) if owner is not None else None
            if info is not None and any(_is_free_text(field) for field in info.fields if field.name == name):
                yield _TextFilter(where, (*path, *where.path), info.name)
        case First():
            yield from _text_filters(where.where, manager, view, path)
        case Condition() | Not():
            return
        case _:
            assert_never(where)


def _with(where: Where, condition: Condition, path: Path, text: str) -> Where:
    """The same filter, but for one condition, which looks for ``text`` anywhere in what stands at ``path``."""
    match where:
        case Condition():
            return _contains(path, text) if where is condition else where
        case And(parts):
            return And(tuple(_with(item, condition, path, text) for item in parts))
        case Or(parts):
            return Or(tuple(_with(item, condition, path, text) for item in parts))
        case Related(relation, inner):
            return Related(relation, _with(inner, condition, path, text))
        case First():
            within = _with(where.where, condition, path, text)
            assert isinstance(within, And)  # noqa: S101 (as above)
            return dataclasses.replace(where, where=within)
        case Not():
            return where
        case _:
            assert_never(where)


def _contains(path: Path, text: str) -> Where:
    found: Where = Condition(path[-1:], "icontains", text)
    for relation in reversed(path[:-1]):
        found = Related(relation, found)
    return found


def _is_free_text(field: FieldInfo) -> bool:
    is_text = field.type == "string" and not field.choices and not field.computed
    return is_text and "icontains" in field.lookups


def _target(manager: str, relation: str, view: ManagerView) -> str | None:
    info = view.get(manager)
    return next((item.target for item in info.relations if item.name == relation), None) if info else None
