"""What a schema's errors mean to the model. Their texts are for the log: resolvers write what they like into them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import DataError, IntegrityError
from django.db.models import ProtectedError, RestrictedError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["is_denial", "log_errors", "messages_of"]

_DENIALS: Final = frozenset({"PERMISSION_DENIED", "FORBIDDEN", "UNAUTHENTICATED", "UNAUTHORIZED"})
_DENYING: Final = frozenset({"DjangoNoPermission", "NotAuthenticated"})
logger = logging.getLogger("gm_chat_source_graphql")


def is_denial(error: Any) -> bool:
    """Whether a GraphQL error says that the actor may not see or do something."""
    cause = getattr(error, "original_error", None)
    if isinstance(cause, PermissionDenied | PermissionError) or type(cause).__name__ in _DENYING:
        return True
    code = (getattr(error, "extensions", None) or {}).get("code")
    return isinstance(code, str) and code.upper() in _DENIALS


def log_errors(errors: Sequence[Any], what: str) -> None:
    """Tell the operator, with the traceback of the first."""
    first = getattr(errors[0], "original_error", None) or errors[0]
    places = "; ".join(f"{_place(error)}: {getattr(error, 'message', error)}" for error in errors[:5])
    logger.error("%s failed with %d errors: %s", what, len(errors), places, exc_info=first)


def _place(error: Any) -> str:
    return ".".join(map(str, getattr(error, "path", None) or ())) or "the operation"


def messages_of(error: Any) -> Iterator[tuple[str, str]]:
    """(input, message) pairs that a mutation's error has for the client: Django's, or ``extensions["fieldErrors"]``."""
    cause = getattr(error, "original_error", None)
    if isinstance(cause, ValidationError):
        by_field = cause.message_dict if hasattr(cause, "error_dict") else {"": cause.messages}
        for name, messages in by_field.items():
            yield from ((name, str(message)) for message in messages)
    elif isinstance(cause, ProtectedError | RestrictedError):
        yield "", "it cannot be deleted: other data still refers to it"
    elif isinstance(cause, IntegrityError | DataError):
        yield "", "the database refuses it: a value is taken, missing, or out of range"
    extensions: dict[str, Any] = getattr(error, "extensions", None) or {}
    told = extensions.get("fieldErrors")
    if isinstance(told, dict):
        for name, found in told.items():
            yield from ((str(name), str(message)) for message in (found if isinstance(found, list) else [found]))
