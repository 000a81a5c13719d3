"""What the tools said of the managers, in one shape, whether it came from the search or from the full schema."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from gm_chat_provider_offline.words import name_words, stem, stems

__all__ = ["LABELS", "Field", "Manager", "Relation", "read_manager", "read_managers"]

LABELS: Final = (
    "name",
    "first_name",
    "last_name",
    "title",
    "number",
    "code",
    "label",
    "designation",
    "reference",
    "subject",
    "sku",
)
"""Names of fields by which people know a thing, the most telling first."""

_TRAILING: Final = frozenset({"on", "at", "date", "day", "kg", "mm", "eur", "usd", "percent"})
"""Last words of field names that people leave out: ``due_on`` is "due", ``lead_time_days`` "lead time"."""

_QUALIFICATION: Final = re.compile(
    r"[,.:;(]|\b(?:that|which|who|whose|of|for|in|on|at|by|from|to|with|and)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Field:
    """A scalar field; ``choices`` are (value, label) pairs. ``type`` is empty where only the name is known."""

    name: str
    type: str = ""
    choices: tuple[tuple[Any, str], ...] = ()
    computed: bool = False
    description: str = ""

    @property
    def is_text(self) -> bool:
        """Whether it holds free text."""
        return self.type == "string" and not self.choices and not self.computed

    @property
    def is_ordered(self) -> bool:
        """Whether "more" and "less" mean something."""
        return (
            self.type in {"integer", "number", "decimal", "date", "datetime", "time", "duration"} and not self.computed
        )

    @property
    def is_dated(self) -> bool:
        """Whether it holds a day."""
        return self.type in {"date", "datetime"}

    def called(self) -> frozenset[tuple[str, ...]]:
        """The ways in which a question may name it, as stems."""
        words = stems(name_words(self.name))
        short = words[:-1] if len(words) > 1 and words[-1] in _TRAILING else words
        return frozenset({words, short})

    def label(self) -> str:
        """The name in words."""
        return " ".join(name_words(self.name)).lower()

    def choice(self, words: tuple[str, ...]) -> Any:
        """The choice whose value or label consists of these stems; ``None`` if there is none."""
        for value, text in self.choices:
            if words in (stems(name_words(str(value))), stems(str(text).split())):
                return value
        return None


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation to another manager. ``many`` is ``None`` where only the name is known."""

    name: str
    target: str
    many: bool | None = None


@dataclass(frozen=True, slots=True)
class Manager:
    """A manager as one actor sees it."""

    name: str
    description: str = ""
    fields: tuple[Field, ...] = ()
    relations: tuple[Relation, ...] = ()
    aliases: tuple[str, ...] = field(default=())

    @property
    def words(self) -> tuple[str, ...]:
        """The words of its name without the suffix ``Manager``."""
        words = name_words(self.name)
        return words[:-1] if len(words) > 1 and words[-1] == "Manager" else words

    @property
    def noun(self) -> str:
        """Its name as a noun: ``order line``; an acronym keeps its capitals."""
        return " ".join(word if word.isupper() and len(word) > 1 else word.lower() for word in self.words)

    def called(self) -> Iterator[tuple[str, ...]]:
        """The ways in which a question may name it, as stems."""
        yield stems(self.words)
        for alias in self.aliases:
            yield stems(alias.split())

    def to_one(self) -> Iterator[Relation]:
        """Relations to a single row each."""
        return (relation for relation in self.relations if relation.many is False)

    def to_many(self) -> Iterator[Relation]:
        """Relations to lists of rows."""
        return (relation for relation in self.relations if relation.many)

    def texts(self) -> list[Field]:
        """Free-text fields, those by which people know a row first."""
        texts = [item for item in self.fields if item.is_text]
        return sorted(texts, key=lambda item: LABELS.index(item.name) if item.name in LABELS else len(LABELS))

    def field_called(self, words: tuple[str, ...]) -> Field | None:
        """The field that these stems name; the last word of a name is enough where no other field has it."""
        for item in self.fields:
            if words in item.called():
                return item
        ending = [item for item in self.fields if any(name[-1:] == words for name in item.called())]
        return ending[0] if len(ending) == 1 else None

    def mentions(self, word: str) -> bool:
        """Whether an alias or the head of the description is the word.

        "Machines built for a customer" describes machines: what follows "for" is something else.
        """
        told = " ".join((_head(self.description), *self.aliases)).split()
        return stem(word) in stems(text.strip(".,:;()") for text in told if not text.endswith(("'", "'s", "\u2019s")))


def _head(description: str) -> str:
    """The words of a description before the first one that starts a qualification."""
    return _QUALIFICATION.split(description, maxsplit=1)[0]


def read_managers(result: Any) -> list[Manager]:
    """The managers of a ``search_managers`` result; an error or anything unexpected holds none."""
    items = result if isinstance(result, list) else []
    return [manager for item in items if (manager := read_manager(item)) is not None]


def read_manager(result: Any) -> Manager | None:
    """One summary or ``get_manager_schema`` result; ``None`` for null, an error or another shape."""
    if not isinstance(result, Mapping) or not isinstance(result.get("manager"), str):
        return None
    return Manager(
        name=result["manager"],
        description=str(result.get("description") or ""),
        fields=tuple(_fields(result)),
        relations=tuple(_relations(result.get("relations"))),
        aliases=tuple(alias for alias in _items(result.get("aliases")) if isinstance(alias, str)),
    )


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _fields(result: Mapping[str, Any]) -> Iterator[Field]:
    """The fields by name, with what ``field_details`` tells; what no filter names is computed."""
    details = result.get("field_details")
    filtered = {str(name).partition("__")[0] for name in _items(result.get("filters"))}
    for name in _items(result.get("fields")):
        if not isinstance(name, str):
            continue
        detail = details.get(name) if isinstance(details, Mapping) else None
        if not isinstance(detail, Mapping):
            yield Field(name)
            continue
        yield Field(
            name,
            str(detail.get("type") or ""),
            tuple(_choices(detail.get("choices"))),
            computed=name not in filtered,
            description=str(detail.get("description") or ""),
        )


def _choices(value: Any) -> Iterator[tuple[Any, str]]:
    for item in _items(value):
        match item:
            case {"value": chosen}:
                yield chosen, str(item.get("label", chosen))
            case [chosen, label]:
                yield chosen, str(label)
            case str() | int():
                yield item, str(item)


def _relations(value: Any) -> Iterator[Relation]:
    for item in _items(value):
        if isinstance(item, Mapping) and isinstance(item.get("name"), str) and isinstance(item.get("target"), str):
            many = item.get("many")
            yield Relation(item["name"], item["target"], many if isinstance(many, bool) else None)
