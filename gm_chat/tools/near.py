"""What a model could have meant when its filters match nothing: rows that slightly wider ones match.

People and models spell "aluminum", the records say "Aluminium EN AW-6060"; they look for a project's name among the
names of parts, and it stands one relation away; they ask for the cheapest with a price below zero. Shown those rows,
under a name that cannot be taken for the answer to the filter that was sent, a small model goes on; told nothing, it
reports that there is none. The look costs a few small reads, and only when a query found no row.
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
MAX_OTHERS: Final = 5
"""Rows that do not satisfy a filter, for each that one is shown."""
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
    """A condition of the plan on a text field, the field's path from the plan's root, and whether each row needs it."""

    condition: Condition
    path: Path
    is_required: bool

    def texts(self) -> list[str]:
        """The text that is sought, and its longest word."""
        text = str(self.condition.value).strip()
        return [text, max(re.split(r"\W+", text), key=len)]


async def similar_rows(plan: QueryPlan, view: ManagerView, context: ToolContext) -> dict[str, Any]:
    """Keys to add to the result of a plan that matched nothing: ``hint`` and ``similar_rows``, or none.

    Reads as the actor, so that they can hold nothing that a query could not. The time that is left bounds the look:
    when it is over, the answer that there is no row stands alone.
    """
    look = _Look.of(plan, view, context)
    for step in (look.for_texts, look.without_one):
        try:
            if hint := await step():
                return hint
        except ToolError:
            return {}
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
        found = {} if page.total_count else await _Look.of(rows, view, context).for_texts()
    except ToolError:
        return {}
    return {"hint": found["hint"]} if found else {}


@dataclass(slots=True)
class _Look:
    """One look for what a plan without rows may have meant; it counts the managers that it has searched."""

    plan: QueryPlan
    view: ManagerView
    context: ToolContext
    deadline: float
    searched: int = 0

    @classmethod
    def of(cls, plan: QueryPlan, view: ManagerView, context: ToolContext) -> _Look:
        """A look that ends with the call's own time, or its own."""
        limit = time.monotonic() + MAX_SECONDS
        return cls(plan, view, context, limit if context.deadline is None else min(context.deadline, limit))

    async def for_texts(self) -> dict[str, Any]:
        """Rows that a wider filter on a text finds, or the same text elsewhere."""
        for found in list(_text_filters(self.plan.where, self.plan.manager, self.view))[:MAX_CONDITIONS]:
            for step in (self.spelled_otherwise, self.elsewhere, self.begun_alike):
                try:
                    if hint := await step(found):
                        return hint
                except ToolError as error:  # a source may be unable to run one of the filters
                    if error.code == "timeout":
                        raise
        return {}

    async def spelled_otherwise(self, found: _TextFilter) -> dict[str, Any]:
        """Rows that hold the text, or its longest word, anywhere in the field."""
        return await self._in_parts(found, found.texts())

    async def begun_alike(self, found: _TextFilter) -> dict[str, Any]:
        """Rows that hold a beginning of its longest word: endings differ more often than beginnings."""
        word = found.texts()[-1]
        return await self._in_parts(found, [word[: -(-2 * len(word) // 3)], word[: len(word) // 2]])

    async def elsewhere(self, found: _TextFilter) -> dict[str, Any]:
        """Rows that hold the text in another field, of the plan's manager or of one that it is related to."""
        text = found.texts()[0]
        if not found.is_required or len(text) < MIN_LETTERS:
            return {}
        others = _dropped(self.plan.where, found.condition).parts
        for paths, manager in _nearby(self.plan.manager, self.view):
            fields = [field.name for field in manager.fields if _is_free_text(field)]
            if not fields:
                continue
            if self.searched == MAX_MANAGERS:
                break
            self.searched += 1
            holders = await self._fields_with(text, manager.name, fields)
            for hops, name in itertools.product(paths, holders):
                path = (*hops, name)
                where = And((*others, _contains(path, text)))
                if path != found.path and (hint := await self._rows(found, where, path, text)):
                    return hint
        return {}

    async def without_one(self) -> dict[str, Any]:
        """Rows that one filter keeps out alone: a bound that nothing reaches, a choice that nothing has.

        A name is no such filter: that nothing is called so is an answer.
        """
        parts = self.plan.where.parts
        told: list[str] = []
        rows: list[Any] = []
        for part in [part for part in parts if self._is_bound(part)][:MAX_CONDITIONS]:
            where = And(tuple(other for other in parts if other is not part))
            near = dataclasses.replace(self.plan, where=where, limit=MAX_OTHERS, offset=0)
            page = await self.context.managers.query(near, self.context.actor, deadline=self.deadline)
            if page.total_count:
                told.append(f"without the filter on {' and '.join(_names(part))} there are {page.total_count}")
                rows = rows or list(page.data)
        if not rows:
            return {}
        return {
            "hint": f"No row satisfies all filters; {'; '.join(told)}: see similar_rows, which do not satisfy it.",
            "similar_rows": rows,
        }

    def _is_bound(self, part: Where) -> bool:
        return not isinstance(part, Not) and not any(_text_filters(part, self.plan.manager, self.view))

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
                wider = dataclasses.replace(found.condition, lookup="icontains", value=part)
                where = _replaced(self.plan.where, found.condition, wider)
                if hint := await self._rows(found, where, found.path, part):
                    return hint
        return {}

    async def _rows(self, found: _TextFilter, where: And, path: Path, text: str) -> dict[str, Any]:
        """The rows of the plan with another filter, which seeks ``text`` at ``path``, and how to ask for them."""
        near = dataclasses.replace(self.plan, where=where, limit=MAX_ROWS, offset=0)
        page = await self.context.managers.query(near, self.context.actor, deadline=self.deadline)
        if not page.total_count:
            return {}
        written = {f"{'__'.join(path)}__icontains": text}
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


def _text_filters(
    where: Where, manager: str, view: ManagerView, path: Path = (), *, is_required: bool = True
) -> Iterator[_TextFilter]:
    """The conditions that must hold on text without choices; what stands under ``not`` excludes rows, and is none."""
    match where:
        case And(parts) | Or(parts):
            is_required = is_required and isinstance(where, And)
            for part in parts:
                yield from _text_filters(part, manager, view, path, is_required=is_required)
        case Related(relation, part):
            target = _target(manager, relation, view)
            if target is not None:
                yield from _text_filters(part, target, view, (*path, relation), is_required=is_required)
        case Condition((*hops, name), lookup, str()) if lookup in _TEXT_LOOKUPS:
            owner: str | None = manager
            for hop in hops:
                owner = owner and _target(owner, hop, view)
            info = view.get(owner) if owner is not None else None
            if info is not None and any(_is_free_text(field) for field in info.fields if field.name == name):
                yield _TextFilter(where, (*path, *where.path), is_required)
        case First():
            yield from _text_filters(where.where, manager, view, path, is_required=False)
        case Condition() | Not():
            return
        case _:
            assert_never(where)


def _replaced(where: And, condition: Condition, other: Where) -> And:
    """The same filter with another condition in the place of one."""

    def walk(part: Where) -> Where:
        match part:
            case Condition():
                return other if part is condition else part
            case And():
                return every(part)
            case Or(parts):
                return Or(tuple(map(walk, parts)))
            case Related(relation, inner):
                return Related(relation, walk(inner))
            case First():
                return dataclasses.replace(part, where=every(part.where))
            case Not():
                return part
            case _:
                assert_never(part)

    def every(part: And) -> And:
        return And(tuple(map(walk, part.parts)))

    return every(where)


def _dropped(where: And, condition: Condition) -> And:
    """The same filter without a condition that it requires, and without the relations that lead to nothing else."""
    parts: list[Where] = []
    for part in where.parts:
        match part:
            case Condition() if part is condition:
                continue
            case And():
                parts.extend(_dropped(part, condition).parts)
            case Related(relation, And() as inner):
                rest = _dropped(inner, condition)
                if rest.parts or not inner.parts:
                    parts.append(Related(relation, rest))
            case _:
                parts.append(part)
    return And(tuple(parts))


def _names(where: Where) -> list[str]:
    """The fields that a filter is about, as paths from the plan's root, each once."""
    match where:
        case Condition(path):
            found = ["__".join(path)]
        case And(parts) | Or(parts):
            found = [name for part in parts for name in _names(part)]
        case Related(relation, part):
            found = [f"{relation}__{name}" for name in _names(part)] or [relation]
        case Not(part):
            found = _names(part)
        case First():
            found = ["first"]
        case _:
            assert_never(where)
    return list(dict.fromkeys(found))


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
