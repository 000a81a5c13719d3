"""What a case demands, read as plainly as it can be: enough to tell a scripted right run from a scripted wrong one."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from gm_chat.encoding import to_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gm_chat.evals.dataset import Hard

__all__ = ["Run", "faults"]

_NUMBER = re.compile(r"(?<![\w.,-])\d+(?:,\d{3})*(?:\.\d+)?(?![\w-]|[.,]\d)")


@dataclass(frozen=True)
class Run:
    """What was called, with what result, and what was said in the end."""

    answer: str
    question: str = ""
    calls: Sequence[tuple[str, dict[str, Any], Any]] = field(default_factory=tuple)

    @property
    def results(self) -> str:
        return "\n".join(to_json(result) for _, _, result in self.calls)


def faults(hard: Hard, run: Run, reference: Sequence[tuple[Any, ...]] | None = None) -> list[str]:
    """Every demand that the run does not meet. ``reference`` are the rows of the case's ``result_set``."""
    names = [name for name, _, _ in run.calls]
    found = [
        f"no call {wanted.name} {wanted.args_contain}"
        for wanted in hard.required_tool_calls
        if not any(name == wanted.name and _within(wanted.args_contain, args) for name, args, _ in run.calls)
    ]
    found += [f"called {name}" for name in hard.forbidden_tools if name in names]
    if hard.tool_order and [name for name in dict.fromkeys(names) if name in hard.tool_order] != [*hard.tool_order]:
        found.append(f"order {names}")
    found += [f"results lack {text!r}" for text in hard.results_contain if not _occurs(text, run.results)]
    found += [f"results hold {text!r}" for text in hard.results_exclude if _occurs(text, run.results)]
    for item in hard.answer_contains:
        if not any(_occurs(text, run.answer) for text in ((item,) if isinstance(item, str) else item)):
            found.append(f"answer lacks {item!r}")
    found += [f"answer holds {text!r}" for text in hard.answer_excludes if _occurs(text, run.answer)]
    if hard.grounded:
        known = _numbers(run.results) | _numbers(run.question)
        known |= {Decimal(len(result["data"])) for _, _, result in run.calls if "data" in result}
        found += [f"answer invents {number}" for number in _numbers(run.answer) - known]
    asked = any("confirmation_required" in to_json(result) for _, _, result in run.calls)
    if hard.confirmation is not None and asked != (hard.confirmation == "required"):
        found.append("confirmation")
    if reference is not None and not any(_same(reference, rows) for rows in _tables(run)):
        found.append("result set")
    return found


def _within(wanted: Any, given: Any) -> bool:
    if isinstance(wanted, dict):
        return isinstance(given, dict) and all(key in given and _within(wanted[key], given[key]) for key in wanted)
    return bool(wanted == given)


def _occurs(text: str, where: str) -> bool:
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return Decimal(text) in _numbers(where)
    start, end = (r"\b" if text[at].isalnum() else "" for at in (0, -1))
    return re.search(start + re.escape(text) + end, where, re.IGNORECASE) is not None


def _numbers(text: str) -> set[Decimal]:
    return {Decimal(found.replace(",", "")) for found in _NUMBER.findall(text)}


def _tables(run: Run) -> Iterator[list[tuple[Any, ...]]]:
    for _, _, result in run.calls:
        if isinstance(result, dict) and "data" in result:
            yield [tuple(_leaves(row)) for row in result["data"]]


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for each in value.values():
            yield from _leaves(each)
    else:
        yield value


def _same(reference: Sequence[tuple[Any, ...]], rows: Sequence[tuple[Any, ...]]) -> bool:
    """Whether some choice of the columns holds the same rows, in any order."""
    if len(reference) != len(rows) or not rows:
        return len(reference) == len(rows)
    wanted = Counter(tuple(map(_plain, row)) for row in reference)
    choices = itertools.permutations(range(len(rows[0])), len(reference[0]))
    return any(Counter(tuple(_plain(row[at]) for at in choice) for row in rows) == wanted for choice in choices)


def _plain(value: Any) -> Any:
    text = str(value)
    return Decimal(text).normalize() if re.fullmatch(r"-?\d+(\.\d+)?", text) else text
