from __future__ import annotations

from typing import Any

import pytest

from gm_chat.providers.base import ProviderMalformedError
from gm_chat.providers.wire import array_of, count_of, is_count, object_of, text_of, value_of


def test_what_fits_is_returned_and_null_is_empty() -> None:
    assert (object_of({"a": 1}, "x"), array_of([1], "x"), text_of("a", "x")) == ({"a": 1}, [1], "a")
    assert (object_of(None, "x"), list(array_of(None, "x")), text_of(None, "x")) == ({}, [], "")


@pytest.mark.parametrize(
    ("read", "value", "expected"),
    [
        (object_of, [], "a JSON object"),
        (object_of, "a", "a JSON object"),
        (array_of, {}, "an array"),
        (array_of, "ab", "an array"),
        (text_of, 7, "a string"),
        (text_of, ["a"], "a string"),
    ],
)
def test_what_does_not_fit_is_named_and_shortened(read: Any, value: Any, expected: str) -> None:
    with pytest.raises(ProviderMalformedError, match=rf"^a thing is .*: expected {expected}$"):
        read(value, "a thing")
    with pytest.raises(ProviderMalformedError) as caught:
        read(range(10**9), "x" * 10)
    assert len(str(caught.value)) < 150


@pytest.mark.parametrize(
    ("value", "count"), [(0, 0), (7, 7), (-1, None), (True, None), (1.0, None), ("7", None), (None, None)]
)
def test_counts(value: Any, count: int | None) -> None:
    assert is_count(value) == (count is not None)
    assert count_of(value) == (count or 0)


@pytest.mark.parametrize(
    ("data", "value"),
    [(b' {"a": 1} ', {"a": 1}), (b"null", None), ('"\u2028"'.encode(), "\u2028"), (b"1.5e300", 1.5e300)],
)
def test_a_value_of_the_stream(data: bytes, value: Any) -> None:
    assert value_of(data) == value


@pytest.mark.parametrize("data", [b"", b"{} {}", b"NaN", b'{"n": -Infinity}', b"[1e999]", b'"\xff"', b"[" * 100_000])
def test_what_is_no_json_is_malformed(data: bytes) -> None:
    with pytest.raises(ProviderMalformedError, match="not JSON"):
        value_of(data)
