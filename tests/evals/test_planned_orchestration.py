"""The packaged dataset of planned turns, each role pinned to a provider that knows its part."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from testproject.role_player import Part, Play, RolePlayer

from gm_chat.evals.command import FAILED, PASSED, main
from gm_chat.evals.dataset import load_dataset
from gm_chat.evals.datasets import packaged
from gm_chat.evals.trace import read
from gm_chat.settings import REQUIRED_ROLES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gm_chat.evals.record import Outcome

FILE = packaged("planned_orchestration")
CASES = {case.name: case for case in load_dataset(FILE).cases}
SCRIPTS: dict[str, Any] = yaml.safe_load((Path(__file__).with_name("scripts") / FILE.name).read_text(encoding="utf-8"))


def calls(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = SCRIPTS[name]["calls"]
    return found


def one(name: str, objective: str, operation: str, *operands: tuple[int, list[Any]]) -> list[Part]:
    """A task of a calculation over the results of all calls."""
    return [Part(objective, calls(name), (operation, operands))]


def each(name: str, *objectives: str) -> list[Part]:
    """A task for each call."""
    return [Part(objective, [call]) for objective, call in zip(objectives, calls(name), strict=True)]


PARTS: dict[str, list[Part]] = {
    "budget-difference": one(
        "budget-difference",
        "Compare the budgets of the projects.",
        "difference",
        (1, ["data", 0, "budget"]),
        (1, ["data", 1, "budget"]),
    ),
    "density-difference": one(
        "density-difference",
        "Compare the densities of the materials.",
        "difference",
        (1, ["data", 1, "density"]),
        (1, ["data", 0, "density"]),
    ),
    "share-of-open-orders": one(
        "share-of-open-orders",
        "Which share of the orders is open?",
        "percentage",
        (2, ["total_count"]),
        (1, ["total_count"]),
    ),
    "sum-of-two-parts": one(
        "sum-of-two-parts",
        "Add up the orders' quantities.",
        "sum",
        (1, ["data", 0, "pieces"]),
        (2, ["data", 0, "pieces"]),
    ),
    "mean-list-price": one("mean-list-price", "The mean price of the parts.", "average", (1, ["data", "*", "price"])),
    "two-lists": each("two-lists", "List the projects.", "List the suppliers."),
    "material-then-price": [
        Part("The material of the part.", calls("material-then-price")[:1]),
        Part("The material's price.", calls("material-then-price")[1:], depends_on=["t1"]),
    ],
    "three-questions": each("three-questions", "The project's lead.", "The densest material.", "The open orders."),
    "half-of-it-is-hidden": [
        Part("The project's budget.", calls("half-of-it-is-hidden")[:1]),
        Part("What suppliers offer.", calls("half-of-it-is-hidden")[1:], gives_up=True),
    ],
    "words-that-sound-like-a-change": each("words-that-sound-like-a-change", "List the parts."),
    "first-due-and-longest-open": each("first-due-and-longest-open", "The first project.", "The oldest open order."),
}


def plays(said: str) -> list[Play]:
    return [Play(case.conversation[0].user, PARTS[name], SCRIPTS[name][said]) for name, case in CASES.items()]


@pytest.fixture
def outcomes(
    request: pytest.FixtureRequest, tmp_path: Path, django_db_setup: None, django_db_blocker: Any
) -> Iterator[tuple[int, dict[str, Outcome]]]:
    """The exit status and the outcomes of a run in which the synthesizer says the right, or the wrong, words."""
    profiles = {
        role: {"provider": "testproject.role_player.RolePlayer", "provider_config": {"role": role}, "trust_group": "a"}
        for role in REQUIRED_ROLES
    }
    settings = {
        "provider_profiles": profiles,
        "planned": {"enabled": True, "roles": {role: role for role in REQUIRED_ROLES}},
    }
    file, trace = tmp_path / "planned.yaml", tmp_path / "trace.jsonl"
    file.write_text(yaml.safe_dump(settings), encoding="utf-8")
    RolePlayer.plays, RolePlayer.roles[:] = plays(request.param), []
    line = ["--fixture", "toy", "--dataset", str(FILE), "--variant", f"planned={file}", "--trace-jsonl", str(trace)]
    with django_db_blocker.unblock():
        status = main(line)
    yield status, {outcome.observed.case: outcome for outcome in read(trace)}
    RolePlayer.plays = ()


@pytest.mark.parametrize("outcomes", ["right"], indirect=True)
def test_every_case_is_planned_and_passes(outcomes: tuple[int, dict[str, Outcome]]) -> None:
    status, found = outcomes
    assert {name: outcome.verdicts for name, outcome in found.items() if outcome.status != "pass"} == {}
    assert set(found) == set(CASES) == set(PARTS)
    assert status == PASSED
    assert all(outcome.verdicts for outcome in found.values())
    assert all(outcome.observed.answer == SCRIPTS[name]["right"] for name, outcome in found.items())
    rounds = {name: outcome.observed.rounds for name, outcome in found.items()}
    assert rounds["budget-difference"] == 4, "a plan, a query, a calculation, an answer"
    assert rounds["two-lists"] == 6
    assert {"planner", "simple_executor", "complex_executor", "synthesizer"} <= set(RolePlayer.roles)


@pytest.mark.parametrize("outcomes", ["wrong"], indirect=True)
def test_no_wrong_answer_passes(outcomes: tuple[int, dict[str, Outcome]]) -> None:
    status, found = outcomes
    assert {name: outcome.observed.answer for name, outcome in found.items() if outcome.status != "fail"} == {}
    assert set(found) == set(CASES)
    assert status == FAILED
