from __future__ import annotations

import importlib.metadata as metadata

import pytest
from testproject.pupil import Pupil

from gm_chat.evals.versions import versions_of

CORE = {"gm-chat": metadata.version("gm-chat")}


def test_a_plugins_provider_comes_with_its_sdk() -> None:
    plugin = pytest.importorskip("gm_chat_provider_openai.provider")
    found = versions_of(plugin.OpenAIProvider)
    assert found["gm-chat-provider-openai"] == metadata.version("gm-chat-provider-openai")
    assert found["openai"] == metadata.version("openai")
    assert CORE.items() <= found.items()
    assert list(found) == sorted(found)


def test_a_projects_own_provider_has_no_distribution() -> None:
    assert versions_of(Pupil()) == CORE
