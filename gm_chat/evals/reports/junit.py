"""A report in the JUnit format, which CI systems read: a suite for each dataset, a test case for each run."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter
from typing import TYPE_CHECKING

from gm_chat.evals.judging.calls import shown_call
from gm_chat.evals.reports.cleaning import markup_text
from gm_chat.evals.reports.terminal import failure_lines

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gm_chat.evals.record import Outcome

__all__ = ["write_junit"]


def write_junit(path: Path, outcomes: Sequence[Outcome]) -> None:
    """Write the report: what failed as ``<failure>``, what could not be judged as ``<error>``. Raises ``OSError``."""
    suites: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        seen = outcome.observed
        suites.setdefault(f"{seen.dataset} [{seen.variant}]" if seen.variant else seen.dataset, []).append(outcome)
    root = ET.Element("testsuites", {"name": "gm_chat.evals", **_counts(outcomes)})
    for name, runs in suites.items():
        suite = ET.SubElement(root, "testsuite", {"name": markup_text(name), **_counts(runs)})
        for run in runs:
            _add(suite, name, run)
    ET.indent(root)
    ET.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _counts(outcomes: Sequence[Outcome]) -> dict[str, str]:
    statuses = Counter(outcome.status for outcome in outcomes)
    return {
        "tests": str(len(outcomes)),
        "failures": str(statuses["fail"]),
        "errors": str(statuses["error"]),
        "skipped": "0",
        "time": f"{sum(outcome.observed.seconds for outcome in outcomes):.3f}",
    }


def _add(suite: ET.Element, classname: str, outcome: Outcome) -> None:
    seen = outcome.observed
    name = seen.case + (f" #{seen.repeat}" if seen.repeat > 1 else "")
    attributes = {"classname": markup_text(classname), "name": markup_text(name), "time": f"{seen.seconds:.3f}"}
    case = ET.SubElement(suite, "testcase", attributes)
    lines = [markup_text(line) for line in failure_lines(outcome)]
    if outcome.status == "error":
        ET.SubElement(case, "error", {"message": lines[0], "type": "error"}).text = "\n".join(lines)
    elif outcome.status == "fail":
        hard = next(markup_text(each.why) for each in outcome.verdicts if each.is_hard and not each.passed)
        ET.SubElement(case, "failure", {"message": hard, "type": "verdict"}).text = "\n".join(lines)
    said = [f"asked: {text}" for text in seen.questions]
    said += [f"called: {shown_call(call)}" for call in seen.calls]
    said += [f"answered: {text}" for text in seen.answers]
    if said:
        ET.SubElement(case, "system-out").text = markup_text("\n".join(said))
