"""The picture of a page: for each group a bar of what passed, failed and broke, and the interval of its rate."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Final

from gm_chat.evals.reports.cleaning import markup_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gm_chat.evals.reports.summary import Summary

__all__ = ["bars"]

_LABEL: Final = 190
_BAR: Final = 420
_WIDTH: Final = 800
_STEP: Final = 26


def bars(groups: Iterable[tuple[str, Summary]]) -> str:
    """Return the picture as SVG. Its colours are classes of the page's style sheet; figures stand beside each bar."""
    rows = list(groups)
    height = _STEP * len(rows) + 24
    drawn = "".join(_row(at, name, summary) for at, (name, summary) in enumerate(rows))
    legend = "passed, failed, not judged; the line is the 95 % interval of the rate among those judged"
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="Results by tag" font-size="13">'
        f'{drawn}<text x="{_LABEL}" y="{height - 6}" class="legend">{legend}</text></svg>'
    )


def _row(at: int, name: str, summary: Summary) -> str:
    top = _STEP * at
    parts = [f'<text x="{_LABEL - 10}" y="{top + 17}" text-anchor="end">{_text(_short(name))}</text>']
    left = float(_LABEL)
    for kind, count in (("pass", summary.passed), ("fail", summary.failed), ("error", summary.errors)):
        width = _BAR * count / max(summary.runs, 1)
        if count:
            parts.append(f'<rect class="{kind}" x="{left:.1f}" y="{top + 5}" width="{width:.1f}" height="15"/>')
        left += width
    if summary.rate is not None:
        # The interval is one of the judged runs alone, and so is its scale.
        scale = _BAR * (summary.passed + summary.failed) / summary.runs
        low, high = (_LABEL + scale * end for end in summary.interval)
        ends = f"M{low:.1f} {top + 8}v9M{high:.1f} {top + 8}v9"
        parts.append(f'<path class="interval" d="M{low:.1f} {top + 12.5}H{high:.1f}{ends}"/>')
    figures = f"{summary.passed} / {summary.failed} / {summary.errors}; {summary.shown_rate}"
    parts.append(f'<text x="{_LABEL + _BAR + 10}" y="{top + 17}">{_text(figures)}</text>')
    return f"<g><title>{_text(name)}</title>{''.join(parts)}</g>"


def _short(name: str) -> str:
    return name if len(name) <= 26 else f"{name[:25]}\N{HORIZONTAL ELLIPSIS}"


def _text(text: str) -> str:
    return html.escape(markup_text(text))
