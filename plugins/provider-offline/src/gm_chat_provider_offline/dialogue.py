"""The conversation with the tools that answers one question, as a generator without any IO.

It yields batches of calls, receives their results and returns the answer: straight from top to bottom, so it ends,
and the same question over the same results always runs the same way.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from gm_chat_provider_offline import answers, lexicon
from gm_chat_provider_offline.naming import Attribute, Mention, find_attribute, find_implied, find_mentions, is_common
from gm_chat_provider_offline.placing import Condition, Group, best, choice_of, merged, rows_of, without
from gm_chat_provider_offline.reading import Phrase, Reading, read
from gm_chat_provider_offline.schema import Manager, read_manager, read_managers
from gm_chat_provider_offline.words import Token, tokens

if TYPE_CHECKING:
    from typing import TypeAlias

__all__ = ["Call", "Dialogue", "converse"]

Call: TypeAlias = tuple[str, dict[str, Any]]
"""A tool's name and arguments."""

Dialogue: TypeAlias = Generator[list[Call], list[Any], str]

ANY_MANAGER: Final = "name number title code date id"
"""A search that most managers answer to: for examples, when the question itself finds nothing."""
CONSIDERED: Final = 8
"""How many managers are looked at more closely when the question names none."""
SHOWN_ROWS: Final = 20
MAX_ROWS: Final = 100
MAX_GROUPS: Final = 12
"""Probes in one batch."""


@dataclass(slots=True)
class _Book:
    """Full schemas that have been read in this conversation; ``None`` for managers that could not be."""

    read: dict[str, Manager | None] = field(default_factory=dict)

    def load(self, names: Iterable[str]) -> Generator[list[Call], list[Any], None]:
        """Read the schemas that are still missing, in one batch."""
        missing = [name for name in dict.fromkeys(names) if name not in self.read]
        if missing:
            results = yield [("get_manager_schema", {"manager": name}) for name in missing]
            self.read.update(zip(missing, map(read_manager, results), strict=True))

    def get(self, name: str) -> Manager | None:
        """The schema of a manager that was loaded."""
        return self.read.get(name)

    def known(self) -> list[Manager]:
        """Everything that was read, in the order of reading."""
        return [manager for manager in self.read.values() if manager is not None]


class _Stuck(Exception):  # noqa: N818 - no error of the program: the question is beyond the rules
    """The question cannot be answered; the message says why."""


def converse(question: str) -> Dialogue:
    """Answer a question with the tools ``search_managers``, ``get_manager_schema``, ``find_path`` and ``query``."""
    words = tokens(question)
    book = _Book()
    found = read_managers((yield [("search_managers", {"query": question.strip() or ANY_MANAGER})])[0])
    if not found:
        found = read_managers((yield [("search_managers", {"query": ANY_MANAGER})])[0])
        yield from book.load([manager.name for manager in found[:CONSIDERED]])
    try:
        if not found:
            raise _Stuck("I see no data at all. Perhaps you are not logged in, or may see nothing.")
        if not words or all(word.stem in lexicon.GREETINGS for word in words):
            raise _Stuck("Hello. I look things up in this application's data.")
        if words[0].text.casefold() in lexicon.WRITING:
            raise _Stuck(f"I only read data; I cannot {words[0].text.casefold()} anything.")
        return (yield from _answer(words, found, book))
    except _Stuck as stuck:
        yield from book.load([manager.name for manager in found[:2]])
        return answers.stuck(str(stuck), book.known())


def _answer(words: Sequence[Token], found: Sequence[Manager], book: _Book) -> Dialogue:
    attribute = find_attribute(words, found)
    if attribute is not None and (answer := (yield from _attribute(words, attribute, found, book))) is not None:
        return answer
    mentions = find_mentions(words, [*book.known(), *found])
    if not mentions or (yield from _opens_with_something_else(words, mentions[0], book)):
        yield from book.load([manager.name for manager in found[:CONSIDERED]])
        ranked = [manager for one in found if (manager := book.get(one.name)) is not None]
        mentions = find_mentions(words, ranked)
        implied = find_implied(words[: mentions[0].start] if mentions else words, ranked, nouns_only=bool(mentions))
        mentions = [implied, *mentions] if implied is not None else mentions
    if not mentions:
        mentions = [(yield from _anything(words, book))]
    subject = mentions[0]
    yield from book.load(mention.manager for mention in mentions)
    return (yield from _either_way(words, subject, mentions, book))


def _either_way(
    words: Sequence[Token], subject: Mention, mentions: Sequence[Mention], book: _Book, asked: tuple[str, ...] = ()
) -> Dialogue:
    """Read the question with small words as parts of names ("Maps of the World"), else as words between values."""
    manager = _manager(subject.manager, book)
    first = read(words, subject, manager, mentions, long_names=True)
    try:
        return (yield from _report(first, manager, book, asked))
    except _Stuck:
        second = read(words, subject, manager, mentions)
        if second == first:
            raise
    return (yield from _report(second, manager, book, asked))


def _anything(words: Sequence[Token], book: _Book) -> Generator[list[Call], list[Any], Mention]:
    """The subject among whatever managers there are: the search knows no choices, and a choice may be all there is."""
    found = read_managers((yield [("search_managers", {"query": ANY_MANAGER})])[0])
    yield from book.load([manager.name for manager in found])
    implied = find_implied(words, book.known())
    if implied is None:
        raise _Stuck(answers.nothing_called(words))
    return implied


def _opens_with_something_else(
    words: Sequence[Token], mention: Mention, book: _Book
) -> Generator[list[Call], list[Any], bool]:
    """Whether a word before the first known name may be a name too: "which *components* of project Apollo"."""
    yield from book.load([mention.manager])
    manager = _manager(mention.manager, book)
    yield from book.load(relation.target for relation in manager.to_one())
    related = [target for relation in manager.to_one() if (target := book.get(relation.target)) is not None]
    fields = [item for one in (manager, *related) for item in one.fields]

    def explained(word: Token) -> bool:
        return is_common(word) or any(
            item.choice((word.stem,)) is not None or (word.stem,) in item.called() for item in fields
        )

    return not all(explained(word) for word in words[: mention.start])


def _attribute(
    words: Sequence[Token], attribute: Attribute, found: Sequence[Manager], book: _Book
) -> Generator[list[Call], list[Any], str | None]:
    """Answer "what is the density of X"; ``None`` if the question turns out to be another one."""
    rest = words[attribute.start :]
    mentions = find_mentions(rest, found)
    if mentions and mentions[0].manager not in attribute.fields:
        return None
    names = [mentions[0].manager] if mentions else list(attribute.fields)[:3]
    problem: _Stuck | None = None
    for name in names:
        yield from book.load([name])
        subject = mentions[0] if mentions else Mention(name, 0, 0, name)
        try:
            return (yield from _either_way(rest, subject, mentions, book, attribute.fields[name]))
        except _Stuck as stuck:
            problem = problem or stuck
    raise problem or _Stuck("I do not see what the question is about.")


def _manager(name: str, book: _Book) -> Manager:
    manager = book.get(name)
    if manager is None:
        raise _Stuck(f"I could not read the schema of {name}.")
    return manager


# --- conditions -------------------------------------------------------------------------------------------------


def _report(reading: Reading, manager: Manager, book: _Book, asked: tuple[str, ...] = ()) -> Dialogue:
    """Find the conditions, run the query and word the answer."""
    if reading.problem is not None:
        raise _Stuck(f"I cannot answer that: {reading.problem}.")
    conditions = list(_compared(reading, manager))
    for phrase in reading.phrases:
        new = yield from _place(phrase, reading, manager, book)
        conditions = _with(conditions, new, phrase)
    for other in reading.related:
        conditions.append((yield from _exists(other, reading, book)))
    yield from book.load(relation.target for relation in manager.to_one())
    targets = {relation.name: target for relation in manager.to_one() if (target := book.get(relation.target))}
    query = _query(reading, manager, targets, conditions, asked)
    result = (yield [("query", query)])[0]
    return answers.report(reading, manager, targets, conditions, asked, result)


def _compared(reading: Reading, manager: Manager) -> Iterator[Condition]:
    fields = {item.name: item for item in manager.fields}
    for comparison in reading.comparisons:
        compared = fields[comparison.field]
        signs = lexicon.DATE_SIGNS if compared.is_dated else lexicon.SIGNS
        says = f"{compared.label()} is {signs[comparison.lookup]} {comparison.value}"
        yield Condition({f"{comparison.field}__{comparison.lookup}": comparison.value}, comparison.field, says)


def _with(conditions: list[Condition], new: list[Condition], phrase: Phrase) -> list[Condition]:
    """Add conditions; two values of one field, joined by "and" or "or", are alternatives."""
    if phrase.joined and len(new) == 1 and conditions and conditions[-1].path == new[0].path:
        last, other = conditions[-1], new[0]
        either = Condition(
            {"or": [dict(last.filters), dict(other.filters)]},
            last.path,
            f"{last.says} or {other.says}",
        )
        return [*conditions[:-1], either]
    if phrase.joined == "or":
        raise _Stuck("I can combine two values with 'or' only if they belong to one field.")
    return [*conditions, *new]


def _place(
    phrase: Phrase, reading: Reading, manager: Manager, book: _Book
) -> Generator[list[Call], list[Any], list[Condition]]:
    """Find the conditions that a phrase stands for: the whole before its parts, near before far."""
    base = yield from _context(phrase, reading, manager, book)
    near = yield from _near(base, book, own_first=phrase.near)
    if (chosen := _choice(near, phrase)) is not None:
        return [chosen]
    found = yield from _probe(near, reading, phrase)
    if found is None and len(phrase.words) > 1:
        for part in _parts(phrase):
            if (chosen := _choice(near, part)) is not None:
                conditions = [chosen]
                for other in without(phrase, part):
                    conditions += yield from _place(other, reading, manager, book)
                return conditions
        found = yield from _probe_apart(near, reading, phrase)
    if found is None:
        far = yield from _far(base, book)
        found = yield from _probe(far, reading, phrase)
    if found is None:
        raise _Stuck(answers.unplaced(phrase, base.manager))
    return [found]


def _choice(groups: Sequence[Group], phrase: Phrase) -> Condition | None:
    """The first group's choice that the phrase is; the subject's own come first."""
    ordered = sorted(groups, key=lambda group: len(group.relations))
    return next((chosen for group in ordered if (chosen := choice_of(group, phrase)) is not None), None)


def _parts(phrase: Phrase) -> Iterator[Phrase]:
    """All shorter runs of the words, the longest first."""
    size = len(phrase.words)
    for length in range(size - 1, 0, -1):
        for start in range(size - length + 1):
            yield replace(phrase, words=phrase.words[start : start + length])


def _context(
    phrase: Phrase, reading: Reading, manager: Manager, book: _Book
) -> Generator[list[Call], list[Any], Group]:
    """The manager of which the phrase speaks, with the way there from the subject."""
    if phrase.manager == reading.subject.manager:
        return Group((), manager)
    path = yield from _path(reading.subject.manager, phrase.manager)
    return Group(path, _manager(phrase.manager, book))


def _path(start: str, end: str) -> Generator[list[Call], list[Any], tuple[str, ...]]:
    result = (yield [("find_path", {"from_manager": start, "to_manager": end})])[0]
    if isinstance(result, list) and result and all(isinstance(name, str) for name in result):
        return tuple(result)
    raise _Stuck(f"I find no connection from {start} to {end}.")


def _near(base: Group, book: _Book, *, own_first: bool) -> Generator[list[Call], list[Any], list[Group]]:
    """The manager itself and what it refers to."""
    yield from book.load(relation.target for relation in base.manager.to_one())
    related = list(_reached(base, base.manager.to_one(), book))
    return [base, *related] if own_first else [*related, base]


def _far(base: Group, book: _Book) -> Generator[list[Call], list[Any], list[Group]]:
    """What refers to the manager, and what that in turn refers to: suppliers, through offers, to parts."""
    yield from book.load(relation.target for relation in base.manager.to_many())
    many = list(_reached(base, base.manager.to_many(), book))
    yield from book.load(relation.target for group in many for relation in group.manager.to_one())
    beyond = [
        inner
        for group in many
        for inner in _reached(group, group.manager.to_one(), book)
        if inner.manager.name != base.manager.name
    ]
    return [*many, *beyond][:MAX_GROUPS]


def _reached(base: Group, relations: Iterable[Any], book: _Book) -> Iterator[Group]:
    for relation in relations:
        target = book.get(relation.target)
        if target is not None:
            yield Group((*base.relations, relation.name), target)


def _probe(
    groups: Sequence[Group], reading: Reading, phrase: Phrase
) -> Generator[list[Call], list[Any], Condition | None]:
    """Look the phrase up in the groups' text fields, in one batch."""
    asked = [group for group in groups[:MAX_GROUPS] if group.fields]
    if not asked:
        return None
    subject = reading.subject.manager
    results = yield [("query", group.probe(subject, group.holding(phrase.text))) for group in asked]
    return best(asked, results, phrase)


def _probe_apart(
    groups: Sequence[Group], reading: Reading, phrase: Phrase
) -> Generator[list[Call], list[Any], Condition | None]:
    """Look for rows that hold all words of the phrase, each in any text field of one group."""
    asked = [(group, group.holding_all(phrase)) for group in groups if group.fields]
    results = yield [("query", group.probe(reading.subject.manager, every.filters)) for group, every in asked]
    return next((every for (_, every), result in zip(asked, results, strict=True) if rows_of(result)), None)


def _exists(other: str, reading: Reading, book: _Book) -> Generator[list[Call], list[Any], Condition]:
    path = "__".join((yield from _path(reading.subject.manager, other)))
    noun = _manager(other, book).noun
    return Condition({f"{path}__isnull": False}, path, f"there is a {noun}", shown=False)


def _query(
    reading: Reading,
    manager: Manager,
    targets: Mapping[str, Manager],
    conditions: Sequence[Condition],
    asked: tuple[str, ...],
) -> dict[str, Any]:
    """Arguments of the query whose rows are the answer."""
    labels = [f"{name}__{target.texts()[0].name}" for name, target in targets.items() if target.texts()]
    query: dict[str, Any] = {"manager": manager.name, "fields": ["*", *labels]}
    if conditions:
        query["filters"] = merged(conditions)
    if reading.sorting is not None:
        query["order_by"] = [f"-{reading.sorting.field}" if reading.sorting.descending else reading.sorting.field]
    counting = reading.count and not asked
    query["limit"] = 1 if counting else min(reading.limit or SHOWN_ROWS, MAX_ROWS)
    return query
