"""What clients may read of an error."""

import dataclasses
from typing import Any

import pytest

from gm_chat.errors import PLANNED_REASONS, PUBLIC_MESSAGES, PublicChatError, planned_public_error, public_chat_error
from gm_chat.providers.base import ProviderTimeoutError

SPECIFIED = {
    "invalid_plan": "I could not prepare a safe plan for that request.",
    "manager_unresolved": "I could not resolve the required application data.",
    "dependency_blocked": "A required part of the request could not be completed.",
    "budget_exhausted": "The request reached its execution limit.",
    "deadline_exceeded": "The request reached its time limit.",
    "provider_failed": "The provider could not complete the request.",
    "synthesis_failed": "I could not produce a grounded answer from the available data.",
}
CODES = {
    "bad_message",
    "bad_event",
    "confirmation_pending",
    "confirmation_unavailable",
    "turn_in_progress",
    "rate_limited",
    "tool_retry_limit",
    "mutation_limit",
    "turn_limit",
    "mutation_batch_unsupported",
    "confirmation_required_transport",
    "chat_error",
}
OWN = {"cancelled", "permission_denied", "idempotency_conflict", "interrupted"}


class ReasonedError(Exception):
    def __init__(self, public_reason: object) -> None:
        super().__init__("secret detail")
        self.public_reason = public_reason


def test_every_code_has_a_message() -> None:
    assert set(PUBLIC_MESSAGES) == CODES | set(SPECIFIED) | OWN
    assert all(message.strip() for message in PUBLIC_MESSAGES.values())
    assert PUBLIC_MESSAGES["rate_limited"] == "Chat rate limit exceeded. Try again later."
    with pytest.raises(TypeError):
        PUBLIC_MESSAGES["x"] = "y"  # type: ignore[index]  # that it is read-only is the point


@pytest.mark.parametrize("reason", SPECIFIED)
def test_planned_reasons_keep_their_exact_words(reason: str) -> None:
    expected = PublicChatError(reason, SPECIFIED[reason])
    assert planned_public_error(reason) == public_chat_error(ReasonedError(reason)) == expected
    assert tuple(SPECIFIED) == PLANNED_REASONS


@pytest.mark.parametrize("reason", ["rate_limited", "chat_error", "bad_message", "Invalid_plan", "", None, 1, [], {}])
def test_any_other_reason_is_generic(reason: object) -> None:
    generic = PublicChatError("chat_error", PUBLIC_MESSAGES["chat_error"])
    assert planned_public_error(reason) == public_chat_error(ReasonedError(reason)) == generic


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (TimeoutError(), "deadline_exceeded"),
        (TimeoutError("secret detail"), "deadline_exceeded"),
        (ProviderTimeoutError("secret detail"), "chat_error"),
        (ValueError("secret detail"), "chat_error"),
        (KeyboardInterrupt(), "chat_error"),
    ],
)
def test_exceptions_become_public_errors_without_their_words(error: BaseException, code: str) -> None:
    public = public_chat_error(error)
    assert public.code == code
    assert public.message == PUBLIC_MESSAGES[code]


@pytest.mark.parametrize(
    ("retry_after", "extra"), [(None, {}), (0, {"retry_after_seconds": 0}), (7, {"retry_after_seconds": 7})]
)
def test_the_event_of_an_error(retry_after: int | None, extra: dict[str, Any]) -> None:
    error = PublicChatError("rate_limited", "Later.", retry_after)
    assert error.as_event() == {"type": "error", "message": "Later.", "code": "rate_limited", **extra}


def test_an_error_is_immutable() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        PublicChatError("a", "b").code = "c"  # type: ignore[misc]  # that it is frozen is the point
