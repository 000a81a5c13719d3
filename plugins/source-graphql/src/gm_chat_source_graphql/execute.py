"""Runs a :class:`QueryPlan` through a schema's list fields.

A schema that pages, counts, and has arguments for all of a plan's conditions and order gives the page itself. From any
other all rows that match what it has arguments for are read, at most ``max_rows``, and filtered, sorted and counted
here. Arguments are taken at their names' word, and watched: if a row comes back that contradicts one, all are dropped.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from graphql import Undefined, coerce_input_value, version_info

from gm_chat.encoding import jsonable
from gm_chat.managers.api import And, Condition, FieldReference, Order, QueryPage
from gm_chat.plugin import ToolError
from gm_chat_source_graphql.conditions import contradicts, holds, in_order
from gm_chat_source_graphql.document import Arguments, Document
from gm_chat_source_graphql.errors import is_denial, log_errors
from gm_chat_source_graphql.rows import Cuts, Level, dig, present

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gm_chat.managers.api import QueryPlan, Where
    from gm_chat_source_graphql.describe import Binding
    from gm_chat_source_graphql.library import Executable
    from gm_chat_source_graphql.rows import Row
    from gm_chat_source_graphql.shapes import Slot

__all__ = ["Reader", "all_matching", "run_plan"]

_encode: Final = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class Reader:
    """How to ask: the schema, who asks, and how much at once."""

    library: Executable
    bindings: Mapping[str, Binding]
    context: Any
    max_rows: int
    page_size: int


def run_plan(plan: QueryPlan, reader: Reader) -> QueryPage:
    """Run a plan. Blocking. Raises ``ToolError`` with ``too_large``, ``unsupported`` or ``failed``."""
    binding = reader.bindings[plan.manager]
    reading = _Reading(plan, reader, Level.of(plan, reader.bindings))
    pushed, order = _Pushed.of(plan.where, binding), _order(plan.order, binding)
    shape = binding.shape
    if pushed.is_complete and order is not None and shape.paging is not None and shape.total is not None:
        first = plan.offset if shape.paging.kind == "offset" else 0
        if plan.offset + plan.limit <= first + reader.max_rows:
            got = reading.read({**pushed.values(), **order}, first, plan.offset + plan.limit)
            rows, total = got.rows[plan.offset - first :], got.total
            if total is not None and pushed.is_plausible(rows, total) and _is_sorted(rows, plan.order):
                return _page(plan, rows, total)
    return _finish(plan, _matching(plan, reading, pushed))


def all_matching(plan: QueryPlan, reader: Reader, level: Level) -> list[Row]:
    """All rows that satisfy the plan's conditions, with what ``level`` asks for: all of them, or a ``ToolError``."""
    return _matching(plan, _Reading(plan, reader, level), _Pushed.of(plan.where, reader.bindings[plan.manager]))


def _matching(plan: QueryPlan, reading: _Reading, pushed: _Pushed) -> list[Row]:
    got = reading.read(pushed.values(), 0, None)
    if pushed.conditions and not pushed.is_plausible(got.rows, len(got.rows)):
        got = reading.read({}, 0, None)
    return [row for row in got.rows if holds(plan.where, row)]


def _finish(plan: QueryPlan, rows: list[Row]) -> QueryPage:
    return _page(plan, in_order(rows, plan.order)[plan.offset : plan.offset + plan.limit], len(rows))


def _page(plan: QueryPlan, rows: list[Row], total: int) -> QueryPage:
    cuts = Cuts(plan.nested_rows)
    data = present(rows, plan.selection, (), cuts)
    kept = _fitting(data, plan.max_bytes)
    return QueryPage(
        data=data[:kept],
        total_count=total,
        has_more=plan.offset + kept < total,
        truncated=kept < len(data),
        cut_lists=tuple(sorted(cuts.paths)),
    )


def _fitting(data: Sequence[Mapping[str, Any]], budget: int | None) -> int:
    """How many leading rows fit into ``budget`` bytes of JSON."""
    if budget is None:
        return len(data)
    used = 2
    for index, row in enumerate(data):
        used += len(_encode(row).encode("utf-8", "replace")) + 1
        if used > budget:
            return index
    return len(data)


# --- what the schema filters and sorts --------------------------------------------------------------------------


@dataclass(slots=True)
class _Pushed:
    """The conditions that the schema is asked to apply; ``is_complete`` if there are no others."""

    arguments: Arguments = field(default_factory=Arguments)
    conditions: list[Condition] = field(default_factory=list)
    is_complete: bool = True

    @classmethod
    def of(cls, where: And, binding: Binding) -> _Pushed:
        pushed = cls()
        for part in _flat(where):
            slot = None
            if isinstance(part, Condition) and len(part.path) == 1:
                slot = binding.filters.get((part.path[0], part.lookup))
            if slot is None or not isinstance(part, Condition) or not pushed._put(slot, part, binding):
                pushed.is_complete = False
        return pushed

    def values(self) -> dict[str, Any]:
        return self.arguments.values

    def is_plausible(self, rows: Sequence[Row], total: int) -> bool:
        """Whether no row speaks against what the arguments are taken to mean. Of no rows at all, none can."""
        if not self.conditions:
            return True
        return (bool(rows) or not total) and not any(contradicts(each, row) for each in self.conditions for row in rows)

    def _put(self, slot: Slot, condition: Condition, binding: Binding) -> bool:
        names = binding.fields[condition.path[0]].names
        value = condition.value
        if isinstance(value, FieldReference) or value in (None, "", ()):  # the latter mean "no filter" to libraries
            return False
        if condition.lookup == "in":
            raw: Any = [names.get(item, item) if names else jsonable(item) for item in value]
        else:
            raw = names.get(value, value) if names and condition.lookup != "isnull" else jsonable(value)
        if not _fits(raw, slot.type) or not self.arguments.put(slot, raw):
            return False
        self.conditions.append(condition)
        return True


def _fits(raw: Any, type_: Any) -> bool:
    """Whether an input takes the value, which else would fail the whole document. (``Int`` holds 32 bits.)"""
    coerce: Any = coerce_input_value  # graphql-core 3.3 says by its result what 3.2 tells a callback
    if version_info[:2] >= (3, 3):
        return coerce(raw, type_) is not Undefined
    faults: list[Any] = []
    coerce(raw, type_, lambda *fault: faults.append(fault))
    return not faults


def _flat(where: Where) -> Iterator[Where]:
    if isinstance(where, And):
        for part in where.parts:
            yield from _flat(part)
    else:
        yield where


def _order(terms: Sequence[Order], binding: Binding) -> dict[str, Any] | None:
    """The argument that sorts by ``terms`` and then by the key; ``None`` if the schema cannot do just that."""
    if not terms:
        return {}
    order, key = binding.order, binding.key
    if order is None or not order.is_list or key is None or key not in order.fields:
        return None
    pairs = []
    for term in terms:
        if len(term.path) > 1 or term.path[0] not in order.fields:
            return None
        name, directions = order.fields[term.path[0]]
        direction = "DESC" if term.descending else "ASC"
        if binding.nullable(term.path[0]):
            direction += "_NULLS_LAST"
        if direction not in directions.values:
            return None
        pairs.append({name: direction})
    if all(term.path != (key,) for term in terms):
        pairs.append({order.fields[key][0]: "ASC"})
    return {order.name: pairs}


def _is_sorted(rows: Sequence[Row], terms: Sequence[Order]) -> bool:
    """Whether rows come in the order that was asked for, as far as collations of text leave that open."""
    comparable: list[Order] = []
    for term in terms:
        if any(isinstance(row.values[term.path[0]], str) for row in rows):
            break
        comparable.append(term)
    return in_order(rows, comparable) == list(rows)


# --- asking -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Read:
    rows: list[Row]
    total: int | None


@dataclass(slots=True)
class _Reading:
    """One plan's way through the pages of its list field."""

    plan: QueryPlan
    reader: Reader
    level: Level

    def read(self, arguments: Mapping[str, Any], first: int, stop: int | None) -> _Read:
        """The rows from ``first`` up to ``stop``; all of them, at most ``max_rows``, if that is ``None``."""
        shape, limit = self.level.binding.shape, self.reader.max_rows
        rows: list[Row] = []
        keys: set[Any] = set()
        taken, page, cursor, total = first, 1, None, None
        while True:
            size = self.reader.page_size if stop is None else min(self.reader.page_size, stop - taken)
            if shape.paging is not None and shape.paging.kind == "page":
                size = self.reader.page_size  # the same for every page
            position = {"offset": taken, "page": page, "cursor": cursor}
            answer = self._ask(arguments, size, position)
            found = dig(answer, shape.rows) or []
            total = None if shape.total is None else dig(answer, shape.total)
            fresh = self.level.read_all(found)
            rows += fresh
            self._refuse_repeats(found, keys)
            taken, page = taken + len(found), page + 1
            if shape.paging is None or not found or (stop is not None and taken >= stop):
                break
            if total is not None and taken >= total:
                break
            if shape.cursor is not None:
                cursor = dig(answer, shape.cursor)
                if cursor is None or not dig(answer, shape.more or ()):
                    break
            if stop is None and (taken > limit or (total or 0) > limit):
                raise self._too_many()
        if stop is not None:
            rows = rows[: stop - first]
        return _Read(rows, total)

    def _refuse_repeats(self, found: Sequence[Any], keys: set[Any]) -> None:
        """Pages that overlap would be counted twice."""
        key = self.level.binding.key
        for item in found if key is not None else ():
            if item is not None and item[key] is not None:
                if item[key] in keys:
                    raise ToolError("unsupported", f"the pages of {self.plan.manager} overlap; narrow the filters")
                keys.add(item[key])

    def _ask(self, arguments: Mapping[str, Any], size: int, position: Mapping[str, Any]) -> Any:
        binding, plan = self.level.binding, self.plan
        document = Document(page_size=self.reader.page_size)
        values = Arguments()
        values.values = {name: dict(value) if isinstance(value, dict) else value for name, value in arguments.items()}
        paging = binding.shape.paging
        if paging is not None:
            values.put(paging.size, size)
            if position[paging.kind] is not None:
                values.put(paging.position, position[paging.kind])
        inner = self.level.write(document, size if paging is not None else plan.limit, plan.nested_rows)
        text = document.text(binding.root + document.rows(binding.shape, values.values, inner))
        result = self.reader.library.execute(text, document.variables, self.reader.context)
        errors = list(result.errors or ())
        if errors and not all(map(is_denial, errors)):
            log_errors(errors, f"a query of {plan.manager}")
            raise ToolError(
                "failed",
                f"{plan.manager} could not be read: its schema reports an error; try other fields, "
                "or tell the user that it failed",
            )
        return (result.data or {}).get(binding.root)

    def _too_many(self) -> ToolError:
        binding, limit = self.level.binding, self.reader.max_rows
        filters = sorted(
            name if lookup == "exact" else f"{name}__{lookup}" for name, lookup in binding.filters if lookup != "isnull"
        )
        return ToolError(
            "too_large",
            f"more than {limit} rows of {self.plan.manager} would have to be read to filter, sort or add them up; "
            + ("narrow it by a filter that its schema knows" if filters else "its schema has no filters"),
            allowed=filters[:40],
        )
