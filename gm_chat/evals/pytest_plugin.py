"""``@pytest.mark.chat_eval``: the cases of a dataset as tests of a project, so that its CI judges its own questions.

pytest loads this module wherever gm-chat is installed, so it imports nothing; :mod:`gm_chat.evals.case_tests` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

if TYPE_CHECKING:
    from gm_chat.evals.case_tests import ChatCase

__all__ = ["chat_case"]

_MARK = "chat_eval"


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers",
        "chat_eval(dataset, tier=, tags=, cases=, fixture=, user=, provider=, model=, database=, allow_writes=): run "
        "the test once for each case of a gm-chat dataset, a name or a path; it takes the argument chat_case",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test of each case. A dataset with a mistake, or a selection without a case, fails the collection."""
    marks = list(metafunc.definition.iter_markers(_MARK))
    if not marks:
        return
    if "chat_case" not in metafunc.fixturenames:
        pytest.fail(f"{metafunc.function.__name__} is marked chat_eval, so it must take chat_case", pytrace=False)
    from gm_chat.evals.case_tests import MarkError, cases_of  # lazy: see the module's docstring

    try:
        cases = [case for mark in marks for case in cases_of(mark.args, mark.kwargs, metafunc.definition.path.parent)]
    except MarkError as error:
        pytest.fail(f"chat_eval: {error}", pytrace=False)
    metafunc.parametrize("chat_case", cases, indirect=True, ids=[case.id for case in cases])


@pytest.fixture
def chat_case(request: pytest.FixtureRequest) -> ChatCase:
    """The case of a test that is marked ``chat_eval``; ``chat_case.outcome`` tells how it was run."""
    if not hasattr(request, "param"):
        pytest.fail("chat_case belongs to tests that are marked chat_eval", pytrace=False)
    case: ChatCase = request.param
    if case.options.fixture is not None and request.config.pluginmanager.hasplugin("django"):
        # A fixture has a database of its own; the project's is made all the same, so that no other is ever reached.
        request.getfixturevalue("django_db_setup")
        case.database = request.getfixturevalue("django_db_blocker").unblock
    return case


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Refuse the mark where pytest makes no tests of it, as in a ``unittest.TestCase``: nothing would be run."""
    if item.get_closest_marker(_MARK) is not None and "chat_case" not in getattr(item, "fixturenames", ()):
        pytest.fail("chat_eval is for functions, and for methods of plain classes", pytrace=False)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> None:
    """Run the case before the test's own lines, and fail with the verdicts or the error, if any."""
    if pyfuncitem.get_closest_marker(_MARK) is None:
        return
    case = cast("ChatCase", pyfuncitem.funcargs["chat_case"])
    if lines := case.run():
        pytest.fail("\n".join(lines), pytrace=False)
