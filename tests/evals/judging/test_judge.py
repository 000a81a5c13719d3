from __future__ import annotations

from typing import Any

import pytest

from gm_chat.evals.dataset import Case
from gm_chat.evals.judging import ReferenceRowsError, judge, reference_rows
from gm_chat.evals.judging.calls import contains
from gm_chat.evals.judging.texts import abbreviated, occurs
from gm_chat.evals.record import Observed, Outcome, ToolUse, Verdict

ROWS = {"data": [{"name": "Steel", "density": "7.80"}, {"name": "Cobalt", "density": "8.90"}], "total_count": 2}
LOOKED = ToolUse(name="query", arguments={"manager": "MaterialManager", "fields": ["name", "density"]}, result=ROWS)


def case(strategy: dict[str, Any] | None = None, **hard: Any) -> Case:
    contract = {"category": "c", "hard": {"grounded": False, **hard}, "strategy": strategy or {}}
    return Case.model_validate(
        {"name": "n", "conversation": [{"user": "Which?"}], "expectations": {"contract": contract}}
    )


def run(answer: str = "Steel.", *calls: ToolUse, **more: Any) -> Observed:
    return Observed(dataset="d", case="n", questions=("Which?",), answers=(answer,), calls=calls or (LOOKED,), **more)


def only(verdicts: tuple[Verdict, ...]) -> tuple[str, bool, str]:
    (verdict,) = verdicts
    assert "\n" not in verdict.why
    return verdict.judge, verdict.passed, verdict.why


def used(name: str, result: Any = None, **arguments: Any) -> ToolUse:
    return ToolUse(name=name, arguments=arguments, result=result)


@pytest.mark.parametrize(
    ("hard", "observed", "passed", "why"),
    [
        (
            {"required_tool_calls": [{"name": "query", "args_contain": {"fields": ["density"]}}]},
            run(),
            True,
            'called query {"manager":"MaterialManager","fields":["name","density"]}',
        ),
        (
            {"required_tool_calls": [{"name": "query", "args_contain": {"manager": "PartManager"}}]},
            run(),
            False,
            'expected query with {"manager":"PartManager"}; called query {"manager":"MaterialManager",',
        ),
        (
            {"required_tool_calls": [{"name": "query", "args_contain": {"manager": "PartManager"}}]},
            run("x", used("query_PartManager", fields=["name"])),
            True,
            'called query {"manager":"PartManager","fields":["name"]}',
        ),
        ({"required_tool_calls": [{"name": "mutate"}]}, run(), False, "expected mutate; called query"),
        ({"forbidden_tools": ["mutate"]}, run(), True, "mutate: not called"),
        ({"forbidden_tools": ["mutate", "query"]}, run(), False, "called query"),
        (
            {"tool_order": ["search_managers", "query"]},
            run("x", used("search_managers"), used("query"), used("search_managers")),
            True,
            "expected search_managers before query; called first: search_managers, query",
        ),
        (
            {"tool_order": ["search_managers", "query"]},
            run(),
            False,
            "expected search_managers before query; called first: query",
        ),
        ({"results_contain": ["7.8", "steel"]}, run(), True, "has 7.8, steel"),
        ({"results_exclude": ["Cobalt"]}, run(), False, "expected to be without 'Cobalt'; found "),
        ({"answer_contains": ["Steel", ["Tin", "Zinc"]]}, run(), False, "expected 'Tin' or 'Zinc'; found Steel."),
        ({"answer_contains": ["Steel", ["Tin", "steel"]]}, run(), True, "has Steel, Tin"),
        ({"answer_excludes": ["Tin"]}, run(), True, "is without 'Tin'"),
        ({"confirmation": "required"}, run(), False, "expected required; the user was not asked"),
        (
            {"confirmation": "none"},
            run(confirmations=("deletePart",)),
            False,
            "expected none; the user was asked about deletePart",
        ),
        ({"confirmation": "required"}, run(confirmations=("deletePart",)), True, "expected required; the user was "),
        ({"grounded": True}, run("It is 7.8, of 2."), True, "each figure and quotation comes from the data or the q"),
        ({"grounded": True}, run("It is 7.9."), False, "no result and no question says 7.9; answered It is 7.9."),
        (
            {"grounded": True},
            run("It is 55.", used("query", {"error": {"code": "x"}}, filters={"price": 55})),
            False,
            "no result and no question says 55; answered It is 55.",
        ),
    ],
)
def test_each_demand_has_a_verdict_that_explains_itself(
    hard: dict[str, Any], observed: Observed, passed: bool, why: str
) -> None:
    judged, held, said = only(judge(case(**hard), observed, None))
    assert (judged, held) == (next(iter(hard)), passed)
    assert said.startswith(why)


REFERENCE = [(8.9, "Cobalt"), (7.8, "Steel")]


@pytest.mark.parametrize(
    ("observed", "ordered", "passed"),
    [
        (run(), False, True),
        (run(), True, False),
        (run("x", used("query", {"data": ROWS["data"][::-1]})), True, True),
        (run("x", used("query", {"data": ROWS["data"][:1]})), False, False),
        (
            run(
                "x",
                used("query", {"data": ROWS["data"][:1]}, manager="M", limit=1),
                used("query", {"data": ROWS["data"][1:]}, manager="M", limit=1, offset=1),
            ),
            False,
            True,
        ),
        (
            run(
                "x",
                used("query", {"data": ROWS["data"][:1]}, manager="M"),
                used("query", {"data": ROWS["data"][1:]}, manager="N"),
            ),
            False,
            False,
        ),
        (run("x", used("search_managers", [])), False, False),
    ],
)
def test_a_result_set_is_looked_for_in_each_result_and_in_pages(
    observed: Observed, ordered: bool, passed: bool
) -> None:
    asked = case(result_set={"sql": "SELECT ...", "ordered": ordered})
    assert only(judge(asked, observed, REFERENCE))[:2] == ("result_set", passed)


def test_a_result_set_says_what_was_expected_and_found() -> None:
    wanted = only(judge(case(result_set={"sql": "SELECT 3"}), run(), [(3,)]))
    found = 'query: 2 rows [["Steel","7.80"],["Cobalt","8.90"]]'
    assert wanted == ("result_set", False, f"expected 1 row [[3]]; found {found}")
    with pytest.raises(ValueError, match="cannot be judged without its reference rows"):
        judge(case(result_set={"sql": "SELECT 3"}), run(), None)


def test_a_strategy_is_reported_and_decides_nothing() -> None:
    asked = case({"max_rounds": 2, "max_tool_calls": 0, "preferred_tools": ["aggregate"]})
    verdicts = judge(asked, run(rounds=3), None)
    assert [(each.judge, each.passed, each.why) for each in verdicts] == [
        ("max_rounds", False, "expected 2 at most; 3 were made"),
        ("max_tool_calls", False, "expected 0 at most; 1 were made"),
        ("preferred_tools", False, "not called: aggregate"),
    ]
    assert Outcome(observed=run(), verdicts=verdicts).status == "pass"


def test_an_empty_answer_is_none() -> None:
    assert only(judge(case(), run(" \n"), None)) == ("answer", False, "expected an answer; it is empty")


@pytest.mark.parametrize(
    ("given", "wanted", "is_contained"),
    [
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": "1.0"}}, True),
        ({"a": 1}, {"b": 1}, False),
        ({"a": [1, 2, 3]}, {"a": [3, 1]}, True),
        ({"a": [1, 2]}, {"a": [2, 2]}, False),
        ([{"a": 1, "b": 1}, {"a": 1}], [{"a": 1}, {"b": 1}], True),
        ({"a": True}, {"a": 1}, False),
        ({"a": [1]}, {"a": 1}, False),
        ({"a": 1}, {"a": [1]}, False),
        ({"a": None}, {"a": None}, True),
    ],
)
def test_arguments_occur_as_far_down_as_they_go(given: Any, wanted: Any, is_contained: bool) -> None:
    assert contains(given, wanted) is is_contained


@pytest.mark.parametrize(
    ("text", "where", "does"),
    [
        ("3", "3.00 of them", True),
        ("3", "13, 3.5 or PO-3", False),
        ("1200", "it is 1,200.", True),
        ("12.50", "\N{EURO SIGN}12.5", True),
        ("250.000", "das sind 250.000 Euro", True),
        ("250.000", "250 Euro", False),
        ("250.000", "1.250.000 Euro", False),
        ("steel", "Steelworks", False),
        ("steel", "(STEEL)", True),
        ("15%", "15% off", True),
        ("15%", "115% off", False),
        ("$5", "US$5", True),
        ("-5", "it is -5.", True),
        ("-5", "it is -57", False),
    ],
)
def test_numbers_occur_as_numbers_and_words_as_words(text: str, where: str, does: bool) -> None:
    assert occurs(text, where) is does


def test_what_json_escapes_is_found_in_results() -> None:
    shown = run("x", used("query", {"data": [{"remark": 'say "hello"\nnow'}]}))
    assert only(judge(case(results_contain=['"hello"', "say"]), shown, None))[1]


def test_long_texts_are_cut_in_their_middle() -> None:
    assert abbreviated("a" * 200 + "\n" + "b" * 200, 30) == "a" * 17 + "..." + "b" * 10


def test_reference_rows_come_from_the_query_as_the_user_sees_it() -> None:
    asked = []

    def ask(arguments: Any) -> Any:
        asked.append(arguments)
        return ROWS

    assert reference_rows(case(), alias="none", run_query=ask) is None
    wanted = case(result_set={"query": {"manager": "M"}})
    assert reference_rows(wanted, alias="none", run_query=ask) == [("Steel", "7.80"), ("Cobalt", "8.90")]
    assert asked == [{"manager": "M"}]


@pytest.mark.parametrize(
    ("result", "message"),
    [({"error": {"code": "x"}}, "gave no rows"), ([], "gave no rows"), ({**ROWS, "has_more": True}, "give it a limit")],
)
def test_a_reference_without_all_rows_is_none(result: Any, message: str) -> None:
    with pytest.raises(ReferenceRowsError, match=message):
        reference_rows(case(result_set={"query": {"manager": "M"}}), alias="none", run_query=lambda _: result)


@pytest.mark.django_db
def test_reference_sql_is_run_on_the_database() -> None:
    wanted = case(result_set={"sql": "SELECT 1, 'a' UNION SELECT 2, 'b' ORDER BY 1"})
    assert reference_rows(wanted, alias="default", run_query=lambda _: None) == [(1, "a"), (2, "b")]
