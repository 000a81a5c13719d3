"""GeneralManager's own chat and ours in one project: neither gets in the other's way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
PATHS = (HERE, HERE.parents[2] / "tests")


def run(folder: Path, *arguments: str, settings: str = "both_project.settings") -> subprocess.CompletedProcess[str]:
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("GM_CHAT_", "DJANGO_"))},
        "PYTHONPATH": os.pathsep.join(map(str, PATHS)),
        "DJANGO_SETTINGS_MODULE": settings,
        "BOTH_DATABASE": str(folder / "both.sqlite3"),
    }
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(
        run(tmp_path_factory.mktemp("both"), "both_project.ask").stdout.splitlines()[-1]
    )
    return answer


def test_each_answers_at_its_place(both: dict[str, Any]) -> None:
    assert both["places"] == {"/assistant/": "gm_chat", "/chat/": ""}
    assert both["ours"]["status"] == both["theirs"]["status"] == 200
    assert both["ours"]["body"]["answer"] == "ours"
    (result,) = [event for event in both["ours"]["body"]["events"] if event["type"] == "tool_result"]
    assert result["result"]["data"] == [{"label": "apples", "bay": {"name": "north"}}]
    assert both["their_calls"]
    assert both["conversations"] == {"gm_chat": 1, "general_manager": 1}


def test_a_change_through_the_chat(both: dict[str, Any]) -> None:
    assert both["asked"]["body"]["answer"] == "written"
    assert both["boxes"] == ["apples", "pears"]


def test_nothing_clashes(both: dict[str, Any]) -> None:
    """Models, tables, reverse names, routes and check ids; keys of newer settings are only mentioned."""
    ((check, message),) = both["checks"]
    assert check == "gm_chat.W002"
    assert "'a_key_of_next_year'" in message
    assert both["commands"]["gm_chat_cleanup"] == "gm_chat"


def test_one_behind_the_other_is_found(tmp_path: Path) -> None:
    done = run(tmp_path, "django", "check", settings="both_project.same_place")
    assert "(gm_chat_source_general_manager.W001) GeneralManager's chat is enabled at /chat/" in done.stderr
    assert 'GM_CHAT = {"url": "/assistant/", ...}' in done.stderr
