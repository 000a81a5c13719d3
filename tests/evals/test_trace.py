from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from gm_chat.evals.record import Observed, Outcome, ToolUse, Verdict
from gm_chat.evals.trace import Head, TraceError, read, read_entries, to_line

if TYPE_CHECKING:
    from pathlib import Path

HEAD = Head(seed=7, dataset_sha256="ab", fixture="toy", provider="ollama", model="m", versions={"ollama": "0.6.1"})
FULL = Outcome(
    observed=Observed(
        dataset="d",
        case="open-orders",
        repeat=2,
        variant="planned",
        tags=("filter", "money"),
        questions=("How many?", "And\u2028now?"),
        answers=("Two.", "Drei \N{EURO SIGN}"),
        calls=(ToolUse(name="query", arguments={"manager": "Order"}, result={"data": [{"n": 1.5}]}),),
        confirmations=("deleteOrder",),
        rounds=3,
        input_tokens=100,
        cost=Decimal("0.00000012"),
        seconds=1.25,
    ),
    verdicts=(Verdict(judge="answer", passed=False, why="lacks 'two'", is_hard=False),),
)
BROKEN = Outcome(observed=Observed(dataset="d", case="other", error="rate_limited"))


def written(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    path = written(tmp_path / "trace.jsonl", to_line(FULL, HEAD), to_line(BROKEN, Head()))
    assert read(path) == [FULL, BROKEN]
    assert read_entries(path) == [(HEAD, FULL), (Head(), BROKEN)]


def test_a_line_that_was_not_finished_is_passed_over(tmp_path: Path) -> None:
    path = written(tmp_path / "trace.jsonl", to_line(FULL, HEAD))
    path.write_text(path.read_text() + to_line(BROKEN, HEAD)[:40])
    assert read(path) == [FULL]


@pytest.mark.parametrize(
    "line", ["{", "[]", "{}", '{"version":1}', to_line(FULL, HEAD).replace('"head":{', '"head":{"x":1,')]
)
def test_what_is_no_trace_is_named_with_its_line(tmp_path: Path, line: str) -> None:
    path = written(tmp_path / "trace.jsonl", to_line(FULL, HEAD), line)
    with pytest.raises(TraceError, match=r"trace\.jsonl: line 2: is no line of a trace"):
        read(path)


def test_another_version_and_a_missing_file_are_named(tmp_path: Path) -> None:
    path = written(tmp_path / "trace.jsonl", to_line(FULL, HEAD).replace('"version":1', '"version":9'))
    with pytest.raises(TraceError, match=r"line 1: has version 9; this gm-chat reads 1"):
        read(path)
    with pytest.raises(TraceError, match=r"none\.jsonl: cannot be read: No such file"):
        read(tmp_path / "none.jsonl")
