from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gm_chat.evals.datasets import LEGACY
from gm_chat.evals.options import Options, parse


def test_the_defaults_are_the_specifications() -> None:
    assert parse([]) == Options()
    assert parse([]).datasets == LEGACY
    assert "planned_orchestration" not in LEGACY


def test_every_option_is_read() -> None:
    line = (
        "--settings my.settings --provider a.B --model m --compare a.B,c.D --variant x=x.yaml --variant y=y.yaml "
        "--fixture toy --user ann --allow-writes --database other --dataset multi_hop --dataset own.yaml --tier 2 "
        "--tag a --tag b --case one --held-out --sample 5 --seed 7 --repeat 3 --concurrency 4 -v "
        "--trace-jsonl t.jsonl --resume --junit j.xml --html h.html --baseline b.jsonl"
    )
    assert parse(line.split()) == Options(
        settings="my.settings",
        provider="a.B",
        model="m",
        compare=("a.B", "c.D"),
        variants=(("x", Path("x.yaml")), ("y", Path("y.yaml"))),
        fixture="toy",
        user="ann",
        allow_writes=True,
        database="other",
        datasets=("multi_hop", "own.yaml"),
        tier=2,
        tags=("a", "b"),
        cases=("one",),
        half="held-out",
        sample=5,
        seed=7,
        repeat=3,
        concurrency=4,
        verbose=True,
        trace_jsonl=Path("t.jsonl"),
        resume=True,
        junit=Path("j.xml"),
        html=Path("h.html"),
        baseline=Path("b.jsonl"),
    )
    assert parse(["--tuning"]).half == "tuning"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("--dataset planned_orchestration", "needs providers whose roles are pinned"),
        ("--fixture huge", "invalid choice: 'huge'"),
        ("--tier one", "invalid int value: 'one'"),
        ("--repeat 0", "'0' is no whole number, 1 or more"),
        ("--sample -1", "'-1' is no whole number, 1 or more"),
        ("--variant x", "'x' is not of the form NAME=FILE.yaml"),
        ("--variant x=a --variant x=b", "--variant: 'x' stands twice"),
        ("--compare a.B,", "'a.B,' is no list of provider paths"),
        ("--compare a.B,a.B", "--compare: 'a.B' stands twice"),
        ("--dataset multi_hop --dataset multi_hop", "--dataset: 'multi_hop' stands twice"),
        ("--held-out --tuning", "not allowed with"),
        ("--resume", "name the trace that is to be continued"),
        ("--trace-jsonl a --baseline a", "must be different files"),
        ("--concurency 2", "unrecognized arguments: --concurency 2"),
    ],
)
def test_a_wrong_command_line_is_named(line: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(line.split())
    assert ended.value.code == 2
    assert told in capsys.readouterr().err


def command(*line: str) -> subprocess.CompletedProcess[str]:
    """Run it in a process that knows no Django settings."""
    return subprocess.run(
        [sys.executable, "-m", "gm_chat.evals", *line], capture_output=True, text=True, check=False, env={}
    )


def test_help_needs_no_settings() -> None:
    done = command("--help")
    assert done.returncode == 0, done.stderr
    assert "--trace-jsonl FILE" in done.stdout


def test_a_run_needs_settings() -> None:
    done = command("--dataset", "basic_queries")
    assert (done.returncode, done.stdout) == (2, "")
    assert "Give --settings MODULE or set DJANGO_SETTINGS_MODULE" in done.stderr
