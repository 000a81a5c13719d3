"""Each packaged case passes a right run and fails a wrong one, and its calls give what it expects."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from testproject.workbench import workbench

from gm_chat.encoding import jsonable
from gm_chat.evals.dataset import Hard, load_dataset, parse_dataset
from gm_chat.evals.datasets import LEGACY, PACKAGED, find, fixture_of, is_held_out, packaged
from gm_chat.evals.judging import judge, reference_rows
from gm_chat.evals.record import Observed, ToolUse

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from testproject.workbench import Workbench

    from gm_chat.evals.dataset import Case

SCRIPTS = Path(__file__).with_name("scripts")
LEAST = {
    "basic_queries": 20,
    "demo_readiness": 15,
    "edge_cases": 15,
    "follow_ups": 20,
    "large_schema": 10,
    "multi_hop": 20,
    "planned_orchestration": 10,
}
SILENCE = "I cannot tell."


@cache
def cases(dataset: str) -> dict[str, Case]:
    return {case.name: case for case in load_dataset(packaged(dataset)).cases}


@cache
def scripts(dataset: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((SCRIPTS / f"{dataset}.yaml").read_text(encoding="utf-8"))
    return loaded


ALL = [(dataset, name) for dataset in PACKAGED for name in cases(dataset)]


@pytest.fixture(scope="module")
def bench(request: pytest.FixtureRequest, django_db_setup: None, django_db_blocker: Any) -> Iterator[Workbench]:
    with workbench(request.param, django_db_blocker) as installed:
        yield installed


def play(bench: Workbench, case: Case, calls: Sequence[dict[str, Any]], answer: str) -> Observed:
    """Make the calls as the case's user, who approves what has to be approved, and give the answer."""
    made, asked = [], []
    for call in calls:
        ((tool, args),) = call.items()
        result = bench.ask(tool, args, user=case.user)
        if isinstance(result, dict) and result.get("status") == "confirmation_required":
            asked.append(args["mutation"])
            result = bench.ask(tool, args, user=case.user, approved=True)
        made.append(ToolUse(name=tool, arguments=args, result=jsonable(result)))
    if "writes" in case.tags:
        bench.fixture.reset()
    return seen(case, answer, calls=tuple(made), confirmations=tuple(asked))


def seen(case: Case, answer: str, **more: Any) -> Observed:
    questions = tuple(message.user for message in case.conversation)
    return Observed(dataset="d", case=case.name, questions=questions, answers=(answer,), **more)


def reference(bench: Workbench, case: Case) -> Sequence[tuple[Any, ...]] | None:
    def run(args: Mapping[str, Any]) -> Any:
        return bench.ask("aggregate" if "measures" in args else "query", dict(args), user=case.user)

    return reference_rows(case, alias=bench.fixture.database_alias, run_query=run)


def faults(case: Case, run: Observed, rows: Sequence[tuple[Any, ...]] | None) -> list[str]:
    return [f"{each.judge}: {each.why}" for each in judge(case, run, rows) if each.is_hard and not each.passed]


@pytest.mark.parametrize(
    ("bench", "dataset", "name"), [(fixture_of(dataset), dataset, name) for dataset, name in ALL], indirect=["bench"]
)
def test_a_right_run_passes_and_wrong_ones_fail(bench: Workbench, dataset: str, name: str) -> None:
    case, script = cases(dataset)[name], scripts(dataset)[name]
    rows = reference(bench, case)
    right = play(bench, case, script.get("calls", ()), script["right"])
    assert faults(case, right, rows) == []
    if case.user != "guest" and not script.get("silence_passes"):
        assert not any(
            "error" in result for result in (call.result for call in right.calls) if isinstance(result, dict)
        )
    wrong = play(bench, case, script.get("wrong_calls", script.get("calls", ())), script["wrong"])
    assert faults(case, wrong, rows) != []
    silent = seen(case, SILENCE)
    assert (faults(case, silent, rows) == []) is bool(script.get("silence_passes")), "what guesses nothing"
    guessed = seen(case, script["right"])
    if case.hard.results_contain or case.hard.required_tool_calls or rows is not None:
        assert faults(case, guessed, rows) != [], "the right answer without having looked"


@pytest.mark.parametrize("dataset", PACKAGED)
def test_there_are_enough_cases_of_several_kinds(dataset: str) -> None:
    found = cases(dataset)
    assert len(found) >= LEAST[dataset]
    assert set(scripts(dataset)) == set(found), "each case has a script, and each script a case"
    assert all(case.description and case.tags for case in found.values())
    assert len({message.user for case in found.values() for message in case.conversation[-1:]}) == len(found)
    if dataset == "follow_ups":
        assert all(len(case.conversation) > 1 for case in found.values())


def test_case_names_are_unique_over_all_datasets() -> None:
    names = [name for _, name in ALL]
    assert len(set(names)) == len(names)


def test_what_changes_data_says_so() -> None:
    for dataset, name in ALL:
        case = cases(dataset)[name]
        mutates = any(call.name == "mutate" for call in case.hard.required_tool_calls)
        assert ("writes" in case.tags) is mutates, name


def test_some_cases_ask_as_somebody_who_sees_less() -> None:
    guests = [cases(dataset)[name] for dataset, name in ALL if cases(dataset)[name].user == "guest"]
    assert len(guests) >= 8
    assert all("permission" in case.tags for case in guests)
    assert {cases(dataset)[name].user for dataset, name in ALL} == {None, "guest"}


@pytest.mark.parametrize("dataset", PACKAGED)
def test_about_half_of_each_dataset_is_held_out(dataset: str) -> None:
    held_out = sum(map(is_held_out, cases(dataset)))
    assert 0.4 <= held_out / len(cases(dataset)) <= 0.6


def test_names_that_are_not_packaged_are_named() -> None:
    assert set(LEGACY) == set(PACKAGED) - {"planned_orchestration"}
    with pytest.raises(ValueError, match="'basics'; known: basic_queries"):
        packaged("basics")
    with pytest.raises(ValueError, match="'basics'"):
        fixture_of("basics")


def test_a_dataset_is_found_by_name_or_path(tmp_path: Path) -> None:
    offered = [str(tmp_path / "claims.yaml"), str(tmp_path / "rates.yml")]
    assert find("multi_hop", offered) == packaged("multi_hop")
    assert find("rates", offered) == tmp_path / "rates.yml"
    assert find("own/questions.yaml", offered) == Path("own/questions.yaml")
    assert find("multi_hop.yml") == Path("multi_hop.yml")


def test_a_name_that_nothing_or_two_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no dataset 'rate'; known: basic_queries, .*, rates; or give the path"):
        find("rate", [str(tmp_path / "rates.yml")])
    for offered in (["a/multi_hop.yaml"], ["a/own.yaml", "b/own.yml"]):
        with pytest.raises(ValueError, match=r"two datasets are called .* and .*; give the path of one"):
            find(Path(offered[0]).stem, offered)


PAGE = (Path(__file__).resolve().parents[2] / "docs" / "evals.md").read_text(encoding="utf-8")


def test_the_pages_example_is_a_dataset_and_its_table_names_every_key() -> None:
    blocks = [dedent(block) for block in re.findall(r"```yaml\n(.*?) *```", PAGE, re.DOTALL)]
    for block in blocks:
        parse_dataset(block.encode(), name="page", source="docs/evals.md")
    (example,) = (block for block in blocks if "unique in the file" in block)
    (case,) = parse_dataset(example.encode(), name="page", source="docs/evals.md").cases
    assert case.hard.answer_contains == ("PO-1003", ("three", "3"))
    rows = re.findall(r"^\| (`[a-z_`, ]+`) \|", PAGE, re.MULTILINE)
    keys = {key for row in rows for key in re.findall(r"`([a-z_]+)`", row)}
    assert keys - set(PACKAGED) == set(Hard.model_fields)


@pytest.mark.parametrize("dataset", PACKAGED)
def test_the_page_counts_the_cases(dataset: str) -> None:
    assert re.search(rf"^\| `{dataset}` \| {len(cases(dataset))} \|.*\| {fixture_of(dataset)} \|$", PAGE, re.MULTILINE)
