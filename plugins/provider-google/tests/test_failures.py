"""Google's error bodies, and what gateways make of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from gm_chat_provider_google.failures import SignatureError, failure

from gm_chat.providers.base import (
    ProviderAuthenticationError,
    ProviderContextError,
    ProviderError,
    ProviderOverloadedError,
    ProviderQuotaError,
    ProviderTimeoutError,
)

RECORDINGS = Path(__file__).parent / "recordings"


def body(code: int | None, status: str | None, message: str = "no", *details: Any) -> dict[str, Any]:
    return {"error": {"code": code, "status": status, "message": message, "details": list(details)}}


INVALID_KEY = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}


@pytest.mark.parametrize(
    ("status", "content", "kind"),
    [
        (400, body(400, "INVALID_ARGUMENT", "no such field"), ProviderError),
        (
            400,
            body(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
            ProviderAuthenticationError,
        ),
        (400, body(400, "INVALID_ARGUMENT", "API key expired. Please renew it."), ProviderAuthenticationError),
        (400, body(400, "INVALID_ARGUMENT", "no", INVALID_KEY), ProviderAuthenticationError),
        (
            400,
            body(
                400, "INVALID_ARGUMENT", "The input token count (1200000) exceeds the maximum number of tokens allowed."
            ),
            ProviderContextError,
        ),
        (400, body(400, "INVALID_ARGUMENT", "Corrupted thought signature."), SignatureError),
        (400, body(400, "INVALID_ARGUMENT", "Function call is missing a thought_signature in parts."), SignatureError),
        (400, body(400, "INVALID_ARGUMENT", "Unable to submit: Thought signature is not valid."), SignatureError),
        (401, body(401, "UNAUTHENTICATED"), ProviderAuthenticationError),
        (403, body(403, "PERMISSION_DENIED"), ProviderAuthenticationError),
        (404, body(404, "NOT_FOUND", "models/x is not found"), ProviderError),
        (429, body(429, "RESOURCE_EXHAUSTED"), ProviderQuotaError),
        (499, body(499, "CANCELLED"), ProviderError),
        (500, body(500, "INTERNAL"), ProviderError),
        (503, body(503, "UNAVAILABLE", "The model is overloaded."), ProviderOverloadedError),
        (504, body(504, "DEADLINE_EXCEEDED"), ProviderTimeoutError),
        # in the middle of a stream
        (None, body(429, "RESOURCE_EXHAUSTED"), ProviderQuotaError),
        (None, body(None, "UNAVAILABLE"), ProviderOverloadedError),
        (None, body(None, "PERMISSION_DENIED"), ProviderAuthenticationError),
        (None, body(14, "UNAVAILABLE"), ProviderOverloadedError),
        (None, {"error": {"message": "no"}}, ProviderError),
        (None, {"error": "no"}, ProviderError),
        # of gateways
        (503, [body(503, "UNAVAILABLE")], ProviderOverloadedError),
        (429, {"message": "no", "status": "Too Many Requests"}, ProviderQuotaError),
        (502, {"error": None, "detail": "no"}, ProviderError),
        (502, "no", ProviderError),
        (502, ["no", "no"], ProviderError),
        (429, {"error": {"code": "no", "message": None, "status": 7, "details": {"no": 1}}}, ProviderQuotaError),
    ],
)
def test_kinds(status: int | None, content: Any, kind: type[ProviderError]) -> None:
    error = failure(status, content)
    assert type(error) is kind
    assert error.retry_after is None
    assert error.retryable == (
        kind in (ProviderQuotaError, ProviderOverloadedError) or ("HTTP 50" in str(error) and kind is ProviderError)
    )


@pytest.mark.parametrize("content", [body(500, "INTERNAL", "no luck"), {"error": "no luck"}, "no luck", ["no luck", 1]])
def test_what_the_server_says_is_quoted(content: Any) -> None:
    assert "no luck" in str(failure(500, content))


def test_a_quota_says_when_to_come_back() -> None:
    error = failure(429, json.loads((RECORDINGS / "quota_error.json").read_bytes()), retry_after=60.0)
    assert type(error) is ProviderQuotaError
    assert error.retry_after == 17.0
    assert "RESOURCE_EXHAUSTED: You exceeded your current quota" in str(error)


def test_a_quota_for_the_day_is_not_asked_again_in_seconds() -> None:
    quota = json.loads((RECORDINGS / "quota_error.json").read_text().replace("PerMinute", "PerDay"))
    error = failure(429, quota, retry_after=60.0)
    assert type(error) is ProviderQuotaError
    assert (error.retryable, error.retry_after) == (False, None)
    assert "RESOURCE_EXHAUSTED: You exceeded your current quota" in str(error)


@pytest.mark.parametrize(
    ("delay", "seconds"),
    [
        ("17s", 17.0),
        ("0.5s", 0.5),
        ("3600.250s", 3600.25),
        ("soon", 9.0),
        ("-3s", 9.0),
        ("17", 9.0),
        (17, 9.0),
        (None, 9.0),
    ],
)
def test_rubbish_leaves_it_to_the_header(delay: Any, seconds: float) -> None:
    details = [None, {}, {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}]
    assert failure(503, body(503, "UNAVAILABLE", "no", *details), retry_after=9.0).retry_after == seconds
