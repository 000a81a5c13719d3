"""Traces of whole runs, and going on with one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from testproject.exam import case, dataset, statuses
from testproject.pupil import Pupil

from gm_chat.evals.command import FAILED, UNUSABLE, USAGE
from gm_chat.evals.trace import read

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest


def without_times(path: Path) -> str:
    return re.sub(r'"seconds":[\d.]+', "", path.read_text(encoding="utf-8"))


def test_equal_seeds_give_equal_traces_but_for_times(evals: Callable[..., int], tmp_path: Path) -> None:
    moods = [case(mood, name=f"{mood}-{number}") for number in range(4) for mood in ("right", "wrong", "create")]
    file = dataset(tmp_path / "d.yaml", *moods)
    traces = [tmp_path / f"{number}.jsonl" for number in range(3)]
    for trace, concurrency in zip(traces, ("1", "1", "5"), strict=True):
        evals(
            "--dataset", file, "--trace-jsonl", str(trace), "--seed", "3", "--concurrency", concurrency, "--repeat", "2"
        )
    first, *others = map(without_times, traces)
    assert [first] * 2 == others
    assert first.count("\n") == 2 * len(moods)


def test_a_trace_is_gone_on_with(evals: Callable[..., int], tmp_path: Path) -> None:
    file, trace = dataset(tmp_path / "d.yaml", *map(case, ("right", "wrong", "crash"))), tmp_path / "t.jsonl"
    line = ["--dataset", file, "--trace-jsonl", str(trace), "--resume"]

    def asked(*more: str) -> list[str]:
        Pupil.asked.clear()
        evals(*line, *more)
        return [text.split(":")[0] for text in Pupil.asked]

    assert asked("--case", "right") == ["right"], "nothing is there to go on with"
    with trace.open("a") as unfinished:
        unfinished.write('{"version":1,"sta')
    assert asked() == ["wrong", "crash"]
    assert list(statuses(trace)) == ["right", "wrong", "crash"]
    assert asked() == ["crash"], "errors are tried again, failures are not"
    assert asked("--repeat", "2") == ["crash", "right", "wrong", "crash"]
    assert asked("--seed", "1") == ["right", "wrong", "crash"]
    assert len(read(trace)) == 9, "what other runs left stays"
    dataset(tmp_path / "d.yaml", *map(case, ("right", "wrong", "limited")))
    assert asked("--case", "right") == ["right"], "the dataset is another one"
    evals(*line[:-1], "--case", "right")
    assert len(read(trace)) == 1, "without --resume it is a new trace"


def test_what_is_no_trace_or_cannot_be_written_is_named(
    evals: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, trace = dataset(tmp_path / "d.yaml", case("right")), tmp_path / "t.jsonl"
    trace.write_text("no trace\n")
    assert evals("--dataset", file, "--trace-jsonl", str(trace), "--resume") == UNUSABLE
    assert "t.jsonl: line 1: is no line of a trace" in capsys.readouterr().err
    assert evals("--dataset", file, "--trace-jsonl", str(tmp_path / "no" / "t.jsonl")) == UNUSABLE
    assert "No such file or directory" in capsys.readouterr().err
    assert evals("--dataset", file, "--baseline", str(tmp_path / "none.jsonl")) == UNUSABLE
    assert "none.jsonl: cannot be read" in capsys.readouterr().err
    assert evals("--dataset", file, "--html", str(tmp_path / "no" / "page.html")) == USAGE
    assert "--html: there is no folder" in capsys.readouterr().err
    assert Pupil.asked == []


def test_reports_are_written(evals: Callable[..., int], tmp_path: Path) -> None:
    file, trace = dataset(tmp_path / "d.yaml", case("right"), case("wrong")), tmp_path / "t.jsonl"
    junit, page = tmp_path / "j.xml", tmp_path / "p.html"
    line = ["--dataset", file, "--junit", str(junit), "--html", str(page)]
    assert evals(*line, "--trace-jsonl", str(trace)) == FAILED
    assert junit.read_text()
    assert page.read_text()
    assert evals(*line, "--baseline", str(trace)) == FAILED
