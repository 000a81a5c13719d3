"""The command over the toy fixture, with a model whose messages say how it does."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from django.contrib.auth import get_user_model
from testproject.pupil import Pupil
from testproject.shop.models import Material

from gm_chat.evals.command import FAILED, INTERRUPTED, ONLY_ERRORS, PASSED, UNUSABLE, USAGE, main
from gm_chat.evals.trace import read, read_entries
from gm_chat.signals import chat_tool_called

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TESTS = Path(__file__).resolve().parents[1]
PUPIL = "testproject.pupil.Pupil"
CLASSMATE = "testproject.pupil.Classmate"
RIGHT = "They are Steel, Aluminum, Cobalt."


def case(mood: str, *, name: str | None = None, **others: Any) -> dict[str, Any]:
    """A case that expects the materials, in a mood that decides whether it gets them."""
    hard = others.pop("hard", {"answer_contains": ["Steel", "Cobalt"]})
    return {
        "name": name or mood,
        "conversation": [{"user": f"{mood}: which materials are there?"}],
        "expectations": {"contract": {"category": "list", "hard": hard}},
        **others,
    }


def dataset(path: Path, *cases: dict[str, Any]) -> str:
    path.write_text(yaml.safe_dump(list(cases)), encoding="utf-8")
    return str(path)


@pytest.fixture
def evals(django_db_setup: None, django_db_blocker: Any) -> Iterator[Callable[..., int]]:
    """The command in this process, over the toy."""

    def run(*line: str, fixture: str | None = "toy", provider: str | None = PUPIL) -> int:
        chosen = [*(["--fixture", fixture] if fixture else []), *(["--provider", provider] if provider else [])]
        return main([*chosen, *line])

    Pupil.asked.clear()
    with django_db_blocker.unblock():
        yield run


def statuses(path: Path) -> dict[str, str]:
    return {outcome.observed.case: outcome.status for outcome in read(path)}


def without_times(path: Path) -> str:
    return re.sub(r'"seconds":[\d.]+', "", path.read_text(encoding="utf-8"))


# --- what cases come to -------------------------------------------------------------------------------------------


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


# --- which cases --------------------------------------------------------------------------------------------------


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


# --- under which settings -----------------------------------------------------------------------------------------


def answers(*line: str, evals: Callable[..., int], tmp_path: Path, **chosen: Any) -> dict[str, str]:
    """What is answered, by variant."""
    trace = tmp_path / "answers.jsonl"
    file = dataset(tmp_path / "asked.yaml", case("right"))
    evals("--dataset", file, "--trace-jsonl", str(trace), *line, **chosen)
    return {outcome.observed.variant: outcome.observed.answer for outcome in read(trace)}


def test_the_command_line_comes_before_what_is_configured(
    evals: Callable[..., int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.GM_CHAT = {"provider": CLASSMATE, "provider_config": {"answer": "the configured one", "model": "c"}}
    trace = tmp_path / "answers.jsonl"

    def head() -> tuple[str, str]:
        ((head, _),) = read_entries(trace)
        return head.provider, head.model

    assert answers(evals=evals, tmp_path=tmp_path, provider=None) == {"": "the configured one"}
    assert head() == (CLASSMATE, "c")
    assert answers(evals=evals, tmp_path=tmp_path) == {"": RIGHT}, "another provider has a configuration of its own"
    assert head() == (PUPIL, "pupil-1")
    assert answers(evals=evals, tmp_path=tmp_path, provider=CLASSMATE) == {"": "the configured one"}, "the same one"
    assert answers("--model", "d", evals=evals, tmp_path=tmp_path, provider=None) == {"": "the configured one"}
    assert head() == (CLASSMATE, "d")
    monkeypatch.setenv("GM_CHAT_PROVIDER", "testproject.pupil.Nonsuch")
    monkeypatch.setenv("GM_CHAT_PROVIDER_CONFIG__ANSWER", "of the environment")
    assert answers(evals=evals, tmp_path=tmp_path) == {"": RIGHT}, "also before the environment"
    assert os.environ["GM_CHAT_PROVIDER"] == "testproject.pupil.Nonsuch", "which is put back"
    monkeypatch.setenv("GM_CHAT_PROVIDER", PUPIL)
    assert answers(evals=evals, tmp_path=tmp_path, provider=None) == {"": "of the environment"}


def test_providers_are_compared_on_the_same_cases(
    evals: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["--compare", f"{PUPIL}, {CLASSMATE}"]
    found = answers(*line, evals=evals, tmp_path=tmp_path, provider="testproject.pupil.Nonsuch")
    assert found == {PUPIL: RIGHT, CLASSMATE: RIGHT}, "it comes before --provider"
    heads = [head for head, _ in read_entries(tmp_path / "answers.jsonl")]
    assert [head.model for head in heads] == ["pupil-1", "classmate-1"]
    printed = capsys.readouterr().out
    assert PUPIL in printed
    assert "2 of 2 evaluated" in printed


def test_variants_are_laid_over_the_settings(evals: Callable[..., int], tmp_path: Path) -> None:
    terse, planned = tmp_path / "terse.yaml", tmp_path / "planned.yaml"
    terse.write_text("provider_config: {answer: Steel and Cobalt}")
    planned.write_text("planned: {enabled: true}")
    found = answers("--variant", f"terse={terse}", "--variant", f"planned={planned}", evals=evals, tmp_path=tmp_path)
    assert found["terse"] == "Steel and Cobalt"
    assert found["planned"] != RIGHT, "the pupil cannot plan"
    hashes = {head.settings_sha256 for head, _ in read_entries(tmp_path / "answers.jsonl")}
    assert len(hashes) == 2
    both = answers("--variant", f"t={terse}", "--compare", f"{PUPIL},{CLASSMATE}", evals=evals, tmp_path=tmp_path)
    assert list(both) == [f"t {PUPIL}", f"t {CLASSMATE}"]


@pytest.mark.parametrize(
    ("text", "status", "told"),
    [
        ("- a list", UNUSABLE, "v.yaml must be a mapping of chat settings, not list"),
        ("a: [", UNUSABLE, "v.yaml is no YAML"),
        ("max_result: 3", UNUSABLE, 'GM_CHAT["max_result"] is not a chat setting'),
        (f"provider: {CLASSMATE}", USAGE, "--variant v names a provider itself: leave --provider and --compare out"),
    ],
)
def test_a_variant_that_cannot_be_used_is_named(
    evals: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, status: int, told: str
) -> None:
    file = tmp_path / "v.yaml"
    file.write_text(text)
    assert evals("--dataset", "basic_queries", "--variant", f"v={file}") == status
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("provider", "told"),
    [("testproject.pupil.Nonsuch", "has no 'Nonsuch'"), ("nonsuch", "No plugin offers the provider 'nonsuch'")],
)
def test_a_provider_that_cannot_be_had_ends_the_run(
    evals: Callable[..., int], capsys: pytest.CaptureFixture[str], provider: str, told: str
) -> None:
    assert evals("--dataset", "basic_queries", provider=provider) == UNUSABLE
    assert told in capsys.readouterr().err


def test_without_a_fixture_the_project_is_asked_and_nothing_is_changed(
    evals: Callable[..., int], tmp_path: Path, settings: Any
) -> None:
    settings.GM_CHAT = {"provider": PUPIL, "allowed_mutations": ["createMaterial"]}
    trace = tmp_path / "t.jsonl"
    file = dataset(tmp_path / "d.yaml", case("create"))
    evals("--dataset", file, "--trace-jsonl", str(trace), fixture=None, provider=None)
    (outcome,) = read(trace)
    assert outcome.observed.calls[0].result["error"]["code"] == "mutation_not_allowed"


def test_a_project_is_asked_as_its_user_and_changed_only_if_that_is_allowed(
    transactional_db: None, evals: Callable[..., int], tmp_path: Path, settings: Any
) -> None:
    settings.GM_CHAT = {"provider": PUPIL, "allowed_mutations": ["createMaterial"]}
    get_user_model().objects.create_superuser("ann", password="x")
    Material.objects.create(name="Copper", density=8.9)
    trace = tmp_path / "t.jsonl"
    line = ["--dataset", dataset(tmp_path / "d.yaml", case("right"), case("zinc")), "--trace-jsonl", str(trace)]

    def results(*more: str) -> list[Any]:
        evals(*line, *more, fixture=None, provider=None)
        return [outcome.observed.calls[0].result for outcome in read(trace)]

    nobody_reads, nobody_writes = results()
    assert nobody_reads["error"]
    assert nobody_writes["error"]
    reads, writes = results("--user", "ann")
    assert reads["data"] == [{"name": "Copper"}]
    assert writes["error"]["code"] == "mutation_not_allowed"
    assert results("--user", "ann", "--allow-writes")[1]["status"] == "executed"
    assert Material.objects.filter(name="Zinc").exists()
    assert evals(*line, "--user", "bob", fixture=None) == USAGE


def test_a_case_is_a_turn_like_any_other(evals: Callable[..., int], tmp_path: Path, settings: Any) -> None:
    """Signals, permission and all: what transports have, evaluations have. Rate limits are for visitors."""
    settings.GM_CHAT = {"rate_limit": {"requests": 1}, "tool_strategy": "direct", "disabled_tools": ["find_path"]}
    heard: list[tuple[str, str]] = []

    def hear(user: Any, tool_name: str, **_: Any) -> None:
        heard.append((user.username, tool_name))

    cases = case("right"), case("right", name="again"), case("right", name="guest", user="guest")
    chat_tool_called.connect(hear)
    try:
        assert evals("--dataset", dataset(tmp_path / "d.yaml", *cases)) == PASSED
    finally:
        chat_tool_called.disconnect(hear)
    assert heard == [("analyst", "query"), ("analyst", "query"), ("guest", "query")]


@pytest.mark.parametrize(
    ("rows", "status", "error"),
    [
        ({"sql": "SELECT name FROM gm_chat_evals_toy_material"}, "pass", ""),
        ({"query": {"manager": "MaterialManager", "fields": ["name"]}}, "pass", ""),
        ({"sql": "SELECT name FROM gm_chat_evals_toy_part"}, "fail", ""),
        ({"sql": "SELECT nothing FROM nowhere"}, "error", "no reference: "),
        ({"query": {"manager": "NoManager", "fields": ["name"]}}, "error", "no reference: "),
    ],
)
def test_rows_are_compared_with_a_reference_of_the_same_data(
    evals: Callable[..., int], tmp_path: Path, rows: dict[str, Any], status: str, error: str
) -> None:
    trace = tmp_path / "t.jsonl"
    file = dataset(tmp_path / "d.yaml", case("right", hard={"result_set": rows}))
    evals("--dataset", file, "--trace-jsonl", str(trace))
    (outcome,) = read(trace)
    assert outcome.status == status
    assert outcome.observed.error.startswith(error)
    assert bool(outcome.observed.error) is bool(error)


# --- traces -------------------------------------------------------------------------------------------------------


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


# --- as a process -------------------------------------------------------------------------------------------------


def started(*line: str, cwd: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "gm_chat.evals", "--settings", "gm_chat.evals.standalone", "--fixture", "toy", *line],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "no.such.settings", "PYTHONPATH": str(TESTS)},
    )


def test_the_command_runs_as_a_process_without_a_project(tmp_path: Path) -> None:
    """``--settings`` comes before ``DJANGO_SETTINGS_MODULE``."""
    dataset(tmp_path / "own.yaml", *map(case, ("right", "wrong", "limited", "crash", "loop")))
    process = started("--provider", PUPIL, "--dataset", "own.yaml", "--trace-jsonl", "t.jsonl", cwd=tmp_path)
    out, err = process.communicate()
    assert process.returncode == FAILED, err
    assert "3 of 5 evaluated: 1 passed, 2 failed; 2 could not be judged" in out
    assert "\x1b" not in err, "no bar where there is no terminal"
    assert list(statuses(tmp_path / "t.jsonl").values()) == ["pass", "fail", "error", "error", "fail"]
    head = json.loads((tmp_path / "t.jsonl").read_text().splitlines()[0])["head"]
    assert (head["seed"], head["fixture"], head["provider"], head["model"]) == (0, "toy", PUPIL, "pupil-1")
    assert len(head["dataset_sha256"]) == 64
    assert head["versions"]["gm-chat"]


PLUGIN = """
from gm_chat.plugin import hookimpl

@hookimpl
def gm_chat_eval_datasets(options):
    return [__file__.replace("acme.py", "claims.yaml")]
"""


def test_a_plugins_dataset_is_found_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "acme.py").write_text(PLUGIN)
    info = tmp_path / "acme-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[gm_chat]\nacme = acme\n")
    dataset(tmp_path / "claims.yaml", case("right"))
    process = started("--provider", PUPIL, "--dataset", "claims", cwd=tmp_path)
    out, err = process.communicate()
    assert process.returncode == PASSED, err
    assert "1 of 1 evaluated" in out


@pytest.mark.parametrize(
    ("module", "told"),
    [("no.such.settings", "No module named 'no'"), ("json", "json has no 'gm_chat' in INSTALLED_APPS")],
)
def test_settings_that_cannot_be_used_end_the_run(tmp_path: Path, module: str, told: str) -> None:
    process = started("--settings", module, cwd=tmp_path)
    out, err = process.communicate()
    assert (process.returncode, out) == (UNUSABLE, "")
    assert told in err


def test_ctrl_c_keeps_and_reports_what_is_done(tmp_path: Path) -> None:
    dataset(tmp_path / "own.yaml", case("right"), case("never"), case("right", name="later"))
    process = started("--provider", PUPIL, "--dataset", "own.yaml", "--trace-jsonl", "t.jsonl", cwd=tmp_path)
    trace = tmp_path / "t.jsonl"
    while process.poll() is None and not (trace.exists() and trace.read_text().endswith("\n")):
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == INTERRUPTED, err
    assert "1 of 3 evaluated" in out
    assert "Traceback" not in err
    assert statuses(trace) == {"right": "pass"}
