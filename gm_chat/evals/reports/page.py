"""A report as one HTML page, which loads nothing and runs nothing: it may be mailed, or kept as an artifact of CI.

Everything that came from a model or a record is hostile until it is escaped: :func:`_text` is the only way in. The
page's policy forbids scripts and loads besides, should that ever fail.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from importlib import resources
from typing import TYPE_CHECKING, Final

from gm_chat.encoding import jsonable
from gm_chat.evals.judging.texts import abbreviated
from gm_chat.evals.reports.cleaning import markup_text
from gm_chat.evals.reports.picture import bars
from gm_chat.evals.reports.summary import Summary, by_dataset, by_tag, by_variant
from gm_chat.evals.statistics import by_case, compared

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from gm_chat.evals.record import Outcome, ToolUse, Verdict
    from gm_chat.evals.trace import Head

__all__ = ["write_html"]

MAX_RESULT: Final = 20_000
"""Characters of a tool's result that are shown; the trace holds all of them."""

_COLUMNS: Final = ("", "passed", "failed", "errors", "rate (95 %)", "tokens", "cost", "seconds", "rounds")


def write_html(path: Path, outcomes: Sequence[Outcome], head: Head) -> None:
    """Write the page. ``head`` says under which circumstances the cases were run. Raises ``OSError``."""
    path.write_text("\n".join(_page(outcomes, head)), encoding="utf-8")


def _page(outcomes: Sequence[Outcome], head: Head) -> Iterator[str]:
    style = resources.files("gm_chat.evals.reports").joinpath("page.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode("ascii")
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    yield '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">'
    yield f"<title>Evaluation</title>\n<style>{style}</style>\n</head>\n<body>\n<main>\n<h1>Evaluation</h1>"
    yield _sum(Summary.of(outcomes))
    variants = by_variant(outcomes)
    yield _circumstances(head, is_one=len(variants) == 1)
    if len(variants) > 1:
        yield from _variants(variants)
    yield "<h2>By dataset</h2>" + _table(by_dataset(outcomes).items())
    if tags := by_tag(outcomes):
        yield f"<h2>By tag</h2>\n<figure>{bars((tag, Summary.of(runs)) for tag, runs in tags.items())}</figure>"
        yield f"<details><summary>In figures</summary>{_table(tags.items())}</details>"
    yield "<h2>Cases</h2>"
    order = {"fail": 0, "error": 1, "pass": 2}
    for outcome in sorted(outcomes, key=lambda outcome: order[outcome.status]):
        yield from _case(outcome)
    yield "</main>\n</body>\n</html>\n"


def _text(value: object) -> str:
    return html.escape(markup_text(str(value)))


def _sum(summary: Summary) -> str:
    parts = [
        f"{summary.passed + summary.failed} of {summary.runs} runs judged",
        f"{summary.passed} passed",
        f"{summary.failed} failed",
        f"{summary.errors} could not be judged",
        f"rate {summary.shown_rate}",
    ]
    if summary.repeats > 1 and summary.steadiness is not None:
        parts.append(f"pass^{summary.repeats} {summary.steadiness:.1%}")
    return f'<p class="sum">{_text("; ".join(parts))}</p>'


def _circumstances(head: Head, *, is_one: bool) -> str:
    """What the runs have in common: several variants may differ in the rest."""
    facts: dict[str, object] = {"fixture": head.fixture, "seed": head.seed}
    if is_one:
        versions = ", ".join(f"{name} {version}" for name, version in head.versions.items())
        facts |= {"provider": head.provider, "model": head.model, "versions": versions}
    listed = "".join(f"<dt>{_text(name)}</dt><dd>{_text(value)}</dd>" for name, value in facts.items() if value != "")
    return f"<dl>{listed}</dl>"


def _variants(variants: dict[str, list[Outcome]]) -> Iterator[str]:
    yield "<h2>By variant</h2>" + _table(variants.items())
    (first, base), *others = variants.items()
    for name, runs in others:
        yield f"<p>{_text(compared(by_case(base), by_case(runs)).sentence(first, name))}</p>"


def _table(groups: Iterable[tuple[str, Sequence[Outcome]]]) -> str:
    head = "".join(f'<th scope="col">{_text(name)}</th>' for name in _COLUMNS)
    rows = []
    for name, runs in groups:
        each = Summary.of(runs)
        cells = [each.passed, each.failed, each.errors, each.shown_rate, each.shown_tokens, each.shown_cost]
        cells += [each.shown_seconds, each.shown_rounds]
        data = "".join(f"<td>{_text(cell)}</td>" for cell in cells)
        rows.append(f'<tr><th scope="row">{_text(name)}</th>{data}</tr>')
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'


def _case(outcome: Outcome) -> Iterator[str]:
    seen = outcome.observed
    repeat = f" #{seen.repeat}" if seen.repeat > 1 else ""
    variant = f" [{seen.variant}]" if seen.variant else ""
    title = f"{seen.dataset}/{seen.case}{repeat}{variant}"
    yield f'<details class="case"><summary><b class="{outcome.status}">{outcome.status}</b> {_text(title)}'
    failed = [each for each in outcome.verdicts if each.is_hard and not each.passed]
    first = seen.error or (f"{failed[0].judge}: {failed[0].why}" if failed else "")
    yield f'<span class="why">{_text(first)}</span></summary>'
    if seen.error:
        yield f'<p class="error">{_text(seen.error)}</p>'
    if outcome.verdicts:
        yield f"<ul>{''.join(map(_verdict, outcome.verdicts))}</ul>"
    yield _transcript(outcome)
    sent, received = seen.input_tokens, seen.output_tokens
    taken = [f"{seen.rounds} rounds", f"{seen.seconds:.2f} s"]
    taken += [f"{sent} + {received} tokens"] if sent is not None and received is not None else []
    taken += [f"cost {seen.cost:f}"] if seen.cost is not None else []
    yield f'<p class="taken">{_text(", ".join(taken))}</p></details>'


def _verdict(verdict: Verdict) -> str:
    mark = "pass" if verdict.passed else "fail" if verdict.is_hard else "note"
    return f'<li><b class="{mark}">{mark}</b> {_text(verdict.judge)}: {_text(verdict.why)}</li>'


def _transcript(outcome: Outcome) -> str:
    """Questions and answers in turn, and the calls of all of them."""
    seen = outcome.observed
    parts = []
    for place, question in enumerate(seen.questions):
        parts.append(f'<dt>user</dt><dd dir="auto">{_text(question)}</dd>')
        answer = seen.answers[place] if place < len(seen.answers) else ""
        parts.append(f'<dt>answer</dt><dd dir="auto">{_text(answer) or "<i>nothing</i>"}</dd>')
    confirmed = "".join(f"<dt>asked to approve</dt><dd>{_text(name)}</dd>" for name in seen.confirmations)
    calls = "".join(map(_call, seen.calls))
    return f'<dl class="transcript">{"".join(parts)}{confirmed}</dl>{calls}'


def _call(call: ToolUse) -> str:
    shown = json.dumps(jsonable(call.result), indent=1, ensure_ascii=False)
    cut = f"\n... {len(shown) - MAX_RESULT:,} characters more" if len(shown) > MAX_RESULT else ""
    asked = abbreviated(call.arguments, 2000)
    head = f"<summary>{_text(call.name)} <code>{_text(asked)}</code></summary>"
    return f"<details>{head}<pre>{_text(shown[:MAX_RESULT] + cut)}</pre></details>"
