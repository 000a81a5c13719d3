"""The command as a process of its own, without a project."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from testproject.exam import PUPIL, case, dataset, statuses

from gm_chat.evals.command import FAILED, INTERRUPTED, PASSED, UNUSABLE

TESTS = Path(__file__).resolve().parents[1]


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


def test_without_the_extra_it_says_what_to_install(tmp_path: Path) -> None:
    program = "import sys; sys.modules['yaml'] = None; from gm_chat.evals.command import main; sys.exit(main())"
    line = [sys.executable, "-c", program, "--settings", "gm_chat.evals.standalone"]
    done = subprocess.run(line, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == UNUSABLE
    assert "pip install 'gm-chat[evals]'" in done.stderr


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
