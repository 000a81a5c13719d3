"""From what an HTTP API reports to the one tree of provider errors in :mod:`gm_chat.providers.base`."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from gm_chat.providers.base import (
    ProviderAuthenticationError,
    ProviderContextError,
    ProviderError,
    ProviderIncompleteError,
    ProviderOverloadedError,
    ProviderQuotaError,
    ProviderTimeoutError,
)

__all__ = ["error_for_status", "parse_retry_after", "refuse_page", "without_keys"]

_BY_STATUS: Final[dict[int, type[ProviderError]]] = {
    401: ProviderAuthenticationError,
    403: ProviderAuthenticationError,
    408: ProviderTimeoutError,
    413: ProviderContextError,
    429: ProviderQuotaError,
    503: ProviderOverloadedError,
    504: ProviderTimeoutError,
    529: ProviderOverloadedError,
}
_TOO_LONG: Final = re.compile(r"context (length|window|size|limit)|prompt is too long|exceed\w*_context", re.IGNORECASE)
_MAX_DETAIL: Final = 500


def error_for_status(status: int, detail: str, *, retry_after: float | None = None) -> ProviderError:
    """Return the error for an HTTP status of 400 or above; ``detail`` is the vendor's text, shortened if it is a page.

    Servers that speak a vendor's protocol without sharing its error codes say "too long" in words only; that is
    looked for in a 400, where it cannot be mistaken for anything that a retry would mend.
    """
    kind = _BY_STATUS.get(status, ProviderError)
    if status in (400, 422) and _TOO_LONG.search(detail):
        kind = ProviderContextError
    shown = detail if len(detail) <= _MAX_DETAIL else detail[:_MAX_DETAIL] + "…"
    retryable = status >= 500 if kind is ProviderError else None  # the same bad request is as bad a second later
    return kind(f"HTTP {status}: {shown}", retry_after=retry_after, retryable=retryable)


def refuse_page(content_type: str) -> None:
    """Raise :class:`ProviderIncompleteError` if a successful response is an HTML page instead of a stream."""
    if "html" in content_type:
        raise ProviderIncompleteError(
            f"the server answered with a page ({content_type}) instead of a stream: is base_url right, does a proxy or "
            "a login stand before it?"
        )


def without_keys(detail: str, *keys: str | None) -> str:
    """Take the keys, as far as there are any, out of a text of the vendor's: some gateways quote them whole."""
    for key in filter(None, keys):
        detail = detail.replace(key, "<api_key>")
    return detail


def parse_retry_after(value: str | None, *, now: datetime | None = None) -> float | None:
    """Return the seconds that a ``Retry-After`` header asks for, or ``None`` if it says nothing usable.

    Both forms of RFC 9110 are read: seconds (fractions too), and a date, of which the past counts as 0.
    """
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        return _seconds_until(value, now or datetime.now(UTC))
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def _seconds_until(value: str, now: datetime) -> float | None:
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    # RFC 9110 dates are always GMT; the standard library leaves a "-0000" zone naive.
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())
