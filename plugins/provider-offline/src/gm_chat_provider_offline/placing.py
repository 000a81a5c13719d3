"""Finds where the value words of a question belong: a choice, a flag, or a text field here or in a related row. Pure.

What needs the data is asked by :meth:`Group.probe`, a ``query`` for a few rows; :func:`best` judges the results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from gm_chat_provider_offline.words import canonical, spellings

if TYPE_CHECKING:
    from gm_chat_provider_offline.reading import Phrase
    from gm_chat_provider_offline.schema import Field, Manager

__all__ = ["Condition", "Group", "best", "choice_of", "merged", "values_at", "without"]

PROBED_FIELDS: Final = 4
PROBED_ROWS: Final = 20


@dataclass(frozen=True, slots=True)
class Condition:
    """One part of the filter, its path, and how it reads. ``shown`` if a row's value adds to the answer."""

    filters: Mapping[str, Any]
    path: str
    says: str
    shown: bool = True
    exact: Any = None


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

    def probe(self, subject: str, phrase: Phrase, *, apart: bool = False) -> dict[str, Any] | None:
        """Arguments of a ``query`` for rows whose text holds the phrase, or with ``apart`` each of its words."""
        if not self.fields:
            return None
        filters = [_contains(self.path(field), phrase, apart=apart) for field in self.fields]
        return {
            "manager": subject,
            "fields": [self.path(field) for field in self.fields],
            "filters": filters[0] if len(filters) == 1 else {"or": filters},
            "limit": PROBED_ROWS,
        }


def choice_of(group: Group, phrase: Phrase) -> Condition | None:
    """The condition if the phrase is a choice of one of the fields, or names a yes/no field."""
    for field in group.manager.fields:
        value = field.choice(phrase.stems)
        if value is not None:
            says = f"{group.says(field)} is {str(value).replace('_', ' ')!r}"
            return Condition({group.path(field): value}, group.path(field), says, shown=False, exact=value)
    for field in group.manager.fields:
        if field.type == "boolean" and phrase.stems in field.called():
            return Condition({group.path(field): True}, group.path(field), f"{group.says(field)} is true", shown=False)
    return None


def best(groups: Sequence[Group], results: Sequence[Any], phrase: Phrase, *, apart: bool = False) -> Condition | None:
    """Choose the field that fits the phrase best: the whole value before its beginning before a word in it.

    Among equals the first group wins, then the first field.
    """
    found: tuple[int, Group, Field] | None = None
    for group, result in zip(groups, results, strict=True):
        rows = result.get("data") if isinstance(result, Mapping) else None
        for field in group.fields:
            values = [value for row in rows or () for value in values_at(row, group.path(field))]
            score = max((_fit(str(value), phrase, apart=apart) for value in values if value is not None), default=0)
            if score and (found is None or score > found[0]):
                found = score, group, field
    if found is None:
        return None
    score, group, field = found
    path, says = group.path(field), group.says(field)
    if score == WHOLE:
        value = _value(results[groups.index(group)], path, phrase)
        return Condition({path: value}, path, f"{says} is {value!r}", shown=False, exact=value)
    ways = " or ".join(map(repr, spellings(phrase.text)))
    return Condition(_contains(path, phrase, apart=apart), path, f"{says} contains {ways}")


WHOLE: Final = 4


def _fit(value: str, phrase: Phrase, *, apart: bool) -> int:
    text = canonical(value)
    wanted = [canonical(word.text) for word in phrase.words] if apart else [canonical(phrase.text)]
    if not all(word in text for word in wanted):
        return 0
    if text == canonical(phrase.text):
        return WHOLE
    if text.startswith(wanted[0]):
        return 3
    return 2 if f" {wanted[0]}" in text else 1


def _value(result: Any, path: str, phrase: Phrase) -> Any:
    """The value as it is stored, of which the phrase is another spelling."""
    for row in result["data"]:
        for value in values_at(row, path):
            if canonical(str(value)) == canonical(phrase.text):
                return value
    raise LookupError(path)


def _contains(path: str, phrase: Phrase, *, apart: bool) -> dict[str, Any]:
    """The filter for "contains", in every spelling."""

    def one(text: str) -> dict[str, Any]:
        ways: list[dict[str, Any]] = [{f"{path}__icontains": way} for way in spellings(text)]
        return ways[0] if len(ways) == 1 else {"or": ways}

    if not apart:
        return one(phrase.text)
    return {"and": [one(word.text) for word in phrase.words]}


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
