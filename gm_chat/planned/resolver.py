"""Which managers a task may be about: up to five, in a fixed order, each with the reasons why it is there.

A manager whose name or alias is the text itself comes first, then one whose name or alias stands in it, then one that a
known manager (an *anchor*) leads to. Within that the order is the search's where there is one, else that of the places
in which the text's words stand. Only what is in the schema index is ever considered, and the index holds what the
actor may see. (Specification: "Planned resolution, evidence, and calculations".)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from gm_chat.planned.catalog import normalize_match_text
from gm_chat.words import singular, split_words, telling_words

if TYPE_CHECKING:
    from gm_chat.planned.catalog import ManagerCatalog

__all__ = ["AUDIT_MATCH_SOURCES", "MAX_CANDIDATES", "ManagerCandidate", "ManagerResolver", "PathFinder", "Search"]

MAX_CANDIDATES: Final = 5
MAX_CHARACTERS: Final = 2_000
"""Of a text no more is read, so that the work stays bounded."""

AUDIT_MATCH_SOURCES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "exact manager name": "exact_name",
        "exact catalog alias": "exact_alias",
        "catalog domain": "catalog_domain",
        "catalog aliases": "catalog_alias",
        "catalog use_when": "catalog_use_when",
        "schema description": "schema_description",
        "schema fields": "schema_field",
        "schema filters": "schema_filter",
        "schema relations": "schema_relation",
    }
)
"""What a candidate's ``explanations`` may say, and the category that stands for it in the audit."""

EXACT_NAME, EXACT_ALIAS, *_PLACES = AUDIT_MATCH_SOURCES

PathFinder: TypeAlias = Callable[[str, str], Sequence[str] | None]
"""Returns the relations that lead from one manager to another, ``None`` if none do."""

Search: TypeAlias = Callable[[str], Sequence[str]]
"""Returns the names of the visible managers that a text speaks of, best first."""


@dataclass(frozen=True, slots=True)
class ManagerCandidate:
    """A manager that a task may be about.

    ``explanations`` are keys of :data:`AUDIT_MATCH_SOURCES`. ``exact``: its name or an alias is the whole text;
    ``named``: it stands in the text as a phrase, singular or plural.
    """

    manager: str
    explanations: tuple[str, ...]
    exact: bool
    named: bool = False


class ManagerResolver:
    """Ranks the managers of one schema index, which is one actor's view of it. Safe to use from several threads.

    ``schema_index`` maps each visible manager to a summary as ``search_managers`` gives it; it is read for those that
    are ranked, and with a ``search`` these are few. Without a ``path_finder`` paths are those of the index's relations.
    """

    def __init__(
        self,
        schema_index: Mapping[str, Mapping[str, Any]],
        catalog: ManagerCatalog,
        *,
        path_finder: PathFinder | None = None,
        search: Search | None = None,
    ) -> None:
        self._index = schema_index
        self._catalog = catalog
        self._find_path = path_finder or self._shortest_path
        self._search = search
        self._known: dict[str, _Words] = {}

    def resolve(self, query: str, anchors: Sequence[str] = ()) -> tuple[ManagerCandidate, ...]:
        """Return up to five candidates for a text, best first; ``anchors`` are managers that are known to matter."""
        text = _Query.of(query[:MAX_CHARACTERS])
        if not text.words:
            return ()
        known = [anchor for anchor in anchors if anchor in self._index]
        ranked: list[tuple[tuple[Any, ...], ManagerCandidate]] = []
        for position, name in enumerate(self._names(query)):
            words = self._words(name)
            hits = [len(text.words & words.places[place]) for place in _PLACES]
            by_name = len(text.words & words.name)
            if self._search is None and not (by_name or any(hits)):
                continue
            candidate = _candidate(name, text, words, hits)
            steps = self._steps(known, name)
            key = (
                EXACT_NAME not in candidate.explanations,
                not candidate.exact,
                not candidate.named,
                steps is None,
                *((position,) if self._search else (-by_name, *(-count for count in hits))),
                steps or 0,
                name,
            )
            ranked.append((key, candidate))
        ranked.sort(key=lambda item: item[0])
        return tuple(candidate for _, candidate in ranked[:MAX_CANDIDATES])

    def _names(self, query: str) -> Iterable[str]:
        if self._search is None:
            return self._index
        return [name for name in self._search(query) if name in self._index]

    def _words(self, name: str) -> _Words:
        words = self._known.get(name)
        if words is None:
            words = self._known[name] = _Words.of(name, self._index[name], self._catalog)
        return words

    def _steps(self, anchors: Iterable[str], name: str) -> int | None:
        """The length of the shortest path from an anchor, ``None`` without one."""
        lengths = []
        for anchor in anchors:
            path = () if anchor == name else self._find_path(anchor, name)
            if path is not None:
                lengths.append(len(path))
        return min(lengths, default=None)

    def _shortest_path(self, start: str, goal: str) -> Sequence[str] | None:
        ways: dict[str, tuple[str, ...]] = {start: ()}
        waiting = deque([start])
        while waiting:
            here = waiting.popleft()
            if here == goal:
                return ways[here]
            for relation in self._index[here].get("relations", ()):
                target = relation["target"]
                if target in self._index and target not in ways:
                    ways[target] = (*ways[here], relation["name"])
                    waiting.append(target)
        return None


@dataclass(frozen=True, slots=True)
class _Words:
    """What a manager is called, and the words that stand in each place of its description."""

    label: str
    aliases: tuple[str, ...]
    name: frozenset[str]
    places: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, name: str, summary: Mapping[str, Any], catalog: ManagerCatalog) -> _Words:
        entry = catalog.entries.get(name)
        relations = summary.get("relations", ())
        texts: tuple[Iterable[str], ...] = (
            (entry.domain,) if entry else (),
            entry.aliases if entry else (),
            (entry.use_when,) if entry else (),
            (summary.get("description") or "",),
            summary.get("fields", ()),
            summary.get("filters", ()),
            [part for relation in relations for part in (relation["name"], relation["target"])],
        )
        places = {place: _telling(items) for place, items in zip(_PLACES, texts, strict=True)}
        return cls(normalize_match_text(name), entry.aliases if entry else (), _telling([name]), places)


@dataclass(frozen=True, slots=True)
class _Query:
    """A text to be resolved: as a whole, in sequence, and as the words that say something."""

    text: str
    sequence: tuple[str, ...]
    words: frozenset[str]

    @classmethod
    def of(cls, query: str) -> _Query:
        return cls(normalize_match_text(query), _sequence(query), _telling([query]))

    def holds(self, label: str) -> bool:
        """Whether the words of a label follow each other here, in the singular or plural."""
        phrase = _sequence(label)
        starts = range(len(self.sequence) - len(phrase) + 1)
        return bool(phrase) and any(self.sequence[start : start + len(phrase)] == phrase for start in starts)


def _candidate(name: str, query: _Query, words: _Words, hits: Sequence[int]) -> ManagerCandidate:
    is_name, is_alias = query.text == words.label, query.text in words.aliases
    places = [place for place, count in zip(_PLACES, hits, strict=True) if count]
    labels = (words.label, words.label.removesuffix(" manager"), *words.aliases)
    return ManagerCandidate(
        name,
        explanations=(*[EXACT_NAME] * is_name, *[EXACT_ALIAS] * is_alias, *places),
        exact=is_name or is_alias,
        named=any(map(query.holds, labels)),
    )


def _sequence(text: str) -> tuple[str, ...]:
    return tuple(singular(word) for word in split_words(text))


def _telling(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(word for text in texts for word in telling_words(text) if word != "manager")
