"""Finds where the value words of a question belong: a choice, a flag, or a text field here or in a related row. Pure.

What needs the data is asked by :meth:`Group.probe`, a ``query`` for a few rows; :func:`best` judges the results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from gm_chat_provider_offline import lexicon
from gm_chat_provider_offline.words import canonical, spellings

if TYPE_CHECKING:
    from gm_chat_provider_offline.reading import Phrase
    from gm_chat_provider_offline.schema import Field, Manager

__all__ = ["Condition", "Group", "best", "choice_of", "merged", "rows_of", "values_at", "without"]

PROBED_FIELDS: Final = 12
PROBED_ROWS: Final = 20


@dataclass(frozen=True, slots=True)
class Condition:
    """One part of the filter, its path, and how it reads. ``shown`` if a row's value adds to the answer."""

    filters: Mapping[str, Any]
    path: str
    says: str
    shown: bool = True


@dataclass(frozen=True, slots=True)
class Group:
    """A manager's fields as seen from the subject: ``relations`` lead there."""

    relations: tuple[str, ...]
    manager: Manager

    def path(self, field: Field) -> str:
        """The filter path of a field."""
        return "__".join((*self.relations, field.name))

    def says(self, field: Field) -> str:
        """The field in words: ``material name``."""
        return " ".join([*(name.replace("_", " ") for name in self.relations), field.label()])

    @property
    def fields(self) -> list[Field]:
        """The text fields worth looking into."""
        return self.manager.texts()[:PROBED_FIELDS]

    def probe(self, subject: str, filters: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments of a ``query`` for a few rows with the text fields."""
        return {
            "manager": subject,
            "fields": [self.path(field) for field in self.fields],
            "filters": dict(filters),
            "limit": PROBED_ROWS,
        }

    def holding(self, text: str) -> dict[str, Any]:
        """The filter for rows one of whose text fields holds the text, in any spelling."""
        ways = [{f"{self.path(field)}__icontains": way} for field in self.fields for way in spellings(text)]
        return ways[0] if len(ways) == 1 else {"or": ways}

    def holding_all(self, phrase: Phrase) -> Condition:
        """The condition that each word stands in one of the text fields: first and last names, numbers with a kind."""
        words = [word.text for word in phrase.words if word.stem not in lexicon.GLUE]
        filters = {"and": [self.holding(word) for word in words]}
        place = " ".join([*(name.replace("_", " ") for name in self.relations), "text"])
        return Condition(filters, "", f"its {place} contains {' and '.join(map(repr, words))}", shown=False)


def choice_of(group: Group, phrase: Phrase) -> Condition | None:
    """The condition if the phrase is a choice of one of the fields, or names a yes/no field."""
    for field in group.manager.fields:
        value = field.choice(phrase.stems)
        if value is not None:
            says = f"{group.says(field)} is {str(value).replace('_', ' ')!r}"
            return Condition({group.path(field): value}, group.path(field), says, shown=False)
    for field in group.manager.fields:
        if field.type == "boolean" and phrase.stems in field.called():
            return Condition({group.path(field): True}, group.path(field), f"{group.says(field)} is true", shown=False)
    return None


def best(groups: Sequence[Group], results: Sequence[Any], phrase: Phrase) -> Condition | None:
    """Choose the field that fits the phrase best: the whole value before its beginning before a word in it.

    Among equals the first group wins, then the first field.
    """
    found: tuple[int, Group, Field, Any] | None = None
    for group, result in zip(groups, results, strict=True):
        for field in group.fields:
            for row in rows_of(result):
                for value in values_at(row, group.path(field)):
                    score = 0 if value is None else _fit(str(value), phrase)
                    if score and (found is None or score > found[0]):
                        found = score, group, field, value
    if found is None:
        return None
    score, group, field, value = found
    path, says = group.path(field), group.says(field)
    if score == WHOLE:  # the value as it is stored, of which the phrase may be another spelling
        return Condition({path: value}, path, f"{says} is {value!r}", shown=False)
    ways = spellings(phrase.text)
    contains = [{f"{path}__icontains": way} for way in ways]
    filters: dict[str, Any] = contains[0] if len(ways) == 1 else {"or": contains}
    return Condition(filters, path, f"{says} contains {' or '.join(map(repr, ways))}")


WHOLE: Final = 4


def _fit(value: str, phrase: Phrase) -> int:
    text, wanted = canonical(value), canonical(phrase.text)
    if text == wanted:
        return WHOLE
    if text.startswith(wanted):
        return 3
    return 2 if f" {wanted}" in text else int(wanted in text)


def rows_of(result: Any) -> list[Any]:
    """The rows of a ``query`` result; an error has none."""
    rows = result.get("data") if isinstance(result, Mapping) else None
    return rows if isinstance(rows, list) else []


def values_at(row: Any, path: str) -> Iterator[Any]:
    """All values that a row holds at a path, through related rows and lists of them."""
    if isinstance(row, list):
        for item in row:
            yield from values_at(item, path)
    elif isinstance(row, Mapping):
        head, _, rest = path.partition("__")
        if rest:
            yield from values_at(row.get(head), rest)
        elif head in row:
            yield row[head]


def merged(conditions: Sequence[Condition]) -> dict[str, Any]:
    """All conditions as one ``filters`` object."""
    keys = [key for condition in conditions for key in condition.filters]
    if len(keys) == len(set(keys)):
        return {key: value for condition in conditions for key, value in condition.filters.items()}
    return {"and": [dict(condition.filters) for condition in conditions]}


def without(phrase: Phrase, used: Phrase) -> list[Phrase]:
    """What is left of a phrase on both sides of a part of it."""
    first = next(place for place in range(len(phrase.words)) if phrase.words[place] is used.words[0])
    sides = (phrase.words[:first], phrase.words[first + len(used.words) :])
    return [replace(phrase, words=side, joined="") for side in sides if side]
