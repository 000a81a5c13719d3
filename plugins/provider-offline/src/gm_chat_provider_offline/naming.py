"""Finds what a question names: managers, and fields whose value is asked for. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from gm_chat_provider_offline import lexicon
from gm_chat_provider_offline.words import number, stems

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gm_chat_provider_offline.schema import Manager
    from gm_chat_provider_offline.words import Token

__all__ = ["Attribute", "Mention", "find_attribute", "find_implied", "find_mentions", "is_common"]


@dataclass(frozen=True, slots=True)
class Mention:
    """A manager named in the question: tokens ``start`` to ``end``, as typed in ``text``."""

    manager: str
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Attribute:
    """ "What is the density of X": field names by manager that has them all, and the tokens after "of"."""

    fields: dict[str, tuple[str, ...]]
    start: int


def find_mentions(tokens: Sequence[Token], managers: Iterable[Manager]) -> list[Mention]:
    """Find managers by name or alias, left to right, the longest name first; without any, take a near miss."""
    called = [(words, manager.name) for manager in managers for words in manager.called() if words]
    called.sort(key=lambda item: -len(item[0]))
    found: list[Mention] = []
    place = 0
    while place < len(tokens):
        mention = _mention_at(tokens, place, called)
        if mention is not None:
            found.append(mention)
        place = mention.end if mention is not None else place + 1
    return found or _near_misses(tokens, called)


def _mention_at(tokens: Sequence[Token], place: int, called: Sequence[tuple[tuple[str, ...], str]]) -> Mention | None:
    if _is_proper(tokens, place):
        return None
    for words, name in called:
        part = tokens[place : place + len(words)]
        if tuple(token.stem for token in part) == words and not any(token.quoted for token in part):
            return Mention(name, place, place + len(words), " ".join(token.text for token in part))
    return None


def _near_misses(tokens: Sequence[Token], called: Sequence[tuple[tuple[str, ...], str]]) -> list[Mention]:
    for place, token in enumerate(tokens):
        if token.quoted or len(token.stem) < 5 or token.stem in lexicon.SKIPPED:
            continue
        for words, name in called:
            if len(words) == 1 and SequenceMatcher(None, token.stem, words[0], autojunk=False).ratio() > 0.85:
                return [Mention(name, place, place + 1, words[0])]
    return []


def _is_proper(tokens: Sequence[Token], place: int) -> bool:
    """Whether the word is part of a proper name: capitalised beside another capitalised word, not at the start."""

    def capital(index: int) -> bool:
        return 0 < index < len(tokens) and tokens[index].text[:1].isupper()

    return capital(place) and (capital(place - 1) or capital(place + 1))


def is_common(word: Token) -> bool:
    """Whether the word names nothing: part of a question's frame, a number, or a word of comparing and sorting."""
    return not word.quoted and (word.stem in _COMMON or number(word.text) is not None)


def find_implied(words: Sequence[Token], managers: Sequence[Manager], *, nouns_only: bool = False) -> Mention | None:
    """Find the manager that a word stands for without naming it; the last word of the first words is asked first.

    A word of a manager's description ("which components ...") or of its name ("the stock of ...") is the subject
    itself. A choice ("list bearings") only tells the subject and stays a value, so the mention is empty. With
    ``nouns_only`` choices are left alone.
    """
    place = 0
    while place < len(words):
        end = place
        while end < len(words) and not is_common(words[end]):
            end += 1
        for index in reversed(range(place, end)):
            mention = _implied_at(index, words[index], managers, nouns_only=nouns_only)
            if mention is not None:
                return mention
        place = end + 1
    return None


def _implied_at(place: int, word: Token, managers: Sequence[Manager], *, nouns_only: bool) -> Mention | None:
    chosen = next(
        (one for one in managers if any(item.choice((word.stem,)) is not None for item in one.fields)),
        None,
    )
    if chosen is not None:
        return None if nouns_only else Mention(chosen.name, place, place, chosen.noun)
    for manager in managers:
        if len(word.stem) > 3 and (word.stem in stems(manager.words) or manager.mentions(word.text)):
            return Mention(manager.name, place, place + 1, word.text)
    return None


_COMMON = (
    lexicon.GLUE
    | lexicon.COMPUTING
    | lexicon.SUPERLATIVES.keys()
    | lexicon.COMPARATIVES.keys()
    | {"many", "much", "number", "count", "least", "than"}
)


def find_attribute(tokens: Sequence[Token], managers: Sequence[Manager]) -> Attribute | None:
    """Recognise "... FIELD [and FIELD] of|for VALUE", where every word before "of" names a field of one manager."""
    middle = next((place for place, token in enumerate(tokens) if place and token.stem in {"of", "for"}), None)
    if middle is None:
        return None
    asked = [token for token in tokens[:middle] if token.stem not in lexicon.SKIPPED | lexicon.JOINING]
    words = tuple(token.stem for token in asked)
    if words in {(), ("number",), ("count",)} or any(word in lexicon.SUPERLATIVES for word in words):
        return None
    fields = {manager.name: names for manager in managers if (names := _split_into_fields(words, manager))}
    return Attribute(fields, middle + 1) if fields else None


def _split_into_fields(words: tuple[str, ...], manager: Manager) -> tuple[str, ...] | None:
    """Read all of the words as names of fields, one after the other."""
    if not words:
        return ()
    for size in range(len(words), 0, -1):
        field = manager.field_called(words[:size])
        rest = None if field is None else _split_into_fields(words[size:], manager)
        if field is not None and rest is not None:
            return (field.name, *rest)
    return None
