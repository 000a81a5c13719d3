"""Under which settings the command runs its cases."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth import get_user_model
from testproject.exam import CLASSMATE, PUPIL, RIGHT, case, dataset
from testproject.shop.models import Material

from gm_chat.evals.command import PASSED, UNUSABLE, USAGE
from gm_chat.evals.trace import read, read_entries
from gm_chat.signals import chat_tool_called

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


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
