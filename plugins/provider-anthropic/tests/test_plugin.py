"""The entry point: what it offers, and what it costs to import."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points

import pytest
from gm_chat_provider_anthropic import AnthropicProvider, plugin, provider

from gm_chat.plugin import CONTRACT_VERSION
from gm_chat.providers.anthropic import AnthropicDependencyImportError


def test_the_entry_point_is_this_module() -> None:
    (entry,) = [item for item in entry_points(group="gm_chat") if item.name == "anthropic"]
    assert entry.load() is plugin
    assert plugin.GM_CHAT_CONTRACT == CONTRACT_VERSION


def test_the_spec() -> None:
    (spec,) = plugin.gm_chat_providers()
    assert (spec.name, spec.required_extra) == ("anthropic", "chat-anthropic")
    assert spec.capabilities == AnthropicProvider.capabilities == {"tool_choice", "response_format"}
    assert isinstance(spec.build({"model": "x"}), AnthropicProvider)
    assert isinstance(spec.build(None), AnthropicProvider)
    assert spec.check is not None
    spec.check({})


@pytest.mark.parametrize("module", ["gm_chat_provider_anthropic", "gm_chat_provider_anthropic.plugin"])
def test_importing_it_imports_no_sdk(module: str) -> None:
    code = (
        f"import sys, {module}\n"
        "from gm_chat_provider_anthropic import AnthropicProvider\n"
        "AnthropicProvider.from_config({}).complete([], [])\n"
        "print(sorted({'anthropic', 'httpx', 'httpx2', 'django'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


async def test_without_the_sdk_the_error_says_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anthropic", None)
    monkeypatch.delitem(sys.modules, "gm_chat_provider_anthropic.sdk", raising=False)
    monkeypatch.setattr(provider._SDK, "_opened", None)
    with pytest.raises(AnthropicDependencyImportError, match=r"pip install 'gm-chat\[chat-anthropic\]'"):
        AnthropicProvider.check_configuration({})
    with pytest.raises(AnthropicDependencyImportError):
        await anext(AnthropicProvider.from_config({}).complete([], []))
