"""One GraphQL document: names come from the schema, values travel as variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gm_chat_source_graphql.shapes import ListShape, Slot

__all__ = ["Arguments", "Document"]


class Arguments:
    """Values for a field's arguments, put where their slots say."""

    def __init__(self) -> None:
        """Start with none."""
        self.values: dict[str, Any] = {}

    def put(self, slot: Slot, value: Any) -> bool:
        """Put a value in its place; false if that is taken."""
        target = self.values
        for name in slot.path[:-1]:
            target = target.setdefault(name, {})
        if slot.path[-1] in target:
            return False
        target[slot.path[-1]] = value
        return True


class Document:
    """An operation while it is written. ``page_size`` is the most rows to ask of one list at once."""

    def __init__(self, operation: str = "query", *, page_size: int = 100) -> None:
        """Start an operation of that kind."""
        self.variables: dict[str, Any] = {}
        self.page_size = page_size
        self._operation = operation
        self._declared: list[str] = []

    def variable(self, type_: Any, value: Any) -> str:
        """Declare a variable of a GraphQL type and return how it is written."""
        name = f"v{len(self._declared)}"
        self._declared.append(f"${name}: {type_}")
        self.variables[name] = value
        return f"${name}"

    def arguments(self, values: Mapping[str, Any], declared: Mapping[str, Any]) -> str:
        """``(name: $v0)`` for the values; nothing for none. ``declared`` are the field's arguments."""
        parts = [f"{name}: {self.variable(declared[name].type, value)}" for name, value in values.items()]
        return f"({', '.join(parts)})" if parts else ""

    def page(self, shape: ListShape, size: int | None) -> dict[str, Any]:
        """The arguments that ask for the first ``size`` rows."""
        arguments = Arguments()
        if size is not None and shape.paging is not None:
            arguments.put(shape.paging.size, size)
            if shape.paging.kind != "cursor":
                arguments.put(shape.paging.position, 1 if shape.paging.kind == "page" else 0)
        return arguments.values

    def rows(self, shape: ListShape, values: Mapping[str, Any], selection: str) -> str:
        """The arguments and selection of a list field whose rows are selected as ``selection``."""
        tree: dict[str, Any] = {}
        for path in (shape.total, shape.more, shape.cursor):
            if path is not None:
                target = tree
                for name in path:
                    target = target.setdefault(name, {})
        target = tree
        for name in shape.rows:
            target = target.setdefault(name, {})
        return self.arguments(values, shape.arguments) + _written(tree, shape.rows, selection)

    def text(self, body: str) -> str:
        """The whole document."""
        declared = f"({', '.join(self._declared)})" if self._declared else ""
        return f"{self._operation} GmChat{declared} {{ {body} }}"


def _written(tree: Mapping[str, Any], rows: tuple[str, ...], selection: str) -> str:
    if not rows:
        return f" {selection}"
    parts = []
    for name, inner in tree.items():
        if name == rows[0]:
            parts.append(name + (_written(inner, rows[1:], selection) if rows[1:] else f" {selection}"))
        else:
            parts.append(name + (f" {_plain(inner)}" if inner else ""))
    return " { " + " ".join(parts) + " }"


def _plain(tree: Mapping[str, Any]) -> str:
    return "{ " + " ".join(name + (f" {_plain(inner)}" if inner else "") for name, inner in tree.items()) + " }"
