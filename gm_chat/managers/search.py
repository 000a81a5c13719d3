"""Which managers a free text speaks of: an inverted index over names, aliases, descriptions, uses and members.

Ranking is like BM25F: a word counts by the best place in which it stands and by how few managers have it. A word
that no visible manager has is taken for a typo and replaced by the nearest words that one has. At last the best are
ranked again by how much of the question they account for, and by how well it agrees with what they are called, so
that "order" finds orders before order lines. What an actor may not see has no influence: rarity is counted over
visible managers and members alone.
"""

from __future__ import annotations

import difflib
import itertools
import math
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final

from gm_chat.managers.names import split_words, stem_of_manager
from gm_chat.words import STOP_WORDS, singular

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from gm_chat.managers.api import FieldInfo, ManagerInfo, RelationInfo

__all__ = ["SearchIndex", "singular"]

NAME, ALIAS, DESCRIPTION, MEMBER = 8.0, 6.0, 3.0, 1.0
"""What a word weighs by where it stands. Members are fields and relations, their descriptions included; an alias shares
its weight among its words; what a catalog says of domain and use counts as a description."""
LENGTH_SHARE: Final = 0.5
"""How much a long description is discounted, between 0 (not at all) and 1 (fully); BM25's ``b``."""
SATURATION: Final = 4.0
"""From which weight on more of the same word says little; BM25's ``k1``."""
RERANKED: Final = 40
MAX_WORDS: Final = 32
MAX_LETTERS: Final = 40
"""Longer queries and words are cut: the work stays bounded whatever the text."""
COMPARED: Final = 64
"""How many words a typo is compared with; from 60 on, none of the benchmark's queries finds less."""
NEAREST: Final = 3
MIN_LIKENESS: Final = 0.66

_OF_ANY_USE: Final = frozenset({"question", "concern"})
"""What every sentence on when to use a manager speaks of; no question that holds them is about it."""


class SearchIndex:
    """Immutable once built; safe to use from several threads."""

    def __init__(self, infos: Iterable[ManagerInfo]) -> None:
        """Index descriptions; masks come with each query."""
        self._own: dict[str, dict[str, float]] = defaultdict(dict)
        """word -> manager -> weight from name, aliases, domain, description and use."""
        self._members: dict[str, dict[str, tuple[str, ...]]] = defaultdict(dict)
        """word -> manager -> the members that it stands in."""
        self._labels: dict[str, list[frozenset[str]]] = {}
        """manager -> the words of its name and of each alias."""
        for info in infos:
            self._add(info)
        self._words_of: dict[str, list[str]] = defaultdict(list)
        """trigram -> words."""
        for word in self._own.keys() | self._members.keys():
            for trigram in _trigrams(word):
                self._words_of[trigram].append(word)

    def _add(self, info: ManagerInfo) -> None:
        name = _stems(stem_of_manager(info.name))
        weights = dict.fromkeys(_with_compounds(name), NAME)
        for label in map(_stems, info.aliases):
            for word in _with_compounds(label):
                weight = ALIAS / len(label) if word in label else ALIAS
                weights[word] = max(weights.get(word, 0.0), weight)
        use = [word for word in _stems(info.use_when) if word not in _OF_ANY_USE]
        for words in (_stems(info.description), _stems(info.domain), use):
            discount = max(1 - LENGTH_SHARE + LENGTH_SHARE * len(words) / 12, 0.5)
            for word in words:
                weights[word] = max(weights.get(word, 0.0), DESCRIPTION / discount)
        for word, weight in weights.items():
            self._own[word][info.name] = weight
        members: dict[str, list[str]] = defaultdict(list)
        described: list[FieldInfo | RelationInfo] = [*info.fields, *info.relations]
        for member in described:
            for word in dict.fromkeys(_stems(f"{member.name} {member.description}")):
                members[word].append(member.name)
        for word, names in members.items():
            self._members[word][info.name] = tuple(names)
        self._labels[info.name] = [frozenset(words) for words in (name, *map(_stems, info.aliases)) if words]

    def rank(self, query: str, visible: Mapping[str, frozenset[str] | None], *, limit: int = 10) -> list[str]:
        """Rank the visible managers for a query, best first; blank or nothing found gives ``[]``.

        ``visible`` maps each visible manager to its visible members, ``None`` for all of them.
        """
        words = _query_words(query)
        scores: dict[str, float] = defaultdict(float)
        explained: dict[str, float] = defaultdict(float)
        meant: list[tuple[float, frozenset[str]]] = []
        for word in words:
            found = self._found(word, visible)
            readings = {word: 1.0} if found else self._near(word, visible)
            if not found:
                found = self._merged(readings, visible)
            rarity = math.log(1 + (len(visible) - len(found) + 0.5) / (len(found) + 0.5))
            meant.append((rarity, frozenset(readings)))
            for name, weight in found.items():
                scores[name] += rarity * weight / (SATURATION + weight)
                explained[name] += rarity
        total = sum(rarity for rarity, _ in meant)
        best = sorted(scores, key=lambda name: (-scores[name], name))[: max(RERANKED, limit)]
        worth = {
            name: scores[name] * (1 + explained[name] / total) * self._agreement(name, meant, total) for name in best
        }
        return sorted(best, key=lambda name: (-worth[name], name))[: max(limit, 0)]

    def _found(self, word: str, visible: Mapping[str, frozenset[str] | None]) -> dict[str, float]:
        """The visible managers that have a word, with its weight in each."""
        found = {name: weight for name, weight in self._own.get(word, {}).items() if name in visible}
        for name, members in self._members.get(word, {}).items():
            if name in visible:
                shown = visible[name]
                count = len(members) if shown is None else len(shown.intersection(members))
                if count:
                    found[name] = found.get(name, 0.0) + MEMBER * count
        return found

    def _near(self, word: str, visible: Mapping[str, frozenset[str] | None]) -> dict[str, float]:
        """The nearest words that a visible manager has, with their likeness (0 to 1)."""
        alike: list[tuple[float, str]] = []
        matcher = difflib.SequenceMatcher(None, "", word, autojunk=False)
        for near in self._candidates(word, visible):
            matcher.set_seq1(near)
            likeness = matcher.ratio() if matcher.quick_ratio() >= MIN_LIKENESS else 0.0
            if likeness >= MIN_LIKENESS:
                alike.append((-likeness, near))
        known = (item for item in sorted(alike) if self._is_known(item[1], visible))
        return {near: -negative for negative, near in itertools.islice(known, NEAREST)}

    def _candidates(self, word: str, visible: Mapping[str, frozenset[str] | None]) -> Collection[str]:
        """Words to compare with: all of about the same length that share a trigram, or those that share most."""
        shared = Counter(itertools.chain.from_iterable(self._words_of.get(trigram, ()) for trigram in _trigrams(word)))
        candidates = [near for near in shared if abs(len(near) - len(word)) <= 3]
        if len(candidates) <= COMPARED:
            return candidates
        candidates.sort(key=lambda near: (-shared[near] / (len(near) + len(word)), near))
        known = (near for near in candidates if self._is_known(near, visible))  # hidden words must not take a place
        return list(itertools.islice(known, COMPARED))

    def _is_known(self, word: str, visible: Mapping[str, frozenset[str] | None]) -> bool:
        """Whether any visible manager has the word."""
        if any(name in visible for name in self._own.get(word, ())):
            return True
        return any(
            name in visible and ((shown := visible[name]) is None or not shown.isdisjoint(members))
            for name, members in self._members.get(word, {}).items()
        )

    def _merged(self, readings: Mapping[str, float], visible: Mapping[str, frozenset[str] | None]) -> dict[str, float]:
        merged: dict[str, float] = {}
        for near, likeness in readings.items():
            for name, weight in self._found(near, visible).items():
                merged[name] = max(merged.get(name, 0.0), weight * likeness**2)
        return merged

    def _agreement(self, name: str, meant: Sequence[tuple[float, frozenset[str]]], total: float) -> float:
        """From 1 (the question speaks of nothing that it is called) to 3 (of its name or an alias, and nothing else).

        That its name is spoken of tells something whatever else is; that an alias is, only as far as it is the subject.
        """
        best = 0.0
        for is_alias, label in enumerate(self._labels[name]):
            hit = [(rarity, readings & label) for rarity, readings in meant]
            of_query = sum(rarity for rarity, words in hit if words) / total
            of_label = len(frozenset().union(*(words for _, words in hit))) / len(label)
            best = max(best, of_label * (2 * of_query if is_alias else 1 + of_query))
        return 1 + best


def _stems(text: str) -> list[str]:
    return [singular(word) for word in split_words(text)]


def _with_compounds(words: Sequence[str]) -> Iterator[str]:
    """The words, each pair of neighbours written as one, and all of them as one."""
    yield from words
    compounds = {first + second for first, second in itertools.pairwise(words)}
    if len(words) > 2:
        compounds.add("".join(words))
    yield from sorted(compounds)


def _query_words(query: str) -> list[str]:
    words = split_words(query[: MAX_WORDS * MAX_LETTERS])
    telling = [word for word in words if word not in STOP_WORDS]
    stems = [singular(word[:MAX_LETTERS]) for word in telling or words]
    distinct = list(dict.fromkeys(stems))
    return ([stem for stem in distinct if stem != "manager"] or distinct)[:MAX_WORDS]


def _trigrams(word: str) -> set[str]:
    padded = f"  {word} "
    return {padded[start : start + 3] for start in range(len(padded) - 2)}
