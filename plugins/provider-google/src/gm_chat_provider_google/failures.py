"""From Google's error bodies to the one tree of provider errors. Pure: nothing here waits or knows the SDK.

One shape, ``{"error": {"code", "message", "status", "details": [...]}}``, refuses a request and breaks off a stream.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from gm_chat.providers.base import ProviderAuthenticationError, ProviderContextError, ProviderError, ProviderQuotaError
from gm_chat.providers.failures import error_for_status

__all__ = ["SignatureError", "failure"]

_STATUS: Final[Mapping[str, int]] = {
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "RESOURCE_EXHAUSTED": 429,
    "INTERNAL": 500,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}
"""The HTTP statuses of Google's names for errors, for bodies that give no number."""

_BAD_KEY: Final = re.compile(r"API[ _]key (not|expired|invalid)|API_KEY_", re.IGNORECASE)
_TOO_LONG: Final = re.compile(r"input token count|exceeds the maximum number of tokens", re.IGNORECASE)
_SIGNATURE: Final = re.compile(r"thought[ _]?signature", re.IGNORECASE)
_SECONDS: Final = re.compile(r"(\d+(?:\.\d+)?)s")


class SignatureError(ProviderError):
    """Google refused a history for its thought signatures: one is missing, or made for another model or account."""

    retryable = False


def failure(status: int | None, body: object, *, retry_after: float | None = None) -> ProviderError:
    """Return the error for a ``body`` that came with an HTTP ``status`` (``None``: in the middle of a stream).

    ``retry_after`` is what the headers ask for; a ``RetryInfo`` in the body is more exact and wins.
    """
    error = _error(body)
    message = error.get("message") if isinstance(error.get("message"), str) else None
    name = error.get("status") if isinstance(error.get("status"), str) else None
    code = status or _code(error, name)
    detail = f"{name}: {message}" if name and message else message or str(body)
    details = list(_details(error))
    reasons = " ".join(str(item.get("reason")) for item in details)
    hint = next(filter(None, map(_retry_delay, details)), retry_after)
    known = error_for_status(code, detail, retry_after=hint)
    if code == 429 and any(map(_is_daily, details)):  # the delay that is named all the same is one of seconds
        return ProviderQuotaError(str(known), retryable=False)
    if code == 400:
        for pattern, kind in ((_SIGNATURE, SignatureError), (_TOO_LONG, ProviderContextError)):
            if pattern.search(detail):
                return kind(str(known), retry_after=hint)
        if _BAD_KEY.search(f"{detail} {reasons}"):
            return ProviderAuthenticationError(str(known), retry_after=hint)
    return known


def _error(body: object) -> Mapping[str, Any]:
    """Find the error's object: gateways wrap it into an array, or leave its envelope out."""
    if isinstance(body, list) and len(body) == 1:
        body = body[0]
    if not isinstance(body, Mapping):
        return {}
    inner = body.get("error")
    return inner if isinstance(inner, Mapping) else body if inner is None else {"message": str(inner)}


def _code(error: Mapping[str, Any], name: str | None) -> int:
    code = error.get("code")
    if isinstance(code, int) and 400 <= code <= 599:
        return code
    return _STATUS.get(name or "", 500)


def _details(error: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    details = error.get("details")
    yield from (item for item in details if isinstance(item, Mapping)) if isinstance(details, list) else ()


def _is_daily(detail: Mapping[str, Any]) -> bool:
    """Whether it is a ``QuotaFailure`` of a quota that begins anew tomorrow."""
    return "PerDay" in str(detail.get("violations"))


def _retry_delay(detail: Mapping[str, Any]) -> float | None:
    """Read ``{"@type": ".../google.rpc.RetryInfo", "retryDelay": "17s"}``."""
    delay = detail.get("retryDelay")
    match = _SECONDS.fullmatch(delay) if isinstance(delay, str) else None
    return float(match[1]) if match else None
