"""What is to be fetched of a manager as one GraphQL selection, and what came of it as rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from gm_chat.encoding import jsonable
from gm_chat.managers.api import And, Condition, FieldReference, First, Not, Or, Related
from gm_chat_source_graphql.conditions import refusal_of_first

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gm_chat.managers.api import Order, Path, QueryPlan, Selection, Where
    from gm_chat_source_graphql.describe import Binding
    from gm_chat_source_graphql.document import Document
    from gm_chat_source_graphql.shapes import ListShape

__all__ = ["Cuts", "Level", "Row", "RowList", "dig", "present"]

LIST_ROWS: Final = 100
_WIDE: Final = 10
"""How many times a plan's ``nested_rows`` one answer of the schema may bring before lists are asked for shorter."""


@dataclass(slots=True)
class Row:
    """One object of a manager. ``ones`` are its to-one relations."""

    values: dict[str, Any] = field(default_factory=dict)
    ones: dict[str, Row | None] = field(default_factory=dict)
    lists: dict[str, RowList] = field(default_factory=dict)


@dataclass(slots=True)
class RowList:
    """Rows of a to-many relation; ``is_cut`` if there are, or may be, more."""

    rows: list[Row]
    is_cut: bool


def dig(value: Any, path: tuple[str, ...]) -> Any:
    """The value at the end of a path of objects and lists; ``None`` where it breaks off."""
    for position, name in enumerate(path):
        if isinstance(value, list):
            return [dig(item, path[position:]) for item in value]
        if value is None:
            return None
        value = value[name]
    return value


class Level:
    """The fields and relations of one manager that are asked for."""

    def __init__(self, bindings: Mapping[str, Binding], manager: str) -> None:
        """Start with nothing; ``bindings`` are all managers."""
        self.binding = bindings[manager]
        self._bindings = bindings
        self._fields: dict[str, None] = {}
        self._relations: dict[str, tuple[Level, int]] = {}
        self._asked: dict[str, int | None] = {}

    @classmethod
    def of(cls, plan: QueryPlan, bindings: Mapping[str, Binding]) -> Level:
        """What a plan needs: to show, to filter and to sort."""
        level = cls(bindings, plan.manager)
        level._select(plan.selection)
        level._filter(plan.where)
        level._sort(plan.order)
        return level

    def _select(self, selection: Selection) -> None:
        self._fields |= dict.fromkeys(selection.fields)
        for item in selection.relations:
            self._at(item.name, item.limit)._select(item.selection)

    def _filter(self, where: Where, outer: Level | None = None) -> None:
        match where:
            case And(parts) | Or(parts):
                for part in parts:
                    self._filter(part, outer)
            case Not(part):
                self._filter(part, outer)
            case Related(relation, part):
                self._at(relation)._filter(part, outer or self)
            case First():
                raise refusal_of_first()
            case Condition(path, _, value):
                self.reach(path)
                if isinstance(value, FieldReference):
                    ((outer or self) if value.outer else self).reach(value.path)

    def _sort(self, terms: tuple[Order, ...]) -> None:
        for term in terms:
            self.reach(term.path)

    def filter(self, where: Where) -> None:
        """Ask for what a condition is about."""
        self._filter(where)

    def behind(self, relation: str, where: Where) -> Level:
        """Ask for the rows of a to-many relation, and what a condition on them is about; give their level."""
        level = self._at(relation)
        level._filter(where, self)
        return level

    def reach(self, path: Path) -> None:
        """Ask for a field, through relations that lead to one row."""
        level = self
        for hop in path[:-1]:
            level = level._at(hop)
        level._fields[path[-1]] = None

    def _at(self, relation: str, limit: int | None = None) -> Level:
        target = self.binding.relations[relation].target
        level, asked = self._relations.get(relation, (Level(self._bindings, target), 0))
        self._relations[relation] = (level, max(asked, limit or LIST_ROWS))
        return level

    def write(self, document: Document, parents: int, nested_rows: int) -> str:
        """The selection set. ``parents`` is how many rows of this level one answer may hold."""
        names = [self.binding.key] if self.binding.key is not None else ["__typename"]
        parts = [self.binding.asked(name) + self._inner(name) for name in dict.fromkeys([*names, *self._fields])]
        for name, (level, limit) in self._relations.items():
            shape = self.binding.relations[name].shape
            if shape is None:
                parts.append(f"{self.binding.asked(name)} {level.write(document, parents, nested_rows)}")
                continue
            share = max(1, _WIDE * nested_rows // parents)
            asked = min(limit, share)
            size = self._asked[name] = None
            if shape.paging is not None:
                surplus = 0 if shape.total or shape.more else 1  # nothing else tells whether there are more
                size = self._asked[name] = max(2, min(asked + surplus, document.page_size))
            inner = level.write(document, parents * (size or asked), nested_rows)
            parts.append(self.binding.asked(name) + document.rows(shape, document.page(shape, size), inner))
        return "{ " + " ".join(parts) + " }"

    def _inner(self, name: str) -> str:
        return self.binding.fields[name].selection if name in self._fields else ""

    def read(self, raw: Mapping[str, Any]) -> Row | None:
        """An object of the answer as a row; ``None`` if there is none: one without a key stands for a hidden row."""
        key = self.binding.key
        if key is not None and raw[key] is None:
            return None
        row = Row({name: self._value(name, raw[name]) for name in self._fields})
        for name, (level, _) in self._relations.items():
            shape, value = self.binding.relations[name].shape, raw[name]
            if shape is None:
                row.ones[name] = None if value is None else level.read(value)
            else:
                row.lists[name] = level._read_list(shape, value, self._asked[name])
        return row

    def _value(self, name: str, raw: Any) -> Any:
        try:
            return self.binding.fields[name].parse(raw)
        except (ValueError, KeyError) as error:
            raise ValueError(f"{self.binding.shape.node.name}.{name} gave {raw!r:.60}") from error

    def _read_list(self, shape: ListShape, value: Any, asked: int | None) -> RowList:
        found = dig(value, shape.rows) or []
        rows = self.read_all(found)
        if value is not None and shape.more is not None:
            return RowList(rows, bool(dig(value, shape.more)))
        total = None if shape.total is None else dig(value, shape.total)
        if total is not None:
            return RowList(rows, total > len(found))
        return RowList(rows, asked is not None and len(found) >= asked)

    def read_all(self, raw: list[Any]) -> list[Row]:
        """The rows of a list; what is null in it is hidden."""
        rows = [None if item is None else self.read(item) for item in raw]
        return [row for row in rows if row is not None]


@dataclass(slots=True)
class Cuts:
    """How many rows a to-many relation may bring over a page, and the lists that show fewer than there are."""

    nested_rows: int
    paths: set[Path] = field(default_factory=set)


def present(rows: list[Row], selection: Selection, path: Path, cuts: Cuts) -> list[dict[str, Any]]:
    """Rows in JSON types, with what was selected in its order; nested lists are cut to their limits."""
    shown = [{name: jsonable(row.values[name]) for name in selection.fields} for row in rows]
    for item in selection.relations:
        name, inner = item.name, (*path, item.name)
        if not rows:
            break
        if name in rows[0].ones:
            found = [row.ones[name] for row in rows]
            objects = iter(present([row for row in found if row is not None], item.selection, inner, cuts))
            for target, one in zip(shown, found, strict=True):
                target[name] = None if one is None else next(objects)
            continue
        limit = max(1, cuts.nested_rows // len(rows))
        limit = limit if item.limit is None else min(item.limit, limit)
        lists = [row.lists[name] for row in rows]
        if any(each.is_cut or len(each.rows) > limit for each in lists):
            cuts.paths.add(inner)
        flat = [row for each in lists for row in each.rows[:limit]]
        objects = iter(present(flat, item.selection, inner, cuts))
        for target, each in zip(shown, lists, strict=True):
            target[name] = [next(objects) for _ in each.rows[:limit]]
    return shown
