"""What a model could have meant when its filters match nothing: rows that slightly wider ones match.

People and models spell "aluminum", the records say "Aluminium EN AW-6060"; they look for a project's name among the
names of parts, and it stands one relation away; they ask for the cheapest with a price below zero. Shown those rows,
under a name that cannot be taken for the answer to the filter that was sent, a small model goes on; told nothing, it
reports that there is none. The look costs a few small reads, and only when a query found no row. Whatever it comes to,
the result that it is added to stands.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import logging
import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from gm_chat.managers.api import And, Condition, FieldReference, Not, QueryPlan, Selection
from gm_chat.managers.conditions import added, conditions_of, dropped, exchanged, names_of
from gm_chat.plugin import ToolError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping

    from gm_chat.managers.api import FieldInfo, ManagerInfo, ManagerView, Path, QueryPage, Where
    from gm_chat.managers.conditions import Found
    from gm_chat.managers.measures import AggregatePlan
    from gm_chat.plugin import ToolContext

__all__ = ["is_free_text", "similar_filter", "similar_rows"]

logger = logging.getLogger("gm_chat.tools")

MAX_CONDITIONS: Final = 2
MAX_ROWS: Final = 10
MAX_OTHERS: Final = 5
"""Rows that do not satisfy a filter, for each that one is shown."""
MIN_LETTERS: Final = 3
MAX_LETTERS: Final = 200
"""A longer text is no name."""
MAX_LENGTH: Final = 60
"""A value longer than this is quoted by its beginning."""

MAX_SECONDS: Final = 3.0
"""The look ends after this, as nobody asked for it."""

MAX_HOPS: Final = 2
MAX_SEARCHES: Final = 16
"""Reads of fields nearby in which a text is sought, over the whole look."""
MAX_PATHS: Final = 6
"""Reads of the plan with the text at another place, over the whole look."""

_TEXT_LOOKUPS: Final = frozenset(
    {"exact", "iexact", "contains", "icontains", "startswith", "istartswith", "endswith", "iendswith"}
)


async def similar_rows(
    args: Mapping[str, Any], plan: QueryPlan, view: ManagerView, context: ToolContext
) -> dict[str, Any]:
    """Keys to add to the result of a plan that matched nothing: ``similar_rows`` with what finds them, or none.

    That is a ``hint`` for a text or a flag, and for bounds ``matches_without``: how many rows there are without the
    filter on a field, by the field's path. Where the very text stands in a record, ``corrected`` are the call's
    ``args`` with the filter that finds it.

    Reads as the actor, so that they can hold nothing that a query could not. The time that is left bounds the look:
    when it is over, the answer that there is no row stands alone.
    """
    look = _Look(plan, view, context, args)
    return await look.first_of(look.for_texts, look.for_flags, look.without_one)


async def similar_filter(
    args: Mapping[str, Any], plan: AggregatePlan, view: ManagerView, context: ToolContext
) -> dict[str, Any]:
    """As :func:`similar_rows`, for a computation whose result may come from no row at all; no rows are shown."""
    info = view.get(plan.manager)
    names = [item.name for item in info.fields if not item.computed][:1] if info is not None else []
    rows = QueryPlan(manager=plan.manager, selection=Selection(tuple(names)), where=plan.where, limit=1)
    look = _Look(rows, view, context, args)
    if not names or not look.texts:
        return {}
    found = await look.first_of(look.for_texts_if_empty)
    return {key: found[key] for key in ("hint", "corrected") if key in found}


@dataclass(slots=True)
class _Look:
    """One look for what a plan without rows may have meant; it counts what it has read."""

    plan: QueryPlan
    view: ManagerView
    context: ToolContext
    args: Mapping[str, Any]
    texts: list[Found] = field(init=False)
    deadline: float = field(init=False)
    searches: int = 0
    paths: int = 0

    def __post_init__(self) -> None:
        """End with the call's own time, or with the look's own."""
        limit = time.monotonic() + MAX_SECONDS
        self.deadline = limit if self.context.deadline is None else min(self.context.deadline, limit)
        found = filter(_is_text, conditions_of(self.plan.where, self.plan.manager, self.view))
        self.texts = list(itertools.islice(found, MAX_CONDITIONS))

    async def first_of(self, *steps: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        """What the first step that finds something says. No failure of another's data is one of the result's."""
        for step in steps:
            try:
                if hint := await step():
                    return hint
            except ToolError as error:  # a source may be unable to run one of the filters
                if error.code == "timeout":
                    break
            except Exception:
                logger.exception("the look for rows near those of %s failed", self.plan.manager)
                break
        return {}

    async def for_texts_if_empty(self) -> dict[str, Any]:
        """As :meth:`for_texts`, unless there is a row after all."""
        page = await self._read(self.plan)
        return {} if page.total_count else await self.for_texts()

    async def for_texts(self) -> dict[str, Any]:
        """Rows that a wider filter on a text finds, or the same text elsewhere, where the text is what nothing has."""
        for found in self.texts:
            if await self._is_there(found):
                continue
            for step in (self.spelled_otherwise, self.elsewhere, self.begun_alike):
                try:
                    if hint := await step(found):
                        return hint
                except ToolError as error:
                    if error.code == "timeout":
                        raise
        return {}

    async def _is_there(self, found: Found) -> bool:
        """Whether some row has the text, so that another filter is what keeps the rows out."""
        if self.plan.where.parts == (found.condition,):
            return False
        alone = And((dataclasses.replace(found.condition, path=found.path[-1:]),))
        selection = Selection((found.field.name,))
        page = await self._read(QueryPlan(manager=found.owner, selection=selection, where=alone, limit=1))
        return bool(page.total_count)

    async def spelled_otherwise(self, found: Found) -> dict[str, Any]:
        """Rows that hold the text, or its longest word, anywhere in the field."""
        text, word = _text_and_word(found)
        return await self._in_parts(found, [text, word])

    async def begun_alike(self, found: Found) -> dict[str, Any]:
        """Rows that hold a beginning of its longest word: endings differ more often than beginnings.

        What holds a figure is told apart from its like by just that.
        """
        text, word = _text_and_word(found)
        if _has_figure(text):
            return {}
        return await self._in_parts(found, [word[: -(-2 * len(word) // 3)], word[: len(word) // 2]])

    async def elsewhere(self, found: Found) -> dict[str, Any]:
        """Rows that hold the text in another field, of the plan's manager or of one that it is related to."""
        text, _ = _text_and_word(found)
        if not found.is_required or not MIN_LETTERS <= len(text) <= MAX_LETTERS:
            return {}
        others = dropped(self.plan.where, found.condition)
        for paths, manager in _nearby(self.plan.manager, self.view):
            for name in [item.name for item in manager.fields if is_free_text(item)]:
                ways = [path for hops in paths if (path := (*hops, name)) != found.path]
                if not ways or not await self._holds(manager.name, name, text):
                    continue
                for path in ways:
                    self.paths += 1
                    if self.paths > MAX_PATHS:
                        return {}
                    if hint := await self._rows(found, added(others, path, "icontains", text), _holding(path, text)):
                        return hint
        return {}

    async def for_flags(self) -> dict[str, Any]:
        """Rows where a flag is off that the filter wants empty, though it never is: "not magnetic" as ``isnull``."""
        for found in conditions_of(self.plan.where, self.plan.manager, self.view):
            if _is_empty_flag(found):
                off = dataclasses.replace(found.condition, lookup="exact", value=False)
                where = exchanged(self.plan.where, found.condition, off)
                if hint := await self._rows(found, where, {"__".join(found.path): False}):
                    return hint
        return {}

    async def without_one(self) -> dict[str, Any]:
        """Rows that one filter keeps out alone: a bound that nothing reaches, a choice that nothing has.

        A name or a key is no such filter: that nothing is called so is an answer. So is that nothing has a status,
        if nothing else was asked.
        """
        parts = self.plan.where.parts
        if len(parts) == 1 and all(map(_is_kind, conditions_of(parts[0], self.plan.manager, self.view))):
            return {}
        counts: dict[str, int] = {}
        rows: list[Any] = []
        for part in [part for part in parts if self._is_bound(part)][:MAX_CONDITIONS]:
            where = And(tuple(other for other in parts if other is not part))
            page = await self._near(where, MAX_OTHERS)
            if page.total_count:
                counts[", ".join(names_of(part))] = page.total_count
                rows = rows or list(page.data)
        return {"matches_without": counts, "similar_rows": rows} if rows else {}

    def _is_bound(self, part: Where) -> bool:
        return not isinstance(part, Not) and not any(map(_is_name, conditions_of(part, self.plan.manager, self.view)))

    async def _holds(self, manager: str, name: str, text: str) -> bool:
        """Whether a row of the manager has the text in the field: one plain read, before any through relations."""
        if self.searches == MAX_SEARCHES:
            return False
        self.searches += 1
        where = And((Condition((name,), "icontains", text),))
        plan = QueryPlan(manager=manager, selection=Selection((name,)), where=where, limit=1)
        try:
            page = await self._read(plan)
        except ToolError as error:  # too much to read for one source is nothing to another
            if error.code == "timeout":
                raise
            return False
        return bool(page.total_count)

    async def _in_parts(self, found: Found, parts: Iterable[str]) -> dict[str, Any]:
        for part in dict.fromkeys(parts):
            is_same = found.condition.lookup == "icontains" and part == found.condition.value
            if MIN_LETTERS <= len(part) <= MAX_LETTERS and not is_same:
                wider = dataclasses.replace(found.condition, lookup="icontains", value=part)
                where = exchanged(self.plan.where, found.condition, wider)
                if hint := await self._rows(found, where, _holding(found.path, part)):
                    return hint
        return {}

    async def _rows(self, found: Found, where: And, written: Mapping[str, str | bool]) -> dict[str, Any]:
        """The rows of the plan with another filter, and how that is written."""
        page = await self._near(where, MAX_ROWS)
        if not page.data:
            return {}
        name, (value,) = "__".join(found.path), written.values()
        nothing = f"lacks {name}" if value is False else f"has {name} {str(found.condition.value)[:MAX_LENGTH]!r}"
        is_meant = value in (False, _text_and_word(found)[0])
        return (self._corrected(found, written) if is_meant else {}) | {
            "hint": f"No row {nothing}. The filter {json.dumps(written, ensure_ascii=False)} instead matches "
            f"{page.total_count} rows.",
            "similar_rows": list(page.data),
        }

    def _corrected(self, found: Found, written: Mapping[str, str | bool]) -> dict[str, Any]:
        """The call with one filter for another, if that is a key of ``filters`` by itself."""
        filters = self.args.get("filters")
        value = found.condition.value
        if not isinstance(filters, dict):
            return {}
        keys = [key for key, item in filters.items() if item == value]
        if len(keys) != 1 or not keys[0].startswith("__".join(found.path)):
            return {}
        others = {key: item for key, item in filters.items() if key not in (keys[0], *written)}
        return {"corrected": {**self.args, "filters": {**others, **written}}}

    async def _near(self, where: And, rows: int) -> QueryPage:
        most = min(rows, self.context.settings["max_results"])
        return await self._read(dataclasses.replace(self.plan, where=where, limit=most, offset=0))

    async def _read(self, plan: QueryPlan) -> QueryPage:
        return await self.context.managers.query(plan, self.context.actor, deadline=self.deadline)


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


def _holding(path: Path, text: str) -> dict[str, str]:
    return {f"{'__'.join(path)}__icontains": text}


def _text_and_word(found: Found) -> tuple[str, str]:
    """The text that is sought, and its longest word: the text itself where that has a figure."""
    text = str(found.condition.value).strip()
    return text, text if _has_figure(text) else max(re.split(r"\W+", text), key=len)


def _has_figure(text: str) -> bool:
    return any(map(str.isdigit, text))


def _is_text(found: Found) -> bool:
    condition = found.condition
    return is_free_text(found.field) and isinstance(condition.value, str) and condition.lookup in _TEXT_LOOKUPS


def _is_kind(found: Found) -> bool:
    """Whether a condition wants one of the few values that a field has."""
    has_few = bool(found.field.choices) or found.field.type == "boolean"
    return has_few and found.condition.lookup in ("exact", "iexact", "in")


def _is_name(found: Found) -> bool:
    """Whether a condition says what a row is called: by its key, or by a text."""
    lookup, value = found.condition.lookup, found.condition.value
    if found.field.key or found.field.type == "uuid":
        return lookup in ("exact", "in")
    return is_free_text(found.field) and lookup != "isnull" and not isinstance(value, FieldReference)


def _is_empty_flag(found: Found) -> bool:
    is_empty = found.condition.lookup == "isnull" and found.condition.value is True
    return is_empty and found.field.type == "boolean" and not found.field.nullable


def is_free_text(item: FieldInfo) -> bool:
    """Whether a field holds text of any kind, parts of which can be sought."""
    return item.type == "string" and not item.choices and not item.computed and "icontains" in item.lookups
