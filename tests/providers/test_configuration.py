from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from gm_chat.providers.configuration import (
    ProviderConfig,
    check_choice,
    check_count,
    check_number,
    check_seconds,
    check_text,
    is_http_url,
    known_values,
)

KNOWN = ("model", "timeout_seconds")


def test_what_is_given_is_kept_and_what_is_empty_is_not() -> None:
    config = {"model": "", "timeout_seconds": 0, "stream_timeout_seconds": 5}
    assert known_values(config, KNOWN) == {"timeout_seconds": 0}
    assert known_values({"model": None}, KNOWN) == {}


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("modle", "did you mean 'model'?"),
        ("zzz", "known keys: max_retries, model, stream_timeout_seconds, timeout_seconds"),
        (7, "known keys"),
    ],
)
def test_a_key_that_nobody_reads(key, hint) -> None:
    with pytest.raises(ValueError, match="unknown key") as caught:
        known_values({key: "secret"}, KNOWN)
    assert hint in str(caught.value)
    assert repr(key) in str(caught.value)
    assert "secret" not in str(caught.value)


def test_text() -> None:
    check_text({"model": "x"}, "model", "api_key")
    with pytest.raises(ValueError, match=r"\['api_key'\] is of type int: expected a string$"):
        check_text({"api_key": 12345}, "model", "api_key")


@pytest.mark.parametrize("value", [0, -1, True, "60", None, float("nan"), float("inf"), [1]])
def test_what_is_no_number_of_seconds(value) -> None:
    with pytest.raises(ValueError, match=r"\['timeout_seconds'\] is .*: expected a number of seconds above 0"):
        check_seconds({"timeout_seconds": value}, "timeout_seconds")


@pytest.mark.parametrize("values", [{}, {"timeout_seconds": 1}, {"timeout_seconds": 0.5}])
def test_numbers_of_seconds(values) -> None:
    check_seconds(values, "timeout_seconds")


@pytest.mark.parametrize("value", [True, "0", -0.1, 1.01, float("nan"), None])
def test_what_is_no_number_in_the_range(value: Any) -> None:
    with pytest.raises(ValueError, match=r"\['temperature'\] is .*: expected a number from 0 to 1$"):
        check_number({"temperature": value}, "temperature", maximum=1)


@pytest.mark.parametrize("values", [{}, {"temperature": 0}, {"temperature": 1.0}])
def test_numbers_in_the_range(values: Any) -> None:
    check_number(values, "temperature", maximum=1)


@pytest.mark.parametrize("value", [True, "7", 0, -1, 1.5, None])
def test_what_is_no_count(value: Any) -> None:
    with pytest.raises(ValueError, match=r"\['num_ctx'\] is .*: expected a whole number of tokens, 1 or more"):
        check_count({"num_ctx": value}, "num_ctx", of="tokens")
    check_count({}, "num_ctx", of="tokens")
    check_count({"num_ctx": 1}, "num_ctx", of="tokens")


@pytest.mark.parametrize("value", ["txt", 1, None, ["text"]])
def test_what_is_no_choice(value: Any) -> None:
    with pytest.raises(ValueError, match=r"\['form'\] is .*: expected 'native' or 'text'"):
        check_choice({"form": value}, "form", ("native", "text"))
    check_choice({}, "form", ("native", "text"))
    check_choice({"form": "text"}, "form", ("native", "text"))


@pytest.mark.parametrize(
    ("url", "usable"),
    [
        ("http://127.0.0.1:8000/v1", True),
        ("https://[::1]:443/", True),
        ("https://user:secret@example.org", True),
        ("ftp://example.org", False),
        ("example.org:80", False),
        ("http://", False),
        ("http://:80", False),
        ("http://[::1", False),
        ("http://example.org:0", False),
        ("http://example.org:99999", False),
        ("http://example.org/v1?x=1", False),
        ("http://example.org/#x", False),
        ("http://example.org /v1", False),
        (b"http://example.org", False),
        (None, False),
    ],
)
def test_addresses(url: Any, usable: bool) -> None:
    assert is_http_url(url) is usable


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(ProviderConfig):
    model: str = "small"
    top_k: int | None = None

    @classmethod
    def check(cls, given: Any) -> None:
        check_count(given, "top_k", of="tokens")


def test_the_common_configuration() -> None:
    given = {"model": "", "temperature": 2, "tool_call_format": "text", "max_retries": 0, "top_k": 3}
    config = Config.read(given)
    assert config == Config(temperature=2, tool_call_format="text", top_k=3)
    assert {config: 1}[Config.read(given)] == 1
    assert Config.read({}) == Config()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"max_temperature": 3}, "unknown key 'max_temperature'"),
        ({"model": 7}, r"\['model'\] is of type int"),
        ({"api_key": 7}, r"\['api_key'\] is of type int"),
        ({"timeout_seconds": 0}, "expected a number of seconds above 0"),
        ({"temperature": 2.5}, "expected a number from 0 to 2$"),
        ({"tool_call_format": "json"}, "expected 'native' or 'text'"),
        ({"base_url": "secret"}, "expected one such as 'http://127.0.0.1:8000/v1'"),
        ({"top_k": 0}, "expected a whole number of tokens, 1 or more"),
    ],
)
def test_the_common_configuration_names_what_is_wrong(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        Config.read(given)
    assert "secret" not in str(caught.value)


def test_the_common_configuration_shows_no_secret() -> None:
    assert "secret" not in repr(Config.read({"api_key": "secret", "base_url": "http://me:secret@example.org"}))


def test_a_key_is_configured_or_in_the_environment_or_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ACME_KEY", "ACME_TOKEN", "ACME_URL"):
        monkeypatch.delenv(name, raising=False)
    (warning,) = Config().missing_key("ACME_KEY", "ACME_TOKEN", own_server="ACME_URL")
    assert warning.id == "gm_chat.W012"
    assert "there is no key, neither in provider_config['api_key'] nor" in warning.message
    assert "type: export ACME_KEY=" in warning.hint
    assert Config(api_key="secret").missing_key("ACME_KEY") == []
    assert Config(base_url="http://127.0.0.1").missing_key("ACME_KEY") == []
    for name in ("ACME_TOKEN", "ACME_URL"):
        monkeypatch.setenv(name, "x")
        assert Config().missing_key("ACME_KEY", "ACME_TOKEN", own_server="ACME_URL") == []
        monkeypatch.setenv(name, "")
    assert Config().missing_key("ACME_KEY", "ACME_TOKEN", own_server="ACME_URL") == [warning]
