"""From the error objects of the wire format to the one tree of provider errors. Knows no SDK."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gm_chat.providers.base import (
    ProviderAuthenticationError,
    ProviderContextError,
    ProviderError,
    ProviderOverloadedError,
    ProviderQuotaError,
    ProviderTimeoutError,
)
from gm_chat.providers.failures import error_for_status, without_keys

__all__ = ["describe", "error_of"]

_BY_TYPE: Final[Mapping[str, type[ProviderError]]] = {
    "authentication_error": ProviderAuthenticationError,
    "billing_error": ProviderQuotaError,
    "exceed_context_size_error": ProviderContextError,
    "overloaded_error": ProviderOverloadedError,
    "permission_error": ProviderAuthenticationError,
    "rate_limit_error": ProviderQuotaError,
    "request_too_large": ProviderContextError,
    "timeout_error": ProviderTimeoutError,
}

_LASTING: Final = frozenset({"billing_error", "invalid_request_error", "not_found_error"})
"""What is no better a second later, although its kind of error may be."""

_MAX_DETAIL: Final = 500


def error_of(
    body: object, *, status: int | None = None, retry_after: float | None = None, keys: tuple[str | None, ...] = ()
) -> ProviderError:
    """Return the error that ``body`` describes: of the stream, or with ``status`` of a refused request.

    The type that the service names decides before the status. ``keys`` are masked.
    """
    detail = without_keys(describe(body), *keys)
    detail = detail if len(detail) <= _MAX_DETAIL else detail[:_MAX_DETAIL] + "…"
    type_ = _field(body, "type")
    if status is not None and type_ not in _BY_TYPE:
        return error_for_status(status, detail, retry_after=retry_after)
    kind = _BY_TYPE.get(type_, ProviderError)
    return kind(detail, retry_after=retry_after, retryable=False if type_ in _LASTING else None)


def describe(body: object) -> str:
    """Return the error's type and message, and the id by which the service finds the request."""
    if not isinstance(body, Mapping):
        return str(body)
    kind, message = _field(body, "type"), _field(body, "message")
    if not message:
        return str(dict(body))
    id = body.get("request_id")
    return f"{kind or 'error'}: {message}" + (f" ({id})" if isinstance(id, str) and id else "")


def _field(body: object, name: str) -> str:
    error = body.get("error") if isinstance(body, Mapping) else None
    value = error.get(name) if isinstance(error, Mapping) else None
    return value if isinstance(value, str) else ""
