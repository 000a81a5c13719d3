"""Reports in plain text, for a terminal or a log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from gm_chat.evals.judging.calls import shown_call
from gm_chat.evals.reports.cleaning import printable
from gm_chat.evals.reports.summary import Summary, by_dataset, by_tag, by_variant
from gm_chat.evals.statistics import by_case, compared
from gm_chat.evals.trace import read

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from gm_chat.evals.record import Outcome
    from gm_chat.evals.statistics import Score

    Key: TypeAlias = tuple[str, str]

__all__ = ["baseline", "comparison", "failure_lines", "table"]

_HEAD: Final = ("", "pass", "fail", "error", "rate", "tokens", "cost", "seconds", "rounds")


def table(outcomes: Sequence[Outcome], *, evaluated_of: int, verbose: bool) -> str:
    """Return the report: a line for each dataset and for each tag, and how many of ``evaluated_of`` runs were judged.

    ``verbose`` adds the reasons and the calls of what failed. Tokens (sent + received), seconds and rounds are means
    over the runs, the cost is their sum.
    """
    rows = [_row(name, group) for name, group in by_dataset(outcomes).items()]
    rows.append(_row("all", outcomes))
    tags = [_row(name, group) for name, group in by_tag(outcomes).items()]
    parts = [_aligned([_HEAD, *rows])]
    if tags:
        parts.append(_aligned([("by tag", *_HEAD[1:]), *tags]))
    parts += filter(None, [_list_of("failed", outcomes, "fail"), _list_of("not evaluated", outcomes, "error")])
    if verbose:
        parts += [_explained(outcome) for outcome in outcomes if outcome.status != "pass" or _soft(outcome)]
    parts.append(_closing(outcomes, evaluated_of))
    return "\n\n".join(parts)


def comparison(outcomes: Mapping[str, Sequence[Outcome]]) -> str:
    """Return variants side by side, over the cases that each of them has a result for, and how sure the difference is.

    ``outcomes`` maps each variant's name to its runs; all are compared with the first.
    """
    scores = {name: by_case(runs) for name, runs in outcomes.items()}
    shared = set.intersection(*(set(score) for score in scores.values())) if scores else set()
    common = {
        name: [run for run in runs if (run.observed.dataset, run.observed.case) in shared]
        for name, runs in outcomes.items()
    }
    rows = [_row(name, runs) for name, runs in common.items()]
    parts = [f"{len(shared)} cases that every variant has a result for", _aligned([_HEAD, *rows])]
    first, *others = scores or [""]
    sentences = [compared(scores[first], scores[name]).sentence(first, name) for name in others]
    if len(others) > 1:
        sentences.append(f"Of {len(others)} comparisons one in twenty looks like a difference where there is none.")
    parts.append("\n".join(map(printable, sentences)))
    differing = [key for key in sorted(shared) if len({score[key].rate for score in scores.values()}) > 1]
    if differing:
        lines = [_case_row(f"{key[0]}/{key[1]}", [score[key] for score in scores.values()]) for key in differing]
        parts.append(_aligned([("where they differ", *scores), *lines]))
    left_out = {
        name: sum(run.status == "error" for run in runs)
        for name, runs in outcomes.items()
        if any(run.status == "error" for run in runs)
    }
    if left_out:
        parts.append(printable(", ".join(f"{name}: {count} not evaluated" for name, count in left_out.items())))
    return "\n\n".join(filter(None, parts))


def baseline(path: Path, outcomes: Sequence[Outcome]) -> str:
    """Compare runs with those of a former trace. Raises :class:`~gm_chat.evals.trace.TraceError`.

    A variant is compared with the one of its name, or with the only one that the trace holds.
    """
    former, variants = by_variant(read(path)), by_variant(outcomes)
    lines = [f"against {path}"]
    for name, runs in variants.items():
        base = former.get(name) or (next(iter(former.values())) if len(former) == 1 else None)
        this = name or "this run"
        if base is None:
            lines.append(f"{this}: the baseline holds {', '.join(map(repr, former)) or 'no run'} only")
        else:
            lines += _changes(by_case(base), by_case(runs), this)
    return "\n".join(map(printable, lines))


def _changes(before: Mapping[Key, Score], after: Mapping[Key, Score], this: str) -> Iterator[str]:
    yield compared(before, after).sentence("the baseline", this)
    shared = [key for key in after if key in before]
    for label, keys in (
        ("worse", [key for key in shared if after[key].rate < before[key].rate]),
        ("better", [key for key in shared if after[key].rate > before[key].rate]),
        ("new", [key for key in after if key not in before]),
        ("without a result now", [key for key in before if key not in after]),
    ):
        if keys:
            yield f"  {label}: {', '.join(f'{dataset}/{case}' for dataset, case in keys)}"


def failure_lines(outcome: Outcome) -> Iterator[str]:
    """Say in some lines why a run did not pass: the error, or each failed verdict."""
    if outcome.status == "error":
        yield printable(f"error: {outcome.observed.error}")
    for verdict in outcome.verdicts:
        if not verdict.passed:
            yield printable(f"{verdict.judge}{'' if verdict.is_hard else ' (does not decide)'}: {verdict.why}")


def _soft(outcome: Outcome) -> bool:
    return any(not verdict.passed for verdict in outcome.verdicts)


def _row(name: str, outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    summary = Summary.of(outcomes)
    counts = (str(summary.passed), str(summary.failed), str(summary.errors))
    shown = (summary.shown_rate, summary.shown_tokens, summary.shown_cost, summary.shown_seconds, summary.shown_rounds)
    return (printable(name), *counts, *shown)


def _case_row(name: str, scores: Iterable[Score]) -> tuple[str, ...]:
    return (printable(name), *(f"{score.passed} of {score.judged}" for score in scores))


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    """Columns of equal width, the first one to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if at else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )


def _name(outcome: Outcome) -> str:
    seen = outcome.observed
    repeat = f" #{seen.repeat}" if seen.repeat > 1 else ""
    return printable(f"{seen.dataset}/{seen.case}{repeat}")


def _list_of(label: str, outcomes: Iterable[Outcome], status: str) -> str:
    names = [_name(outcome) for outcome in outcomes if outcome.status == status]
    return f"{label}: {', '.join(names)}" if names else ""


def _explained(outcome: Outcome) -> str:
    seen = outcome.observed
    lines = [f"{outcome.status.upper()} {_name(outcome)}"]
    lines += [f"  {line}" for line in failure_lines(outcome)]
    lines += [f"  called {printable(shown_call(call))}" for call in seen.calls]
    if seen.answers:
        lines.append(f"  answered {printable(seen.answer)[:500] or 'nothing'}")
    return "\n".join(lines)


def _closing(outcomes: Sequence[Outcome], evaluated_of: int) -> str:
    summary = Summary.of(outcomes)
    evaluated = summary.passed + summary.failed
    line = f"{evaluated} of {evaluated_of} evaluated: {summary.passed} passed, {summary.failed} failed"
    if summary.errors:
        line += f"; {summary.errors} could not be judged"
    if summary.repeats > 1 and summary.steadiness is not None:
        line += f"\npass@1 {_rate(summary.rate)}, pass^{summary.repeats} {_rate(summary.steadiness)}"
    return line


def _rate(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:.1%}"
