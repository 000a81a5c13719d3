"""Words the answers. Every answer says how the question was read, and that no language model is running."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from gm_chat_provider_offline import lexicon
from gm_chat_provider_offline.naming import is_common
from gm_chat_provider_offline.placing import values_at
from gm_chat_provider_offline.schema import LABELS
from gm_chat_provider_offline.words import name_words, plural

if TYPE_CHECKING:
    from gm_chat_provider_offline.placing import Condition
    from gm_chat_provider_offline.reading import Phrase, Reading
    from gm_chat_provider_offline.schema import Manager
    from gm_chat_provider_offline.words import Token

__all__ = ["FOOTER", "interrupted", "nothing_called", "report", "stuck", "unplaced"]

FOOTER: Final = (
    "(No language model is running. The offline provider only answers plain list, count and show questions about "
    "one kind of thing, each question by itself; for anything more, configure another provider: in the demo, "
    "start with --provider ollama or --provider openai.)"
)
MIDNIGHT: Final = "T00:00:00+00:00"
"""What a moment that is only a day ends with."""
SHOWN_VALUES: Final = 60
"""Longer texts are cut in lists."""


def report(
    reading: Reading,
    manager: Manager,
    targets: Mapping[str, Manager],
    conditions: Sequence[Condition],
    asked: Sequence[str],
    result: Any,
) -> str:
    """Word the result of the final query; ``targets`` are the managers behind the subject's to-one relations."""
    if not isinstance(result, Mapping) or not isinstance(result.get("data"), list):
        return _finish([f"The data could not be read: {_error(result)}"])
    total = result.get("total_count")
    rows = result["data"]
    count = total if isinstance(total, int) else len(rows)
    where = f" where {', and '.join(condition.says for condition in conditions)}" if conditions else ""
    lines = [_opening(reading, manager, where, count, len(rows), asked)]
    if rows and not (reading.count and not asked):
        shown = _Row(reading, manager, targets, conditions, asked)
        single = count == 1 and not asked and reading.sorting is None
        lines += shown.details(rows[0]) if single else [f"- {shown.line(row)}" for row in rows]
        wanted = reading.limit is None and count > len(rows)
        lines += [f"... and {count - len(rows):,} more."] if wanted else []
    if isinstance(note := result.get("note"), str):
        lines.append(note)
    return _finish(lines)


def _opening(reading: Reading, manager: Manager, where: str, count: int, shown: int, asked: Sequence[str]) -> str:
    noun = plural(manager.noun, count)
    if not count:
        return f"I found no {plural(manager.noun, 0)}{where}."
    if reading.count and not asked:
        return f"There {'is' if count == 1 else 'are'} {count:,} {noun}{where}."
    end = ":" if shown else "."
    if reading.sorting is not None:
        field = next(item for item in manager.fields if item.name == reading.sorting.field)
        ways = ("latest", "earliest") if field.is_dated else ("highest", "lowest")
        first = f"the {ways[0] if reading.sorting.descending else ways[1]} {field.label()} first"
        first = f"in the order of {field.label()}" if field.is_text else first
        return f"{shown:,} of {count:,} {noun}{where}, {first}{end}"
    if reading.limit is not None and shown < count:
        return f"{shown:,} of {count:,} {noun}{where}{end}"
    return f"{count:,} {noun}{where}{end}"


class _Row:
    """How a row is shown: what people know it by, then what the question was about."""

    def __init__(
        self,
        reading: Reading,
        manager: Manager,
        targets: Mapping[str, Manager],
        conditions: Sequence[Condition],
        asked: Sequence[str],
    ) -> None:
        self._manager = manager
        texts = [field.name for field in manager.texts()]
        related = [f"{name}__{target.texts()[0].name}" for name, target in targets.items() if target.texts()]
        if len(texts) < 2:
            self._names = [*texts, *related][:3]
        elif texts[0] in LABELS:
            self._names = texts[:2]
        else:
            self._names = [*related, *texts][:2]
        extra = [*asked, *(condition.path for condition in conditions if condition.shown)]
        if reading.sorting is not None:
            extra.append(reading.sorting.field)
        if not texts and not asked:
            extra += [field.name for field in manager.fields if field.name != "id"][:3]
        self._extra = [path for path in dict.fromkeys(extra) if path not in self._names]
        self._all = [*(field.name for field in manager.fields if field.name != "id"), *related]
        self._descriptions = {field.name: field.description for field in manager.fields}

    def line(self, row: Any) -> str:
        """One row in one line."""
        names = " · ".join(text for path in self._names if (text := self._text(row, path)))
        extra = "; ".join(f"{_label(path)} {text}" for path in self._extra if (text := self._text(row, path)))
        return f"{names}: {extra}" if names and extra else names or extra or "(nothing to show)"

    def details(self, row: Any) -> list[str]:
        """One row with everything that is known of it."""
        shown = ((path, self._text(row, path)) for path in self._all)
        return [f"- {_label(path)}: {text}{self._unit(path)}" for path, text in shown if text]

    def _text(self, row: Any, path: str) -> str:
        values = [str(value) for value in values_at(row, path) if value is not None]
        text = ", ".join(dict.fromkeys(value.removesuffix(MIDNIGHT) for value in values))
        return text if len(text) <= SHOWN_VALUES else text[: SHOWN_VALUES - 3] + "..."

    def _unit(self, path: str) -> str:
        description = self._descriptions.get(path, "")
        return f" ({description})" if " in " in description else ""


def unplaced(phrase: Phrase, manager: Manager) -> str:
    """Say that words could not be found anywhere, and that some of them ask for more than rows."""
    for word in phrase.words:
        if word.stem in lexicon.COMPUTING:
            return f"{word.text!r} asks for more than looking rows up, which these rules cannot do."
    return f"I find no {manager.noun} or anything related to it that {phrase.text!r} could mean."


def nothing_called(words: Sequence[Token]) -> str:
    """Say which word names nothing that is known."""
    unknown = next((word.text for word in words if not is_common(word)), None)
    if unknown is None:
        return "I do not see which kind of thing the question is about."
    return f"I know nothing called {unknown!r} among the data that you may see."


def stuck(reason: str, known: Sequence[Manager]) -> str:
    """Say why there is no answer, and what could be asked instead, from what is known of the data."""
    examples = list(_examples(known))
    lines = [reason]
    if examples:
        lines += ["Questions that I can answer:", *(f"- {example}" for example in examples)]
    return _finish(lines)


def interrupted() -> str:
    """Say that no more tool calls are possible before the answer is complete."""
    return _finish(["I could not finish: no further tool call is possible in this turn."])


def _examples(known: Sequence[Manager]) -> Iterator[str]:
    for manager in known[:2]:
        many = plural(manager.noun, 2)
        yield f"How many {many} do we have?"
        chosen = next((field for field in manager.fields if field.choices), None)
        if chosen is not None:
            yield f"List {' '.join(name_words(str(chosen.choices[0][0]))).lower()} {many}"
        ordered = next((field for field in manager.fields if field.is_ordered and field.name != "id"), None)
        if ordered is not None:
            way = "latest" if ordered.is_dated else "highest"
            yield f"Show the 3 {many} with the {way} {ordered.label()}"


def _label(path: str) -> str:
    return " ".join(" ".join(name_words(name)).lower() for name in path.split("__"))


def _error(result: Any) -> str:
    error = result.get("error") if isinstance(result, Mapping) else None
    message = error.get("message") if isinstance(error, Mapping) else None
    return str(message or "the tool gave no rows")


def _finish(lines: Sequence[str]) -> str:
    return "\n".join([*lines, "", FOOTER])
