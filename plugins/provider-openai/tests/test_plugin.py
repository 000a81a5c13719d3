"""The entry point: what it offers, and what it costs to import."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points

import pytest
from gm_chat_provider_openai import OpenAIProvider, plugin, provider

from gm_chat.plugin import CONTRACT_VERSION
from gm_chat.providers.openai import OpenAIDependencyImportError


def test_the_entry_point_is_this_module() -> None:
    (entry,) = [item for item in entry_points(group="gm_chat") if item.name == "openai"]
    assert entry.load() is plugin
    assert plugin.GM_CHAT_CONTRACT == CONTRACT_VERSION


def test_the_spec() -> None:
    (spec,) = plugin.gm_chat_providers()
    assert (spec.name, spec.required_extra) == ("openai", "chat-openai")
    assert spec.capabilities == OpenAIProvider.capabilities == {"tool_choice", "response_format"}
    assert isinstance(spec.build({"model": "x"}), OpenAIProvider)
    assert isinstance(spec.build(None), OpenAIProvider)
    assert spec.check is not None
    spec.check({"api_key": "x"})


@pytest.mark.parametrize("module", ["gm_chat_provider_openai", "gm_chat_provider_openai.plugin"])
def test_importing_it_imports_no_sdk(module: str) -> None:
    code = (
        f"import sys, {module}\n"
        "from gm_chat_provider_openai import OpenAIProvider\n"
        "OpenAIProvider.from_config({})\n"
        "print(sorted({'openai', 'httpx', 'httpx2', 'django'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


async def test_without_the_sdk_the_error_says_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    monkeypatch.delitem(sys.modules, "gm_chat_provider_openai.sdk", raising=False)
    monkeypatch.setattr(provider._SDK, "_opened", None)
    with pytest.raises(OpenAIDependencyImportError, match=r"pip install 'gm-chat\[chat-openai\]'"):
        OpenAIProvider.check_configuration({})
    with pytest.raises(OpenAIDependencyImportError):
        await anext(OpenAIProvider.from_config({}).complete([], []))
