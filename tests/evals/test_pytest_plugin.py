"""A project's own tests, run by pytest in a process of their own, with and without pytest-django."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

pytest_plugins = ["pytester"]

TESTS = Path(__file__).resolve().parents[1]
QUESTIONS = """
- name: right-materials
  tags: [list]
  conversation: [{user: right what materials are there}]
  expectations:
    contract:
      category: list
      hard:
        required_tool_calls: [{name: query, args_contain: {manager: MaterialManager}}]
        answer_contains: [Steel]
- name: wrong-materials
  tags: [list, hard]
  tier: 2
  conversation: [{user: wrong materials}]
  expectations: {contract: {category: list, hard: {answer_contains: [Steel], forbidden_tools: [mutate]}}}
- name: limited
  tags: [broken]
  tier: 3
  conversation: [{user: limited}]
  expectations: {contract: {category: list}}
"""
MARK = 'fixture="toy", provider="testproject.pupil.Pupil"'

TEST_CASE = """
import unittest
class TestQuestions(unittest.TestCase):
    @pytest.mark.chat_eval("questions.yaml")
    def test_nothing_is_run(self): pass
"""


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Callable[..., pytest.RunResult]:
    """Write a test with this mark and body, and run it."""
    monkeypatch.setenv("PYTHONPATH", f"{TESTS.parent}{os.pathsep}{TESTS}")

    def run(mark: str, body: str = "pass", *, argument: str = "chat_case", before: str = "") -> pytest.RunResult:
        pytester.makefile(".yaml", questions=QUESTIONS)
        pytester.makepyfile(
            f"import pytest\n{before}\n@pytest.mark.chat_eval({mark})\ndef test_it({argument}):\n    {body}\n"
        )
        return pytester.runpytest_subprocess("--ds=testproject.settings", "--strict-markers", "-p", "no:cacheprovider")

    return run


def test_each_case_is_a_test_that_says_why_it_failed(run: Callable[..., pytest.RunResult]) -> None:
    result = run(f'"questions.yaml", {MARK}', before=TEST_CASE)
    result.assert_outcomes(passed=1, failed=2, errors=1)
    result.stdout.fnmatch_lines_random(
        [
            "questions-wrong-materials: fail",
            "answer_contains: expected 'Steel'; found Gold and silver.",
            "answered: Gold and silver.",
            "questions-limited: error",
            "error: *ProviderQuotaError: too many requests",
            "*FAILED*::test_it[[]questions-wrong-materials[]]*",
            "chat_eval is for functions, and for methods of plain classes",
        ]
    )


def test_marks_select_and_the_test_goes_on_with_the_outcome(run: Callable[..., pytest.RunResult]) -> None:
    body = "assert [call.name for call in chat_case.outcome.observed.calls] == ['mutate'], chat_case.case.name"
    packaged = f'@pytest.mark.chat_eval("basic_queries", cases=["density-of-steel"], {MARK})'
    result = run(f'"questions.yaml", tier=1, tags="list", {MARK}', body, before=packaged)
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines_random(["*AssertionError: right-materials", "basic_queries-density-of-steel: *"])


def test_the_project_s_data_is_what_the_test_s_transaction_made(run: Callable[..., pytest.RunResult]) -> None:
    result = run(
        '"questions.yaml", tier=1, user="analyst", provider="testproject.pupil.Pupil"',
        "assert 'Unobtainium' in chat_case.outcome.observed.answer",
        argument="analyst, chat_case",
        before="""
from testproject.shop.models import Material
@pytest.fixture
def analyst(db, django_user_model):
    Material.objects.create(name="Unobtainium", density=1)
    Material.objects.create(name="Steel", density=7)
    django_user_model.objects.create_superuser("analyst")
""",
    )
    result.assert_outcomes(passed=1)


MISTAKES = [
    ('"../questions.yaml", tier=9', "chat_case", "*chat_eval: no case matches: *none has tier 9*"),
    ('"none.yaml"', "chat_case", "*chat_eval: *none.yaml: cannot be read*"),
    ('"basics"', "chat_case", "*chat_eval: *there is no dataset 'basics'; known: *"),
    ('"questions.yaml", tear=1', "chat_case", "*chat_eval: has no option 'tear'; known: allow_writes, *"),
    ('"questions.yaml", tags=3', "chat_case", "*chat_eval: tags must be a text or a list of texts, not 3*"),
    ('"questions.yaml", fixture="tin"', "chat_case", "*chat_eval: there is no fixture 'tin'; known: toy, large*"),
    ("", "chat_case", "*chat_eval: takes one dataset, a name or a path, not nothing*"),
    ('"questions.yaml"', "tmp_path", "*test_it is marked chat_eval, so it must take chat_case*"),
]


def test_marks_with_a_mistake_are_named(pytester: pytest.Pytester, run: Callable[..., pytest.RunResult]) -> None:
    for number, (mark, argument, _) in enumerate(MISTAKES):
        folder = pytester.mkdir(f"part{number}")
        (folder / f"test_{number}.py").write_text(
            f"import pytest\n@pytest.mark.chat_eval({mark})\ndef test_it({argument}): pass\n"
        )
    result = run(f'"questions.yaml", tier=1, {MARK}')
    result.assert_outcomes(errors=len(MISTAKES))
    result.stdout.fnmatch_lines_random([message for *_, message in MISTAKES])


def test_pytest_gets_nothing_heavy_from_it() -> None:
    code = "import sys, gm_chat.evals.pytest_plugin; print({'django', 'yaml', 'pydantic'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(TESTS.parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "set()\n"
