"""Configuration keys, their defaults, and who reads the settings."""

from __future__ import annotations

from typing import Any

import pytest
from gm_chat_provider_openai import OpenAIProvider
from gm_chat_provider_openai.config import OpenAIConfig

from gm_chat.providers import base


@pytest.fixture(autouse=True)
def _nothing_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def chat_config(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The chat's ``provider_config``, as the composition root provides it."""
    config: dict[str, Any] = {"model": "from-the-settings"}
    monkeypatch.setattr(base, "_config_source", lambda: config)
    return config


@pytest.mark.parametrize(
    ("key", "default"),
    [("model", "gpt-4.1-mini"), ("api_key", None), ("base_url", None), ("timeout_seconds", 60)],
)
def test_the_defaults_of_the_specification(key: str, default: object) -> None:
    assert getattr(OpenAIConfig.read({}), key) == default


@pytest.mark.parametrize("nothing", [None, ""])
def test_an_empty_value_is_the_default(nothing: object) -> None:
    given = dict.fromkeys(("model", "api_key", "base_url", "timeout_seconds"), nothing)
    assert OpenAIConfig.read(given) == OpenAIConfig()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"modle": "x"}, "unknown key 'modle'; did you mean 'model'"),
        ({"zzz": 1}, "unknown key 'zzz'; known keys: api_key, base_url, max_retries, model, stream_timeout_seconds, "),
        ({"model": 7}, r"\['model'\] is of type int"),
        ({"api_key": 12345}, r"\['api_key'\] is of type int: expected a string$"),
        ({"timeout_seconds": 0}, "is 0: expected a number of seconds above 0"),
        ({"timeout_seconds": True}, "is True"),
        ({"timeout_seconds": "60"}, "is of type str"),
        ({"timeout_seconds": float("nan")}, "is nan"),
        ({"base_url": "ftp://example.org"}, "not an http:// or https:// address"),
        ({"base_url": "localhost:8000/v1"}, "not an http:// or https:// address"),
        ({"base_url": "http://[::1"}, "not an http:// or https:// address"),
        ({"base_url": "http://:80/v1"}, "not an http:// or https:// address"),
    ],
)
def test_an_unusable_configuration_names_the_key(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        OpenAIProvider.check_configuration(config)


def test_a_usable_configuration_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert OpenAIProvider.check_configuration({"api_key": "x"}) == []
    config = {"base_url": "https://example.org/v1", "stream_timeout_seconds": 5}
    assert OpenAIProvider.check_configuration(config) == []
    for variable in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.setenv(variable, "http://127.0.0.1")
        assert OpenAIProvider.check_configuration({}) == []
        monkeypatch.delenv(variable)


def test_openai_itself_wants_a_key() -> None:
    (warning,) = OpenAIProvider.check_configuration({})
    assert (warning.id, "export OPENAI_API_KEY=" in warning.hint) == ("gm_chat.W012", True)


def test_from_config_never_looks_at_the_settings(chat_config: dict[str, Any]) -> None:
    given = {"timeout_seconds": 5}
    provider = OpenAIProvider.from_config(given)
    given["timeout_seconds"] = 6
    assert dict(provider.provider_config) == {"timeout_seconds": 5}
    assert dict(OpenAIProvider.from_config({}).provider_config) == {}


def test_without_arguments_the_settings_count(chat_config: dict[str, Any]) -> None:
    assert OpenAIProvider().provider_config["model"] == "from-the-settings"
    chat_config["modle"] = "x"
    with pytest.raises(ValueError, match="did you mean 'model'"):
        OpenAIProvider.check_configuration()


def test_the_key_is_not_shown() -> None:
    config = {"api_key": "sk-very-secret", "base_url": "http://me:sk-very-secret@127.0.0.1/v1"}
    assert "sk-very" not in repr(OpenAIConfig.read(config))
    assert "sk-very" not in repr(OpenAIProvider.from_config(config).provider_config)
    assert OpenAIProvider.from_config(config).provider_config["api_key"] == "sk-very-secret"


@pytest.mark.parametrize("temperature", [True, "0", -0.1, 2.5, float("nan")])
def test_a_temperature_out_of_range_is_refused(temperature: Any) -> None:
    with pytest.raises(ValueError, match="'temperature'"):
        OpenAIConfig.read({"temperature": temperature})


def test_a_temperature_is_optional() -> None:
    assert OpenAIConfig.read({}).temperature is None
    assert OpenAIConfig.read({"temperature": 0}).temperature == 0
