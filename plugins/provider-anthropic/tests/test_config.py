"""Configuration keys, their defaults, and who reads the settings."""

from __future__ import annotations

from typing import Any

import pytest
from gm_chat_provider_anthropic import AnthropicProvider
from gm_chat_provider_anthropic.config import AnthropicConfig

from gm_chat.providers import base


@pytest.fixture
def chat_config(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The chat's ``provider_config``, as the composition root provides it."""
    config: dict[str, Any] = {"model": "from-the-settings"}
    monkeypatch.setattr(base, "_config_source", lambda: config)
    return config


@pytest.mark.parametrize(
    ("key", "default"),
    [
        ("model", "claude-3-5-haiku-latest"),
        ("api_key", None),
        ("base_url", None),
        ("max_tokens", 1024),
        ("timeout_seconds", 60),
        ("thinking_budget", None),
        ("temperature", None),
        ("tool_call_format", "native"),
    ],
)
def test_the_defaults_of_the_specification(key: str, default: object) -> None:
    assert getattr(AnthropicConfig.read({}), key) == default


@pytest.mark.parametrize("nothing", [None, ""])
def test_an_empty_value_is_the_default(nothing: object) -> None:
    given = dict.fromkeys(("model", "api_key", "base_url", "max_tokens", "timeout_seconds", "thinking_budget"), nothing)
    assert AnthropicConfig.read(given) == AnthropicConfig()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"modle": "x"}, "unknown key 'modle'; did you mean 'model'"),
        ({"max_token": 5}, "did you mean 'max_tokens'"),
        ({"model": 7}, r"\['model'\] is of type int"),
        ({"api_key": 12345}, r"\['api_key'\] is of type int: expected a string$"),
        ({"max_tokens": 0}, "is 0: expected a whole number of tokens, 1 or more"),
        ({"max_tokens": "1024"}, "is of type str: expected a whole number"),
        ({"max_tokens": True}, "is True"),
        ({"timeout_seconds": 0}, "is 0: expected a number of seconds above 0"),
        ({"temperature": 1.5}, "is 1.5: expected a number from 0 to 1"),
        ({"base_url": "ftp://example.org"}, "not an http:// or https:// address"),
        ({"base_url": "http://127.0.0.1:8080/v1"}, "ends with /v1, which is appended to it"),
        ({"base_url": "http://127.0.0.1:8080/v1/"}, "ends with /v1, which is appended to it"),
        ({"thinking_budget": 1000, "max_tokens": 4096}, "is 1000: expected 'adaptive' or a whole number of tokens"),
        ({"thinking_budget": "much"}, "is of type str: expected 'adaptive'"),
        ({"thinking_budget": True}, "is True: expected 'adaptive'"),
        ({"thinking_budget": 2048}, "is 2048, 'max_tokens' is 1024: .* must be larger"),
        ({"thinking_budget": 2048, "max_tokens": 2048}, "must be larger"),
        ({"thinking_budget": "adaptive", "temperature": 0}, "a model that thinks takes none"),
        ({"tool_call_format": "xml"}, "expected 'native' or 'text'"),
    ],
)
def test_an_unusable_configuration_names_the_key(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AnthropicProvider.check_configuration(config)


@pytest.mark.parametrize(
    "config",
    [
        {"base_url": "https://example.org/anthropic", "stream_timeout_seconds": 5},
        {"thinking_budget": 1024, "max_tokens": 4096},
        {"thinking_budget": "adaptive"},
        {"temperature": 0},
    ],
)
def test_a_usable_configuration_passes(config: dict[str, Any]) -> None:
    config = {"model": "claude-haiku-4-5", "api_key": "x", **config}
    assert AnthropicProvider.check_configuration(config) == []


def warnings(**config: Any) -> list[tuple[str, str]]:
    return [(warning.id, warning.hint) for warning in AnthropicProvider.check_configuration(config)]


@pytest.mark.parametrize("model", [{}, {"model": "claude-3-5-haiku-latest"}])
def test_the_retired_default_is_told(model: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    ((id, hint),) = warnings(api_key="x", **model)
    assert (id, '{"model": "claude-haiku-4-5"}' in hint) == ("gm_chat.W013", True)
    assert warnings(base_url="http://127.0.0.1", **model) == []
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1")
    assert warnings(**model) == []


def test_anthropic_itself_wants_a_key() -> None:
    ((id, hint),) = warnings(model="claude-haiku-4-5")
    assert (id, "export ANTHROPIC_API_KEY=" in hint) == ("gm_chat.W012", True)
    assert [id for id, _ in warnings()] == ["gm_chat.W013", "gm_chat.W012"]


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("ANTHROPIC_API_KEY", "x", []),
        ("ANTHROPIC_AUTH_TOKEN", "x", []),
        ("ANTHROPIC_BASE_URL", "http://127.0.0.1", []),
        ("ANTHROPIC_CUSTOM_HEADERS", "X-Api-Key: x", []),
        ("ANTHROPIC_CUSTOM_HEADERS", "X-Other: x", ["gm_chat.W012"]),
        ("ANTHROPIC_PROFILE", "nobody", ["gm_chat.W012"]),
    ],
)
def test_the_environment_may_have_one_or_another_way_in(
    variable: str, value: str, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    assert [id for id, _ in warnings(model="claude-haiku-4-5")] == expected


def test_from_config_never_looks_at_the_settings(chat_config: dict[str, Any]) -> None:
    given = {"timeout_seconds": 5}
    provider = AnthropicProvider.from_config(given)
    given["timeout_seconds"] = 6
    assert dict(provider.provider_config) == {"timeout_seconds": 5}
    assert dict(AnthropicProvider.from_config({}).provider_config) == {}


def test_without_arguments_the_settings_count(chat_config: dict[str, Any]) -> None:
    assert AnthropicProvider().provider_config["model"] == "from-the-settings"
    chat_config["modle"] = "x"
    with pytest.raises(ValueError, match="did you mean 'model'"):
        AnthropicProvider.check_configuration()


def test_the_key_is_not_shown() -> None:
    config = {"api_key": "sk-ant-secret", "base_url": "http://me:sk-ant-secret@127.0.0.1"}
    assert "sk-ant" not in repr(AnthropicConfig.read(config))
    assert "sk-ant" not in repr(AnthropicProvider.from_config(config).provider_config)
    assert AnthropicProvider.from_config(config).provider_config["api_key"] == "sk-ant-secret"
