"""Configuration keys, their defaults, and who reads the settings."""

from __future__ import annotations

from typing import Any

import pytest
from gm_chat_provider_google import GeminiProvider
from gm_chat_provider_google.config import GoogleConfig

from gm_chat.providers import base

ENVIRONMENT = (
    *("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL"),
    *("GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_ENTERPRISE"),
)


@pytest.fixture(autouse=True)
def _nothing_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def chat_config(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The chat's ``provider_config``, as the composition root provides it."""
    config: dict[str, Any] = {"model": "from-the-settings"}
    monkeypatch.setattr(base, "_config_source", lambda: config)
    return config


@pytest.mark.parametrize(
    ("key", "default"),
    [
        ("model", "gemini-2.5-flash"),
        ("api_key", None),
        ("base_url", None),
        ("timeout_seconds", 60),
        ("temperature", None),
        ("max_output_tokens", None),
        ("thinking_budget", None),
        ("tool_call_format", "native"),
    ],
)
@pytest.mark.parametrize("given", [{}, None, ""])
def test_the_defaults_of_the_specification(key: str, default: object, given: Any) -> None:
    assert getattr(GoogleConfig.read({} if given == {} else {key: given}), key) == default


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"modle": "x"}, "unknown key 'modle'; did you mean 'model'"),
        ({"max_tokens": 7}, "unknown key 'max_tokens'; did you mean 'max_output_tokens'"),
        ({"model": 7}, r"\['model'\] is of type int"),
        ({"model": "gemini?key=x"}, r"\['model'\] is no name of a model"),
        ({"model": "../tunedModels/x"}, r"\['model'\] is no name of a model"),
        ({"model": "gemini 2.5"}, r"\['model'\] is no name of a model"),
        ({"api_key": 12345}, r"\['api_key'\] is of type int: expected a string$"),
        ({"timeout_seconds": 0}, "is 0: expected a number of seconds above 0"),
        ({"base_url": "ftp://example.org"}, "not an http:// or https:// address"),
        ({"temperature": 2.5}, r"\['temperature'\] is 2.5: expected a number from 0 to 2"),
        ({"max_output_tokens": 0}, r"\['max_output_tokens'\] is 0: expected a whole number of tokens, 1 or more"),
        ({"thinking_budget": -2}, r"\['thinking_budget'\] is -2: expected a whole number of tokens, -1 or more"),
        ({"thinking_budget": 0.5}, r"\['thinking_budget'\] is 0.5"),
        ({"tool_call_format": "xml"}, r"\['tool_call_format'\] is of type str: expected 'native' or 'text'"),
    ],
)
def test_an_unusable_configuration_names_the_key(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GeminiProvider.check_configuration(config)


@pytest.mark.parametrize(
    "config",
    [
        {"api_key": "x"},
        {"base_url": "https://example.org/gemini", "stream_timeout_seconds": 5},
        {"api_key": "x", "thinking_budget": 0, "temperature": 0},
        {"api_key": "x", "model": "publishers/google/models/gemini-2.5-flash@001"},
    ],
)
def test_a_usable_configuration_passes(config: dict[str, Any]) -> None:
    assert GeminiProvider.check_configuration(config) == []


@pytest.mark.parametrize("switch", ["", "false", "0"])
def test_google_itself_wants_a_key(switch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", switch)
    (warning,) = GeminiProvider.check_configuration({})
    assert (warning.id, "export GEMINI_API_KEY=" in warning.hint) == ("gm_chat.W012", True)


@pytest.mark.parametrize("variable", ENVIRONMENT)
def test_the_environment_may_have_one_or_another_way_in(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "true")
    assert GeminiProvider.check_configuration({}) == []


def test_from_config_never_looks_at_the_settings(chat_config: dict[str, Any]) -> None:
    given = {"timeout_seconds": 5}
    provider = GeminiProvider.from_config(given)
    given["timeout_seconds"] = 6
    assert dict(provider.provider_config) == {"timeout_seconds": 5}
    assert dict(GeminiProvider.from_config({}).provider_config) == {}


def test_without_arguments_the_settings_count(chat_config: dict[str, Any]) -> None:
    assert GeminiProvider().provider_config["model"] == "from-the-settings"
    chat_config["modle"] = "x"
    with pytest.raises(ValueError, match="did you mean 'model'"):
        GeminiProvider.check_configuration()


def test_the_key_is_not_shown() -> None:
    config = {"api_key": "very-secret", "base_url": "http://me:very-secret@127.0.0.1"}
    assert "very-secret" not in repr(GoogleConfig.read(config))
    assert "very-secret" not in repr(GeminiProvider.from_config(config).provider_config)
    assert GeminiProvider.from_config(config).provider_config["api_key"] == "very-secret"
