from __future__ import annotations

import pytest

from gm_chat.providers.configuration import check_seconds, check_text, known_values

KNOWN = ("model", "timeout_seconds")


def test_what_is_given_is_kept_and_what_is_empty_is_not() -> None:
    config = {"model": "", "timeout_seconds": 0, "stream_timeout_seconds": 5}
    assert known_values(config, KNOWN) == {"timeout_seconds": 0}
    assert known_values({"model": None}, KNOWN) == {}


@pytest.mark.parametrize(
    ("key", "hint"),
    [("modle", "did you mean 'model'?"), ("zzz", "known keys: model, timeout_seconds"), (7, "known keys")],
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
