"""Reads a question over known managers: what is asked, of which manager, and which words are values. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gm_chat_provider_offline import lexicon
from gm_chat_provider_offline.words import day, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gm_chat_provider_offline.lexicon import Lookup
    from gm_chat_provider_offline.naming import Mention
    from gm_chat_provider_offline.schema import Field, Manager
    from gm_chat_provider_offline.words import Token

__all__ = ["Comparison", "Phrase", "Reading", "Sorting", "read"]


MAX_SMALL_WORDS: Final = 3


@dataclass(frozen=True, slots=True)
class Phrase:
    """Value words. They speak of ``manager`` or of what is related to it.

    ``near``: they stand beside its name ("open orders", "part 4711") or after a word such as "in".
    ``joined`` is the "and" or "or" that connects them to the phrase before.
    """

    words: tuple[Token, ...]
    manager: str
    near: bool
    joined: str = ""

    @property
    def text(self) -> str:
        """The words as typed."""
        return " ".join(word.text for word in self.words)

    @property
    def stems(self) -> tuple[str, ...]:
        """The words in comparable form."""
        return tuple(word.stem for word in self.words)


@dataclass(frozen=True, slots=True)
class Comparison:
    """``field lookup value``, e.g. weight gt 5."""

    field: str
    lookup: Lookup
    value: int | float | str


@dataclass(frozen=True, slots=True)
class Sorting:
    """Order by a field."""

    field: str
    descending: bool


@dataclass(frozen=True, slots=True)
class Reading:
    """A question understood as far as words go.

    ``related`` are managers that are named without a value: rows of them must exist. ``problem`` says in words what
    could not be read; then nothing may be answered.
    """

    subject: Mention
    count: bool = False
    limit: int | None = None
    sorting: Sorting | None = None
    comparisons: tuple[Comparison, ...] = ()
    phrases: tuple[Phrase, ...] = ()
    related: tuple[str, ...] = ()
    problem: str | None = None


def read(
    tokens: Sequence[Token],
    subject: Mention,
    manager: Manager,
    mentions: Sequence[Mention],
    *,
    long_names: bool = False,
) -> Reading:
    """Read the question, knowing the full schema of its subject.

    With ``long_names``, small words between capitalised ones belong to a name: "Maps of the World".
    """
    reader = _Reader(tokens, subject, manager, mentions, long_names=long_names)
    reader.read()
    return reader.result()


class _Reader:
    """One pass for each kind of thing; a token that one pass has understood is closed to the next."""

    def __init__(
        self,
        tokens: Sequence[Token],
        subject: Mention,
        manager: Manager,
        mentions: Sequence[Mention],
        *,
        long_names: bool,
    ) -> None:
        self._long_names = long_names
        self._tokens = tokens
        self._stems = [token.stem if not token.quoted else "" for token in tokens]
        self._subject = subject
        self._manager = manager
        self._mentions = mentions
        self._used = [False] * len(tokens)
        self._count = False
        self._limit: int | None = None
        self._sorting: Sorting | None = None
        self._comparisons: list[Comparison] = []
        self._phrases: list[Phrase] = []
        self._problem: str | None = None
        for mention in self._mentions:
            self._use(mention.start, mention.end)

    def read(self) -> None:
        """Understand what can be understood."""
        self._read_counting()
        self._read_comparisons()
        self._read_sorting()
        self._read_superlative()
        self._read_limit()
        self._read_phrases()
        if self._problem is None and (denied := next((s for s in self._stems if s in lexicon.NEGATIONS), None)):
            self._problem = f"questions with {denied!r} are beyond these rules"

    def result(self) -> Reading:
        """What was understood."""
        spoken = {phrase.manager for phrase in self._phrases}
        related = dict.fromkeys(mention.manager for mention in self._mentions if mention.manager not in spoken)
        related.pop(self._subject.manager, None)
        return Reading(
            subject=self._subject,
            count=self._count,
            limit=self._limit,
            sorting=self._sorting,
            comparisons=tuple(self._comparisons),
            phrases=tuple(self._phrases),
            related=tuple(related),
            problem=self._problem,
        )

    def _use(self, start: int, end: int) -> None:
        for place in range(start, end):
            self._used[place] = True

    def _fail(self, problem: str) -> None:
        self._problem = self._problem or problem

    def _fail_to_find_field(self, words: str) -> None:
        fields = [item.label() for item in self._manager.fields if item.is_ordered and item.name != "id"]
        known = ", ".join(fields) or "none that can be compared"
        self._fail(f"I cannot tell which field of {self._manager.noun} {words!r} is about; known: {known}")

    # --- passes -------------------------------------------------------------------------------------------------

    def _read_counting(self) -> None:
        for words in (("how", "many"), ("total", "number", "of"), ("number", "of"), ("count", "of"), ("count",)):
            for place in range(len(self._stems)):
                if tuple(self._stems[place : place + len(words)]) == words and not self._used[place]:
                    self._count = True
                    self._use(place, place + len(words))

    def _read_comparisons(self) -> None:
        for place in range(len(self._stems)):
            if self._used[place]:
                continue
            adjective = lexicon.COMPARATIVES.get(self._stems[place])
            if adjective is not None and self._at(place + 1) == "than":
                self._compare(place, place + 2, adjective[1], self._hinted(adjective[0]))
                continue
            for words, lookup in lexicon.COMPARATORS.items():
                if tuple(self._stems[place : place + len(words)]) == words:
                    self._compare(place, place + len(words), lookup, None)
                    break

    def _compare(self, place: int, behind: int, lookup: Lookup, field: Field | None) -> None:
        """Read the value after a comparator and, unless it is known, the field before it."""
        text = self._tokens[behind].text if behind < len(self._tokens) else ""
        value = day(text) or number(text)
        if value is None:
            return
        start, end = place, behind + 1
        if field is None:
            field, start = self._field_before(place)
        if field is None:
            field, end = self._field_at(end)
        if field is None and isinstance(value, str):
            field = self._hinted(lexicon.DATED)
        words = " ".join(token.text for token in self._tokens[place : behind + 1])
        if field is None:
            self._fail_to_find_field(words)
            return
        if field.is_dated and isinstance(value, int) and 1000 <= value <= 9999:
            value = f"{value}-12-31" if lookup in ("gt", "lte") else f"{value}-01-01"
        if field.is_dated != isinstance(value, str):
            self._fail(f"{words!r} does not fit {field.label()}, which is {'a date' if field.is_dated else 'no date'}")
            return
        self._comparisons.append(Comparison(field.name, lookup, value))
        if self._at(end) in lexicon.UNITS:
            end += 1
        self._use(start, end)

    def _field_before(self, place: int) -> tuple[Field | None, int]:
        """The ordered field whose name ends just before a place, skipping words such as "is"."""
        end = place
        while end and self._stems[end - 1] in lexicon.SKIPPED | {"of", "for"}:
            end -= 1
        for start in range(max(0, end - 4), end):
            field = self._field_named(start, end)
            if field is not None and field.is_ordered:
                return field, start
        return None, place

    def _read_sorting(self) -> None:
        for place, word in enumerate(self._stems):
            field, end = (
                self._field_at(place + 1, or_text=True) if word == "by" and not self._used[place] else (None, 0)
            )
            if field is not None:
                falling = self._at(end) in {"descending", "desc"} or bool(
                    {"top", "highest", "largest"} & set(self._stems)
                )
                self._sorting = Sorting(field.name, falling)
                self._use(place, end + (self._at(end) in {"descending", "ascending", "desc", "asc"}))
                for other, stem in enumerate(self._stems):
                    if stem in {"top", "sorted", "sort", "ordered", "highest", "largest"}:
                        self._use(other, other + 1)
                return

    def _read_superlative(self) -> None:
        for place, word in enumerate(self._stems):
            known = lexicon.SUPERLATIVES.get(word)
            if known is None or self._used[place] or self._sorting is not None:
                continue
            before = self._at(place - 1)
            graded = before in {"most", "least"}
            if word in lexicon.NEEDS_MOST and not graded:
                continue
            hints, falling = known
            field, end = self._field_at(place + 1)
            if field is None:
                field, end = self._hinted(hints), place + 1
            if field is None:
                self._fail_to_find_field(self._tokens[place].text)
                return
            self._sorting = Sorting(field.name, falling != (before == "least"))
            start = place - graded
            self._use(start, end)
            self._take_number(start - 1)
            self._take_number(place + 1)
            if self._limit is None and not self._is_many():
                self._limit = 1

    def _read_limit(self) -> None:
        """A number before the subject, possibly with adjectives between, is how many rows are wanted."""
        place = self._subject.start - 1
        while place >= 0 and not self._used[place] and number(self._tokens[place].text) is None:
            if self._stems[place] in lexicon.SKIPPED | lexicon.RELATING | lexicon.RESTING:
                return
            place -= 1
        self._take_number(place)

    def _take_number(self, place: int) -> None:
        if 0 <= place < len(self._tokens) and not self._used[place] and self._limit is None:
            value = number(self._tokens[place].text)
            if isinstance(value, int) and value > 0:
                self._limit = value
                self._use(place, place + 1)

    def _read_phrases(self) -> None:
        words: list[Token] = []
        lead = joined = ""
        inside = self._inside_names()
        for place in range(len(self._tokens) + 1):
            stem = self._at(place)
            ended = place == len(self._tokens) or self._used[place] or (stem in lexicon.GLUE and place not in inside)
            ended = ended or (place not in inside and self._is_verb(place))
            if not ended:
                words.append(self._tokens[place])
            if words and (ended or self._tokens[place].closed):
                self._add_phrase(words, place + (not ended), lead, joined)
                words, joined = [], "" if ended else "and"
            if ended and stem in lexicon.JOINING:
                joined = "or" if stem == "or" else "and"
            elif ended and stem and stem not in lexicon.SKIPPED:
                lead, joined = stem, ""

    def _inside_names(self) -> set[int]:
        """Places of glue words that are values: inside a choice ("on hold") or a proper name ("Maps of Spain")."""
        inside: set[int] = set()
        for start in range(len(self._stems)):
            for end in range(start + 2, min(start + 5, len(self._stems) + 1)):
                if any(field.choice(tuple(self._stems[start:end])) is not None for field in self._manager.fields):
                    inside.update(range(start, end))
        for place in range(1, len(self._tokens)) if self._long_names else ():
            end = place
            while (
                end < len(self._tokens) and self._stems[end] in lexicon.GLUE - lexicon.JOINING and not self._used[end]
            ):
                end += 1
            before, behind = place - 1, end
            if (
                place < end <= place + MAX_SMALL_WORDS
                and self._is_name(before, inside)
                and self._is_name(behind, inside)
            ):
                inside.update(range(place, end))
        return inside

    def _is_name(self, place: int, inside: set[int]) -> bool:
        """Whether a capitalised value word stands at a place."""
        if place >= len(self._tokens) or self._used[place]:
            return False
        return self._tokens[place].text[:1].isupper() and (place in inside or self._stems[place] not in lexicon.GLUE)

    def _is_verb(self, place: int) -> bool:
        """Whether the word relates the manager named just before to a value: "members *borrowed* Dune"."""
        behind = any(mention.end == place for mention in self._mentions)
        return behind and place + 1 < len(self._tokens) and self._tokens[place].text.endswith("ed")

    def _add_phrase(self, words: list[Token], end: int, lead: str, joined: str) -> None:
        start = end - len(words)
        after = next((mention for mention in self._mentions if mention.start == end), None)
        before = [mention for mention in self._mentions if mention.end <= start]
        beside = bool(before) and before[-1].end == start
        owner = before[-1] if beside else after or (before[-1] if before else self._subject)
        near = beside or after is not None or lead in lexicon.RESTING
        self._phrases.append(Phrase(tuple(words), owner.manager, near, joined))

    # --- lookups ------------------------------------------------------------------------------------------------

    def _at(self, place: int) -> str:
        return self._stems[place] if 0 <= place < len(self._stems) else ""

    def _field_at(self, place: int, *, or_text: bool = False) -> tuple[Field | None, int]:
        """The ordered field (or text field) whose name starts at a place, and where it ends."""
        for end in range(min(place + 4, len(self._stems)), place, -1):
            field = self._field_named(place, end)
            if field is not None and (field.is_ordered or (or_text and field.is_text)):
                return field, end
        return None, place

    def _field_named(self, start: int, end: int) -> Field | None:
        """The field whose name the tokens are, unless something else has understood them."""
        if any(self._used[start:end]):
            return None
        return self._manager.field_called(tuple(self._stems[start:end]))

    def _hinted(self, hints: tuple[str, ...] | str) -> Field | None:
        if isinstance(hints, str):
            return next((field for field in self._manager.fields if field.is_dated), None)
        for hint in hints:
            for field in self._manager.fields:
                if field.is_ordered and not field.is_dated and any(hint in words for words in field.called()):
                    return field
        return None

    def _is_many(self) -> bool:
        """Whether the subject was named in the plural."""
        if self._subject.start == self._subject.end:
            return True
        last = self._tokens[self._subject.end - 1]
        return last.text.casefold() != last.stem
