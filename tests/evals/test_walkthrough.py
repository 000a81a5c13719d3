"""The first section of docs/evals.md, done as it says."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "evals.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("## A first question")[2].partition("\n## ")[0]


def blocks(language: str) -> list[str]:
    return [dedent(block) for block in re.findall(rf"```{language}\n(.*?) *```", SECTION, re.DOTALL)]


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    program, *arguments = shlex.split(command.replace("\\\n", " "))
    assert program == "python"
    env = {name: value for name, value in os.environ.items() if not name.startswith(("DJANGO_", "GM_CHAT"))}
    env["PYTHONPATH"] = str(ROOT)
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=env, capture_output=True, text=True, check=False
    )


def test_a_newcomer_gets_what_the_page_says(tmp_path: Path) -> None:
    first, second = blocks("yaml")
    _install, ask, ask_again = blocks("bash")
    (tmp_path / "questions.yaml").write_text(first, encoding="utf-8")
    done = run(ask, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "1 of 1 evaluated: 1 passed, 0 failed"
    (tmp_path / "questions.yaml").write_text(first + second, encoding="utf-8")
    done = run(ask_again, tmp_path)
    assert done.returncode == 1, done.stderr
    assert "FAIL questions/price-of-a-gear\n  answer_contains: expected '64'; found " in done.stdout
    assert done.stdout.splitlines()[-1] == "  new: questions/price-of-a-gear"
    assert "questions/price-of-a-gear" in (tmp_path / "report.html").read_text(encoding="utf-8")
