"""Configuration keys, their defaults, and the address."""

from __future__ import annotations

from typing import Any

import pytest
from gm_chat_provider_ollama import OllamaProvider
from gm_chat_provider_ollama.config import OllamaConfig

from gm_chat.providers import base
from gm_chat.providers.ollama import OllamaBaseUrlError


@pytest.mark.parametrize(
    ("key", "default"),
    [
        ("model", "gemma4:e4b"),
        ("base_url", "http://127.0.0.1:11434"),
        ("timeout_seconds", 60),
        ("num_ctx", 16_384),
    ],
)
def test_the_defaults_of_the_specification(key: str, default: object) -> None:
    assert getattr(OllamaConfig.read({}), key) == default


@pytest.mark.parametrize("nothing", [None, ""])
def test_an_empty_value_is_the_default(nothing: object) -> None:
    given = dict.fromkeys(("model", "base_url", "timeout_seconds", "num_ctx"), nothing)
    assert OllamaConfig.read(given) == OllamaConfig()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"modle": "x"}, "unknown key 'modle'; did you mean 'model'"),
        ({"zzz": "x"}, "unknown key 'zzz'; known keys: api_key, base_url, max_retries, model, num_ctx, "),
        ({"model": 7}, r"\['model'\] is of type int"),
        ({"timeout_seconds": -1}, "is -1: expected a number of seconds above 0"),
        ({"timeout_seconds": True}, "is True"),
        ({"timeout_seconds": "60"}, "is of type str: expected a number"),  # which may be the key, in the wrong place
        ({"num_ctx": "8192"}, "is of type str: expected a whole number"),
        ({"num_ctx": -1}, "is -1: expected a whole number of tokens, 0 or more"),
        ({"num_ctx": True}, "is True"),
        ({"num_ctx": 4096.0}, "is 4096.0"),
    ],
)
def test_an_unusable_configuration_names_the_key(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        OllamaProvider.check_configuration(config)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://127.0.0.1:11434",
        "127.0.0.1:11434",
        "localhost:11434",
        "http://",
        "http://:11434",
        "http://[::1",
        "http://127.0.0.1:port",
        "http://127.0.0.1:99999",
        "http://127.0.0.1:0",
        "http://127.0.0.1:11434?x=1",
        "http://127.0.0.1:11434#x",
        "http://127.0.0.1 :11434",
        "http://user:secret@127.0.0.1:11434",
        11434,
        b"http://127.0.0.1:11434",
    ],
)
def test_an_address_that_cannot_be_ollamas(url: Any) -> None:
    with pytest.raises(OllamaBaseUrlError) as caught:
        OllamaProvider.check_configuration({"base_url": url})
    assert caught.value.base_url == url
    assert "secret" not in str(caught.value)
    assert "http://127.0.0.1:11434" in str(caught.value)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:11434", "https://ollama.example.org", "http://[::1]:11434/", "https://example.org/ollama"]
)
def test_an_address_that_can(url: str) -> None:
    OllamaProvider.check_configuration({"base_url": url})


def test_who_reads_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "_config_source", lambda: {"model": "from-the-settings", "base_url": "nowhere"})
    assert dict(OllamaProvider.from_config({}).provider_config) == {}
    assert OllamaProvider().provider_config["model"] == "from-the-settings"
    OllamaProvider.check_configuration({})
    with pytest.raises(OllamaBaseUrlError):
        OllamaProvider.check_configuration()
