"""The verdicts on a run of a case."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gm_chat.encoding import canonical_json
from gm_chat.evals.judging.calls import judge_calls, judge_strategy
from gm_chat.evals.judging.rows import same_rows, tables
from gm_chat.evals.judging.texts import abbreviated, occurs, searchable
from gm_chat.evals.record import Verdict
from gm_chat.planned.evidence import EvidenceRecord
from gm_chat.planned.grounding import Known, unfounded

if TYPE_CHECKING:
    from gm_chat.evals.dataset import Case, ResultSet
    from gm_chat.evals.record import Observed, ToolUse

__all__ = ["judge"]


def judge(case: Case, observed: Observed, reference: Sequence[tuple[Any, ...]] | None) -> tuple[Verdict, ...]:
    """Give a verdict on each demand of the case, in the order of the dataset's keys; those of its strategy come last.

    ``reference`` are the rows of :func:`~gm_chat.evals.judging.reference.reference_rows`. Raises ``ValueError`` if the
    case has a ``result_set`` and they are missing.
    """
    hard = case.hard
    if hard.result_set is not None and reference is None:
        raise ValueError(f"the case {case.name!r} has a result_set: it cannot be judged without its reference rows")
    results = searchable(call.result for call in observed.calls)
    verdicts = [
        *judge_calls(hard, observed),
        *_contained("results_contain", hard.results_contain, results),
        *_excluded("results_exclude", hard.results_exclude, results),
        *_contained("answer_contains", hard.answer_contains, observed.answer),
        *_excluded("answer_excludes", hard.answer_excludes, observed.answer),
    ]
    if hard.result_set is not None and reference is not None:
        verdicts.append(_result_set(hard.result_set, reference, observed.calls))
    if hard.grounded:
        verdicts.append(_grounded(observed))
    if not observed.answer.strip():
        verdicts.append(Verdict(judge="answer", passed=False, why="expected an answer; it is empty"))
    return (*verdicts, *judge_strategy(case.expectations.contract.strategy, observed))


def _contained(key: str, wanted: Sequence[str | tuple[str, ...]], where: str) -> Iterator[Verdict]:
    if not wanted:
        return
    alternatives = [(item,) if isinstance(item, str) else item for item in wanted]
    failed = [texts for texts in alternatives if not any(occurs(text, where) for text in texts)]
    missing = [" or ".join(map(repr, texts)) for texts in failed]
    if missing:
        why = f"expected {abbreviated(', '.join(missing))}; found {abbreviated(where) or 'nothing'}"
    else:
        why = f"has {abbreviated(', '.join(texts[0] for texts in alternatives))}"
    yield Verdict(judge=key, passed=not missing, why=why)


def _excluded(key: str, unwanted: Sequence[str], where: str) -> Iterator[Verdict]:
    if not unwanted:
        return
    found = [text for text in unwanted if occurs(text, where)]
    listed = abbreviated(", ".join(map(repr, found or unwanted)))
    why = f"expected to be without {listed}; found {abbreviated(where)}" if found else f"is without {listed}"
    yield Verdict(judge=key, passed=not found, why=why)


def _result_set(wanted: ResultSet, reference: Sequence[tuple[Any, ...]], calls: Sequence[ToolUse]) -> Verdict:
    """Whether some result, or the pages of one question together, consist of the reference's rows."""
    for rows in _candidates(calls):
        if same_rows(reference, rows, ordered=wanted.ordered):
            return Verdict(judge="result_set", passed=True, why=f"a result has the reference's rows: {len(reference)}")
    expected = f"expected {_rows(reference)}{' in this order' if wanted.ordered else ''}"
    seen = [next(tables(call.result), None) for call in calls]
    found = "; ".join(f"{call.name}: {_rows(rows)}" for call, rows in zip(calls, seen, strict=True) if rows is not None)
    return Verdict(judge="result_set", passed=False, why=f"{expected}; found {abbreviated(found, 300) or 'no rows'}")


def _candidates(calls: Sequence[ToolUse]) -> Iterator[list[tuple[Any, ...]]]:
    pages: dict[str, list[list[Any]]] = {}
    for call in calls:
        yield from tables(call.result)
        if isinstance(call.result, Mapping) and isinstance(data := call.result.get("data"), list):
            question = {key: value for key, value in call.arguments.items() if key not in ("offset", "limit")}
            pages.setdefault(f"{call.name} {canonical_json(question)}", []).append(data)
    for several in pages.values():
        if len(several) > 1:
            yield from tables({"data": list(itertools.chain(*several))})


def _rows(rows: Sequence[tuple[Any, ...]]) -> str:
    return f"{len(rows)} {'row' if len(rows) == 1 else 'rows'} {abbreviated([list(row) for row in rows[:5]], 120)}"


def _grounded(observed: Observed) -> Verdict:
    """Judge by the mechanism that planned answers are held to."""
    known = Known.of("\n".join(observed.questions), map(_evidence, observed.calls))
    invented = unfounded(observed.answer, known)
    if invented:
        listed = abbreviated(", ".join(invented))
        why = f"no result and no question says {listed}; answered {abbreviated(observed.answer)}"
    else:
        why = "each figure and quotation comes from the data or the question"
    return Verdict(judge="grounded", passed=not invented, why=why)


def _evidence(call: ToolUse) -> EvidenceRecord:
    """A call as evidence. What a refused one asked for is not known to be so."""
    refused = call.result is None or (isinstance(call.result, Mapping) and "error" in call.result)
    identity = call.name if refused else f"{call.name} {canonical_json(call.arguments)}"
    return EvidenceRecord.create("call", "call", "query", identity, None, call.result)
