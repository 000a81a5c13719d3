"""The command over the toy fixture, with a model whose messages say how it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from testproject.exam import PUPIL, RIGHT, case, dataset, statuses
from testproject.pupil import Pupil

from gm_chat.evals.command import FAILED, ONLY_ERRORS, PASSED, UNUSABLE, USAGE
from gm_chat.evals.trace import read

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_right_wrong_and_broken_runs_are_told_apart(
    evals: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moods = [case(mood) for mood in ("right", "wrong", "limited", "crash", "loop")]
    trace = tmp_path / "trace.jsonl"
    assert evals("--dataset", dataset(tmp_path / "d.yaml", *moods), "--trace-jsonl", str(trace), "-v") == FAILED
    assert statuses(trace) == {"right": "pass", "wrong": "fail", "limited": "error", "crash": "error", "loop": "fail"}
    told = {outcome.observed.case: outcome for outcome in read(trace)}
    right = told["right"].observed
    assert (right.answer, right.rounds, right.input_tokens, right.output_tokens) == (RIGHT, 2, 200, 20)
    assert [(call.name, call.arguments["manager"]) for call in right.calls] == [("query", "MaterialManager")]
    assert right.calls[0].result["total_count"] == 3
    assert told["limited"].observed.error == "chat_error: ProviderQuotaError: too many requests"
    assert told["limited"].observed.input_tokens is None
    assert told["crash"].observed.error == "chat_error: RuntimeError: the pupil fell from the chair"
    assert told["loop"].verdicts[0].judge == "turn"
    assert "no answer, " in told["loop"].verdicts[0].why
    printed = capsys.readouterr().out
    assert "3 of 5 evaluated: 1 passed, 2 failed; 2 could not be judged" in printed
    assert "the pupil fell from the chair" in printed


@pytest.mark.parametrize(
    ("moods", "status"),
    [(["right"], PASSED), (["right", "wrong", "crash"], FAILED), (["right", "crash"], ONLY_ERRORS)],
)
def test_the_exit_status_tells_what_came_out(
    evals: Callable[..., int], tmp_path: Path, moods: list[str], status: int
) -> None:
    assert evals("--dataset", dataset(tmp_path / "d.yaml", *map(case, moods))) == status


def test_a_conversation_goes_on_and_ends_with_an_error(evals: Callable[..., int], tmp_path: Path) -> None:
    several = case("right", name="several")
    several["conversation"] += [{"user": "right: and again?"}]
    broken = case("right", name="broken")
    broken["conversation"] += [{"user": "crash: and again?"}, {"user": "right: are you there?"}]
    trace = tmp_path / "t.jsonl"
    evals("--dataset", dataset(tmp_path / "d.yaml", several, broken), "--trace-jsonl", str(trace))
    first, second = read(trace)
    assert (first.status, first.observed.answers) == ("pass", (RIGHT, RIGHT))
    assert second.status == "error"
    assert second.observed.questions == tuple(message["user"] for message in broken["conversation"][:2])


def test_a_mutation_is_approved_unless_none_is_expected_and_the_data_is_put_back(
    evals: Callable[..., int], tmp_path: Path
) -> None:
    approved = case("delete", name="approved", hard={"confirmation": "required", "answer_contains": ["executed"]})
    rejected = case("delete", name="rejected", hard={"confirmation": "none", "answer_contains": ["cancelled"]})
    unasked = case("create", hard={"answer_contains": ["executed"]})
    as_guest = case("create", name="guest", user="guest", hard={"grounded": False})
    trace = tmp_path / "t.jsonl"
    file = dataset(tmp_path / "d.yaml", approved, rejected, unasked, as_guest, case("right"))
    evals("--dataset", file, "--trace-jsonl", str(trace), "--concurrency", "3")
    told = {outcome.observed.case: outcome.observed for outcome in read(trace)}
    assert told["approved"].confirmations == told["rejected"].confirmations == ("deleteOrder",)
    assert told["approved"].calls[0].result["status"] == "executed"
    assert told["rejected"].calls[0].result == {"status": "cancelled", "reason": "user_rejected"}
    assert told["create"].calls[0].result["status"] == "executed"
    assert told["guest"].calls[0].result["error"]["code"] == "mutation_not_allowed"
    assert told["right"].answer == RIGHT, "no zinc is left"
    assert statuses(trace)["rejected"] == "fail", "it was put before the user"


def test_cases_that_read_are_run_side_by_side(evals: Callable[..., int], tmp_path: Path) -> None:
    """Each of the two waits for the other one."""
    file = dataset(tmp_path / "d.yaml", *(case("meet", name=name) for name in ("one", "other")))
    assert evals("--dataset", file, "--concurrency", "2") == PASSED


def test_what_it_costs_is_told_by_the_settings_prices(evals: Callable[..., int], tmp_path: Path) -> None:
    priced = tmp_path / "priced.yaml"
    priced.write_text(f"prices: {{{PUPIL}: {{input: '1.5', output: '10'}}}}")
    trace = tmp_path / "t.jsonl"
    file = dataset(tmp_path / "d.yaml", case("right"))
    assert evals("--dataset", file, "--variant", f"priced={priced}", "--trace-jsonl", str(trace)) == PASSED
    (outcome,) = read(trace)
    assert str(outcome.observed.cost) == "0.0005"


def test_filters_choose_among_the_cases(evals: Callable[..., int], tmp_path: Path) -> None:
    many = [
        case("right", name=f"case-{number}", tier=1 + number % 2, tags=["even"] * (number % 2 == 0) + ["all"])
        for number in range(20)
    ]
    file, trace = dataset(tmp_path / "d.yaml", *many), tmp_path / "t.jsonl"

    def chosen(*line: str) -> list[str]:
        assert evals("--dataset", file, "--trace-jsonl", str(trace), *line) == PASSED
        return [outcome.observed.case for outcome in read(trace)]

    names = [item["name"] for item in many]
    assert chosen() == names
    assert chosen("--tag", "even", "--tag", "all") == names[::2] == chosen("--tier", "1")
    assert chosen("--case", "case-3", "--case", "case-1") == ["case-1", "case-3"]
    halves = chosen("--held-out"), chosen("--tuning")
    assert sorted(halves[0] + halves[1]) == sorted(names)
    assert all(halves)
    sampled = chosen("--sample", "5", "--seed", "1")
    assert sampled == chosen("--sample", "5", "--seed", "1") == sorted(sampled, key=names.index)
    assert len(sampled) == 5
    assert chosen("--sample", "5", "--seed", "2") != sampled
    assert chosen("--sample", "50") == names


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (
            ["--tier", "9", "--tag", "filter"],
            "no case matches: of 22 in basic_queries, none has tier 9 and tag 'filter'",
        ),
        (["--case", "nonsuch"], "--case: no selected dataset has 'nonsuch'"),
        (["--dataset", "multi-hop"], "there is no dataset 'multi-hop'; known: basic_queries"),
        (["--user", "stranger"], "the fixture 'toy' has no user 'stranger'; known: analyst, guest"),
    ],
)
def test_a_selection_that_cannot_be_run_is_named(
    evals: Callable[..., int], capsys: pytest.CaptureFixture[str], line: list[str], told: str
) -> None:
    assert evals("--dataset", "basic_queries", *line) == USAGE
    assert told in capsys.readouterr().err
    assert Pupil.asked == []


def test_a_dataset_with_a_mistake_names_file_case_and_key(
    evals: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = dataset(tmp_path / "own.yaml", case("right"), case("wrong", hard={"answer_contain": ["x"]}))
    assert evals("--dataset", file) == UNUSABLE
    told = capsys.readouterr().err
    assert f"{file}: case 2 ('wrong'): expectations.contract.hard.answer_contain: Extra inputs" in told
    assert evals("--dataset", str(tmp_path / "none.yaml")) == UNUSABLE
    assert "none.yaml: cannot be read: No such file" in capsys.readouterr().err


def test_a_dataset_about_another_fixture_is_run_with_a_note(
    evals: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    evals("--dataset", "large_schema", "--sample", "1")
    assert "note: large_schema: asks about another fixture than the fixture 'toy'" in capsys.readouterr().err


def test_a_slow_model_s_time_ends_its_case_alone(evals: Callable[..., int], tmp_path: Path) -> None:
    trace, hurried = tmp_path / "trace.jsonl", tmp_path / "hurried.yaml"
    hurried.write_text("turn_timeout_seconds: 1\n", encoding="utf-8")
    cases = dataset(tmp_path / "d.yaml", case("never"), case("right"))
    line = ["--dataset", cases, "--variant", f"hurried={hurried}", "--trace-jsonl", str(trace)]
    assert evals(*line) == ONLY_ERRORS
    assert statuses(trace) == {"never": "error", "right": "pass"}
    assert "TurnTimeoutError" in read(trace)[0].observed.error
