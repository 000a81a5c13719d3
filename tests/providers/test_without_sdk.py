"""A vendor's SDK that is missing or broken is told in one line, and concerns no other provider."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from testproject.without_sdk import SDKS

pytestmark = pytest.mark.parametrize("provider", SDKS)


@pytest.fixture(autouse=True)
def _plugins() -> None:
    for name in SDKS:
        pytest.importorskip(f"gm_chat_provider_{name}", reason="the provider plugins are not installed")


def told(how: str, provider: str) -> Any:
    unset = ("GM_CHAT_", "OPENAI_", "ANTHROPIC_", "GEMINI_", "GOOGLE_", "OLLAMA_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(unset)}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    command = [sys.executable, "-m", "testproject.without_sdk", how, provider]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_one_that_is_missing_is_e003_and_the_others_work(provider: str) -> None:
    answered = told("hide", provider)
    ((id, message),) = answered["found"]
    assert id == "gm_chat.E003"
    assert f'python -m pip install "gm-chat[chat-{provider}]"' in message
    assert answered["others"] == {other: [[], "Hi"] for other in SDKS if other != provider}


def test_one_that_is_broken_is_e004_with_the_reason(provider: str) -> None:
    ((id, message),) = told("break", provider)["found"]
    assert id == "gm_chat.E004"
    assert "RuntimeError: it was built for another libc" in message
    assert f"pip install --upgrade 'gm-chat[chat-{provider}]'" in message
