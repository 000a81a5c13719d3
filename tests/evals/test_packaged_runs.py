"""Each packaged case through the product's own loop, by a model that does what the case's script says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from testproject.script_reader import ScriptReader

from gm_chat.evals.command import FAILED, PASSED, main
from gm_chat.evals.dataset import load_dataset
from gm_chat.evals.datasets import LEGACY, fixture_of, packaged
from gm_chat.evals.trace import read

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SCRIPTS = Path(__file__).with_name("scripts")


def scripts(dataset: str, said: str) -> Mapping[str, tuple[Sequence[Mapping[str, Any]], str]]:
    """The calls and the answer to each case's last question."""
    raw = yaml.safe_load((SCRIPTS / f"{dataset}.yaml").read_text(encoding="utf-8"))
    known = {}
    for case in load_dataset(packaged(dataset)).cases:
        script = raw[case.name]
        calls = script.get("calls", ())
        if said == "wrong":
            calls = script.get("wrong_calls", calls)
        known[case.conversation[-1].user] = (calls, script[said])
    return known


@pytest.mark.parametrize(("said", "status", "outcome"), [("right", PASSED, "pass"), ("wrong", FAILED, "fail")])
@pytest.mark.parametrize("dataset", LEGACY)
def test_scripted_runs_come_to_what_they_should(
    dataset: str,
    said: str,
    status: int,
    outcome: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    django_db_setup: None,
    django_db_blocker: Any,
) -> None:
    monkeypatch.setattr(ScriptReader, "known", scripts(dataset, said))
    trace = tmp_path / "t.jsonl"
    line = ["--fixture", fixture_of(dataset), "--dataset", dataset, "--concurrency", "3", "--trace-jsonl", str(trace)]
    with django_db_blocker.unblock():
        ended = main([*line, "--provider", "testproject.script_reader.ScriptReader"])
    found = read(trace)
    others = {item.observed.case: (item.observed.error, item.verdicts) for item in found if item.status != outcome}
    assert others == {}
    assert len(found) == len(ScriptReader.known)
    assert ended == status
