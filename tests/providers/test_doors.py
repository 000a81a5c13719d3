"""The dotted names of the specification: found lazily, clear when a plugin is missing."""

from __future__ import annotations

import importlib
import subprocess
import sys
import threading

import pytest

import gm_chat.providers
from gm_chat.providers import anthropic, google, ollama, openai
from gm_chat.providers.base import BaseLLMProvider
from gm_chat.providers.door import BrokenSDKError, SDKDoor, plugin_attribute

DOORS = [
    (
        "AnthropicProvider",
        anthropic,
        "gm_chat_provider_anthropic",
        anthropic.AnthropicDependencyImportError,
        "chat-anthropic",
    ),
    ("GeminiProvider", google, "gm_chat_provider_google", google.GoogleDependencyImportError, "chat-google"),
    ("GoogleProvider", google, "gm_chat_provider_google", google.GoogleDependencyImportError, "chat-google"),
    ("OpenAIProvider", openai, "gm_chat_provider_openai", openai.OpenAIDependencyImportError, "chat-openai"),
    ("OllamaProvider", ollama, "gm_chat_provider_ollama", ollama.OllamaDependencyImportError, "chat-ollama"),
]


@pytest.mark.parametrize(("name", "door", "package", "missing", "extra"), DOORS)
def test_a_name_leads_to_the_plugins_class(name, door, package, missing, extra) -> None:
    plugin = pytest.importorskip(package)
    assert getattr(door, name) is getattr(gm_chat.providers, name) is getattr(plugin, name)
    assert issubclass(getattr(door, name), BaseLLMProvider)
    assert name in door.__all__
    assert name in gm_chat.providers.__all__


@pytest.mark.parametrize(("name", "door", "package", "missing", "extra"), DOORS)
def test_without_the_plugin_the_error_holds_the_line_to_type(
    name, door, package, missing, extra, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.import_module

    def without_plugin(module: str, package_: str | None = None) -> object:
        if module == package:
            raise ModuleNotFoundError(f"No module named {module!r}", name=module)
        return real(module, package_)

    monkeypatch.setattr(importlib, "import_module", without_plugin)
    for module in (door, gm_chat.providers):
        with pytest.raises(missing, match=rf"pip install 'gm-chat\[{extra}\]'") as caught:
            getattr(module, name)
        assert isinstance(caught.value, ImportError)


def test_an_import_that_fails_inside_a_plugin_stays_what_it_is(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gm_chat_broken_plugin.py").write_text("import gm_chat_no_such_module\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModuleNotFoundError, match="gm_chat_no_such_module") as caught:
        plugin_attribute("gm_chat_broken_plugin", "X", missing=openai.OpenAIDependencyImportError, extra="x")
    assert type(caught.value) is ModuleNotFoundError


@pytest.mark.parametrize("module", [gm_chat.providers, anthropic, google, openai, ollama])
def test_other_names_are_no_attributes(module) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'NoSuchProvider'"):
        module.NoSuchProvider  # noqa: B018 - the access is what is tested


def test_the_error_classes_need_no_plugin_and_no_sdk() -> None:
    code = (
        "import sys\n"
        "from gm_chat.providers.anthropic import AnthropicDependencyImportError\n"
        "from gm_chat.providers.google import GoogleDependencyImportError\n"
        "from gm_chat.providers.openai import OpenAIDependencyImportError\n"
        "from gm_chat.providers.ollama import OllamaBaseUrlError, OllamaDependencyImportError\n"
        "heavy = {'anthropic', 'google.genai', 'openai', 'ollama', 'httpx', 'httpx2', 'django', 'pluggy'}\n"
        "heavy.add('gm_chat_provider_openai')\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("base_url", "shown"),
    [
        ("ftp://x", "'ftp://x'"),
        (None, "of type NoneType"),
        ("http://user:secret@x", "of type str"),
        ("http://x/?key=secret", "of type str"),
        (["secret"], "of type list"),
    ],
)
def test_the_error_of_an_address(base_url, shown) -> None:
    error = ollama.OllamaBaseUrlError(base_url)
    assert isinstance(error, ValueError)
    assert error.base_url == base_url
    assert shown in str(error)
    assert "secret" not in str(error)


async def test_a_door_to_an_sdk_imports_once_and_beside_the_loop(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gm_chat_slow_sdk.py").write_text("import threading\nwhere = threading.current_thread()\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    door = SDKDoor("gm_chat_slow_sdk", missing=openai.OpenAIDependencyImportError, extra="chat-openai")
    module = await door.aopen()
    assert module.where is not threading.current_thread()
    monkeypatch.delitem(sys.modules, "gm_chat_slow_sdk")
    assert await door.aopen() is door.open() is module


@pytest.fixture
def namespace(tmp_path) -> str:
    """A package that several distributions share, as ``google`` is: this one is installed, others are not."""
    (tmp_path / "gm_chat_namespace" / "another").mkdir(parents=True)
    (tmp_path / "gm_chat_namespace" / "another" / "__init__.py").touch()
    return "gm_chat_namespace"


@pytest.mark.parametrize(
    "missing",
    ["gm_chat_no_such_sdk", "gm_chat_no_such_sdk.types", "{}.no_such_sdk", "{}.no_such_sdk.types"],
)
async def test_a_door_to_an_absent_sdk_says_what_to_type(
    missing, namespace, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gm_chat_absent_sdk.py").write_text(f"import {missing.format(namespace)}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    door = SDKDoor("gm_chat_absent_sdk", missing=openai.OpenAIDependencyImportError, extra="chat-openai")
    with pytest.raises(openai.OpenAIDependencyImportError, match=r"no_such_sdk.*pip install 'gm-chat\[chat-openai\]'"):
        door.open()
    with pytest.raises(openai.OpenAIDependencyImportError):
        await door.aopen()


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("from math import no_such_name", "ImportError: cannot import name 'no_such_name'"),
        ("import json.no_such_module", "ModuleNotFoundError: No module named 'json.no_such_module'"),
        ("import gm_chat_namespace.another.no_such_module", "ModuleNotFoundError: No module named 'gm_chat_namespace"),
        ("def broken(:", "SyntaxError"),
        ("1 / 0", "ZeroDivisionError"),
    ],
)
async def test_a_door_to_a_broken_sdk_says_why(
    code, reason, namespace, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gm_chat_broken_sdk.py").write_text(f"{code}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    door = SDKDoor("gm_chat_broken_sdk", missing=openai.OpenAIDependencyImportError, extra="chat-openai")
    with pytest.raises(BrokenSDKError, match=rf"{reason}.*pip install --upgrade 'gm-chat\[chat-openai\]'"):
        door.open()
    with pytest.raises(BrokenSDKError):
        await door.aopen()
