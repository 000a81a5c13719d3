from __future__ import annotations

from datetime import UTC, datetime

import pytest

from gm_chat.providers.base import (
    ProviderAuthenticationError,
    ProviderContextError,
    ProviderError,
    ProviderIncompleteError,
    ProviderOverloadedError,
    ProviderQuotaError,
    ProviderTimeoutError,
)
from gm_chat.providers.failures import error_for_status, parse_retry_after, refuse_page, without_keys

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("17", 17.0),
        ("0", 0.0),
        ("1.5", 1.5),
        (" 3 ", 3.0),
        ("Sun, 29 Nov 2026 12:00:30 GMT", 30.0),
        ("Sun, 29 Nov 2026 12:00:30 -0000", 30.0),
        ("Sunday, 29-Nov-26 12:00:30 GMT", 30.0),
        ("Sun, 29 Nov 2026 11:00:00 GMT", 0.0),
        (None, None),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("nan", None),
        ("inf", None),
        ("1e999", None),
        ("17s", None),
        ("Sun, 99 Nov 2026 12:00:30 GMT", None),
        ("Sun, 29 Nov 99999 12:00:30 GMT", None),
    ],
)
def test_retry_after(value, seconds) -> None:
    assert parse_retry_after(value, now=NOW) == seconds


def test_retry_after_knows_the_time() -> None:
    assert parse_retry_after("Fri, 01 Jan 2100 00:00:00 GMT") > 0


@pytest.mark.parametrize(
    ("status", "detail", "kind"),
    [
        (400, "no such parameter", ProviderError),
        (400, "This model's maximum context length is 4096 tokens", ProviderContextError),
        (400, "prompt is too long: 200000 tokens", ProviderContextError),
        (422, "the context window is full", ProviderContextError),
        (500, "cannot allocate the context window", ProviderError),
        (401, "", ProviderAuthenticationError),
        (403, "", ProviderAuthenticationError),
        (404, "no such model", ProviderError),
        (408, "", ProviderTimeoutError),
        (413, "", ProviderContextError),
        (429, "", ProviderQuotaError),
        (500, "", ProviderError),
        (502, "", ProviderError),
        (503, "", ProviderOverloadedError),
        (504, "", ProviderTimeoutError),
        (529, "", ProviderOverloadedError),
        (599, "", ProviderError),
    ],
)
def test_the_error_of_a_status(status, detail, kind) -> None:
    error = error_for_status(status, detail, retry_after=2.0)
    assert type(error) is kind
    assert str(error) == f"HTTP {status}: {detail}"
    assert error.retry_after == 2.0


def test_a_page_is_shortened() -> None:
    assert str(error_for_status(502, "x" * 10_000)) == "HTTP 502: " + "x" * 500 + "…"


@pytest.mark.parametrize(
    ("status", "retryable"),
    [
        *((status, False) for status in (400, 401, 403, 404, 405, 408, 409, 413, 422, 451, 504)),
        *((status, True) for status in (429, 500, 502, 503, 520, 529)),
    ],
)
def test_what_may_succeed_a_little_later(status, retryable) -> None:
    assert error_for_status(status, "no").retryable is retryable


def test_a_page_is_no_stream() -> None:
    with pytest.raises(ProviderIncompleteError, match=r"with a page .text/html; charset=utf-8. instead of a stream"):
        refuse_page("text/html; charset=utf-8")
    for content_type in ("text/event-stream", "application/x-ndjson", ""):
        refuse_page(content_type)


def test_keys_are_taken_out_of_what_a_vendor_says() -> None:
    assert without_keys("bad key sk-1, not sk-2 (sk-1)", "sk-1", None, "", "sk-2") == (
        "bad key <api_key>, not <api_key> (<api_key>)"
    )
