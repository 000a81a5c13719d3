from __future__ import annotations

import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from decimal import Decimal
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import pytest

from gm_chat.evals.record import Observed, Outcome, ToolUse, Verdict
from gm_chat.evals.reports import baseline, comparison, table, write_html, write_junit
from gm_chat.evals.reports.page import MAX_RESULT
from gm_chat.evals.trace import Head, to_line

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

HOSTILE = (
    "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">\x1b[2J\x00\u202e]]>&\ud800"
)
SEEN: dict[str, Any] = {"rounds": 2, "seconds": 1.5, "input_tokens": 100, "output_tokens": 10, "cost": Decimal("0.002")}


def outcome(case: str, *, passed: bool | None, **more: Any) -> Outcome:
    """``None`` is an error."""
    seen = {**SEEN, "dataset": "shop", "case": case, "questions": (f"{case}?",), "answers": ("Yes.",), **more}
    if passed is None:
        return Outcome(observed=Observed(**{**seen, "error": "rate_limited: too many"}))
    verdicts = (
        Verdict(judge="answer_contains", passed=passed, why="has it" if passed else "expected 'No'; found Yes."),
        Verdict(judge="max_rounds", passed=False, why="expected 1 at most; 2 were made", is_hard=False),
    )
    return Outcome(observed=Observed(**seen), verdicts=verdicts)


RUNS = [
    outcome("a", passed=True, tags=("money", "list")),
    outcome("b", passed=False, tags=("list",), calls=(ToolUse(name="query", arguments={"manager": "M"}, result=[]),)),
    outcome("c", passed=None, dataset="other"),
]


def test_the_table_says_what_passed_by_dataset_and_tag() -> None:
    lines = table(RUNS, evaluated_of=4, verbose=False).splitlines()
    assert [line.split() for line in lines[:10]] == [
        ["pass", "fail", "error", "rate", "tokens", "cost", "seconds", "rounds"],
        ["shop", "1", "1", "0", "50", "%", "(9-91)", "100", "+", "10", "0.0040", "1.5", "2.0"],
        ["other", "0", "0", "1", "-", "100", "+", "10", "0.0020", "1.5", "2.0"],
        ["all", "1", "1", "1", "50", "%", "(9-91)", "100", "+", "10", "0.0060", "1.5", "2.0"],
        [],
        ["by", "tag", "pass", "fail", "error", "rate", "tokens", "cost", "seconds", "rounds"],
        ["list", "1", "1", "0", "50", "%", "(9-91)", "100", "+", "10", "0.0040", "1.5", "2.0"],
        ["money", "1", "0", "0", "100", "%", "(21-100)", "100", "+", "10", "0.0020", "1.5", "2.0"],
        [],
        ["failed:", "shop/b"],
    ]
    assert "not evaluated: other/c" in lines
    assert lines[-1] == "2 of 4 evaluated: 1 passed, 1 failed; 1 could not be judged"
    assert len({len(line) for line in lines[:4]}) == 1, "columns stand below each other"


def test_what_is_not_reported_is_a_dash() -> None:
    runs = [RUNS[0], outcome("d", passed=True, input_tokens=None, cost=None)]
    assert table(runs, evaluated_of=2, verbose=False).splitlines()[1].split()[6:10] == ["(34-100)", "-", "-", "1.5"]


def test_a_verbose_table_says_why() -> None:
    text = table(RUNS, evaluated_of=3, verbose=True)
    assert (
        "FAIL shop/b\n  answer_contains: expected 'No'; found Yes.\n  max_rounds (does not decide): expected 1" in text
    )
    assert '\n  called query {"manager":"M"}\n  answered Yes.' in text
    assert "ERROR other/c\n  error: rate_limited: too many" in text


def test_repeats_give_pass_hat_k() -> None:
    runs = [outcome("a", passed=True, repeat=1), outcome("a", passed=False, repeat=2)]
    text = table(runs, evaluated_of=2, verbose=False)
    assert "failed: shop/a #2" in text
    assert text.endswith("\npass@1 50.0%, pass^2 0.0%")


def test_no_run_at_all_is_a_report_too() -> None:
    assert table([], evaluated_of=3, verbose=True).endswith("0 of 3 evaluated: 0 passed, 0 failed")
    assert comparison({}) != ""


def test_a_terminal_is_not_written_to_by_records() -> None:
    runs = [outcome("b", passed=False, tags=(HOSTILE,), answers=(HOSTILE,), error="")]
    text = table(runs, evaluated_of=1, verbose=True) + comparison({HOSTILE: runs, "other": runs})
    assert not re.search("[\x00-\x09\x0b-\x1f\u202e]", text)


def variant(name: str, passed: Sequence[bool | None]) -> list[Outcome]:
    return [outcome(f"case-{at}", passed=each, variant=name) for at, each in enumerate(passed)]


def test_variants_are_compared_on_the_cases_of_all() -> None:
    runs = {"old": variant("old", [False] * 8 + [True, None]), "new": variant("new", [True] * 8 + [False, True])}
    text = comparison(runs)
    assert text.startswith("9 cases that every variant has a result for")
    assert re.search(r"^old +1 +8 +0 ", text, re.MULTILINE)
    assert re.search(r"^new +8 +1 +0 ", text, re.MULTILINE)
    assert "new does better than old in 8 and worse in 1 of 9 cases: new is better, beyond noise (p = 0.039" in text
    assert re.search(r"^shop/case-8 +1 of 1 +0 of 1$", text, re.MULTILINE)
    assert "old: 1 not evaluated" in text
    assert "comparisons" not in text
    assert "Of 2 comparisons" in comparison({**runs, "third": runs["new"]})


def test_a_baseline_names_what_changed(tmp_path: Path) -> None:
    former = [*variant("", [True, False, True]), outcome("gone", passed=True)]
    path = tmp_path / "trace.jsonl"
    path.write_text("".join(f"{to_line(each, Head())}\n" for each in former), encoding="utf-8")
    text = baseline(path, [*variant("", [False, True, True]), outcome("added", passed=True)])
    assert text.splitlines() == [
        f"against {path}",
        (
            "this run does better than the baseline in 1 and worse in 1 of 3 cases: the difference may be noise "
            "(p = 1, exact McNemar)."
        ),
        "  worse: shop/case-0",
        "  better: shop/case-1",
        "  new: shop/added",
        "  without a result now: shop/gone",
    ]
    assert baseline(path, variant("new", [True, False, True])).splitlines()[1].startswith("new and the baseline do equ")


def test_a_baseline_of_variants_is_taken_by_name(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    former = variant("old", [True]) + variant("new", [False])
    path.write_text("".join(f"{to_line(each, Head())}\n" for each in former), encoding="utf-8")
    text = baseline(path, variant("new", [False]) + variant("third", [True]))
    assert "new and the baseline do equally well in the one case." in text
    assert "third: the baseline holds 'old', 'new' only" in text


def test_junit_keeps_failures_and_errors_apart(tmp_path: Path) -> None:
    hostile = outcome("evil", passed=False, questions=(HOSTILE,), answers=(HOSTILE,), repeat=2)
    write_junit(tmp_path / "junit.xml", [*RUNS, hostile])
    root = ET.parse(tmp_path / "junit.xml").getroot()  # noqa: S314 (our own file)
    assert root.attrib == {
        "name": "gm_chat.evals", "tests": "4", "failures": "2", "errors": "1", "skipped": "0", "time": "6.000"
    }  # fmt: skip
    assert [(suite.get("name"), suite.get("tests")) for suite in root] == [("shop", "3"), ("other", "1")]
    cases = {each.get("name"): each for each in root.iter("testcase")}
    assert set(cases) == {"a", "b", "c", "evil #2"}
    assert [child.tag for child in cases["a"]] == ["system-out"]
    assert cases["b"][0].tag == "failure"
    assert cases["b"][0].get("message") == "expected 'No'; found Yes."
    assert cases["c"][0].tag == "error"
    assert cases["c"][0].get("message") == "error: rate_limited: too many"
    assert "<script>" in (cases["evil #2"][1].text or "")


class Elements(HTMLParser):
    """What a page consists of."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: dict[str, set[str]] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.setdefault(name, set()).add(value or "")


def page(path: Path, runs: Sequence[Outcome], head: Head | None = None) -> str:
    write_html(path, runs, head or Head(provider="ollama", model="m", versions={"gm-chat": "0.1"}))
    return path.read_text(encoding="utf-8")


def everywhere() -> Outcome:
    """A run in which all that others can write is hostile."""
    return Outcome(
        observed=Observed(
            **SEEN,
            dataset=HOSTILE,
            case=HOSTILE,
            variant=HOSTILE,
            tags=(HOSTILE,),
            questions=(HOSTILE,),
            answers=(HOSTILE,),
            calls=(ToolUse(name=HOSTILE, arguments={HOSTILE: HOSTILE}, result={HOSTILE: [HOSTILE]}),),
            confirmations=(HOSTILE,),
        ),
        verdicts=(Verdict(judge=HOSTILE, passed=False, why=HOSTILE),),
    )


def hostile_runs() -> list[Outcome]:
    broken = Outcome(observed=Observed(dataset="d", case="c", error=HOSTILE))
    return [everywhere(), broken, *RUNS]


def test_a_hostile_record_stays_text(tmp_path: Path) -> None:
    head = Head(provider=HOSTILE, model=HOSTILE, fixture=HOSTILE, versions={HOSTILE: HOSTILE})
    text = page(tmp_path / "page.html", hostile_runs(), head)
    found = Elements()
    found.feed(text)
    assert not found.tags & {"script", "img", "iframe", "object", "link", "form", "a"}
    assert not [name for name in found.attributes if name.startswith("on") or name in ("src", "href", "style")]
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", text)
    assert "&lt;script&gt;" in text


def test_the_page_loads_nothing_and_its_policy_holds_for_its_style(tmp_path: Path) -> None:
    import base64
    import hashlib

    text = page(tmp_path / "page.html", RUNS)
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{digest}'" in text
    assert "url(" not in style[1]
    assert "@import" not in style[1]
    assert "http:" not in text
    assert "https:" not in text
    assert "prefers-color-scheme: dark" in style[1]


def test_the_page_tells_of_each_case_and_draws_each_tag(tmp_path: Path) -> None:
    text = page(tmp_path / "page.html", RUNS)
    assert text.count('<details class="case">') == 3
    assert text.index("shop/b") < text.index("other/c") < text.index("shop/a")
    assert "2 of 3 runs judged; 1 passed; 1 failed; 1 could not be judged; rate 50 % (9-91)" in text
    drawn = ET.fromstring(re.search(r"<svg.*?</svg>", text, re.DOTALL)[0])  # type: ignore[index]  # noqa: S314
    assert [title.text for title in drawn.iter("title")] == ["list", "money"]
    widths = [(each.get("class"), each.get("width")) for each in drawn.iter("rect")]
    assert widths == [("pass", "210.0"), ("fail", "210.0"), ("pass", "420.0")]
    assert "cost 0.002" in text
    assert "gm-chat 0.1" in text


def test_the_page_compares_variants_and_cuts_long_results(tmp_path: Path) -> None:
    call = ToolUse(name="query", arguments={}, result="x" * (MAX_RESULT + 100))
    runs = [*variant("old", [True]), outcome("case-0", passed=False, variant="new", calls=(call,))]
    text = page(tmp_path / "page.html", runs)
    assert "new does better than old in 0 and worse in 1 of 1 cases" in text
    assert "... 102 characters more" in text
    assert "ollama" not in text, "the variants may have others"


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_a_browser_runs_nothing_of_a_hostile_record(tmp_path: Path) -> None:
    page(tmp_path / "page.html", hostile_runs())
    assert CHROMIUM is not None
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom"]
    done = subprocess.run(
        [CHROMIUM, *flags, (tmp_path / "page.html").as_uri()], capture_output=True, text=True, check=True, timeout=120
    )
    assert "<title>Evaluation</title>" in done.stdout
    assert "owned" in done.stdout
    assert "<script" not in done.stdout
    assert "<img" not in done.stdout
