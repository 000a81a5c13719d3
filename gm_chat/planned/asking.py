"""Asking a model for a JSON object until it gives a usable one: each attempt by a role, the defect named to the next.

Planning and answering go this way. Who is asked how often is up to them; an attempt whose provider fails takes its
round of the budget, and teaches the next one nothing.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from gm_chat.engine.failures import TurnStopped
from gm_chat.planned.budget import RoundBudgetExhausted
from gm_chat.planned.provider_calls import UNKNOWN_USAGE, InvalidProviderRoundError
from gm_chat.planned.reading import DefectError
from gm_chat.providers.base import Message, ProviderError, TokenUsage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gm_chat.planned.budget import RoundBudget
    from gm_chat.planned.provider_calls import RoundCaller

__all__ = ["Asked", "Attempt", "Form", "ask", "closed_object"]

MAX_QUOTED: Final = 4_000
"""Characters of a faulty text that its writer is shown again."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Form(Generic[T]):
    """What is asked for: the word for it, its JSON Schema for providers that can be held to one, and who reads it.

    ``read`` returns what it took from a text, or raises :class:`~gm_chat.planned.reading.DefectError`.
    """

    name: str
    schema: Mapping[str, Any]
    read: Callable[[str], T]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt(Generic[T]):
    """What came of asking once. Without ``usage`` the provider failed, which is nothing that words could mend."""

    value: T | None = None
    usage: TokenUsage | None = None
    text: str = ""
    defect: str = ""


@dataclass(frozen=True, slots=True)
class Asked(Generic[T]):
    """The attempts; all but the last are faulty."""

    attempts: Sequence[Attempt[T]]

    @property
    def value(self) -> T | None:
        """What the last one gave, ``None`` if it gave nothing usable either."""
        return self.attempts[-1].value if self.attempts else None

    @property
    def usages(self) -> tuple[TokenUsage, ...]:
        """What each attempt cost that the provider came to an end with."""
        return tuple(attempt.usage for attempt in self.attempts if attempt.usage is not None)

    @property
    def usage(self) -> TokenUsage:
        """What all of them cost."""
        return sum(self.usages, TokenUsage())

    @property
    def defects(self) -> tuple[str, ...]:
        """What was wrong with each faulty attempt, for the operator."""
        return tuple(attempt.defect for attempt in self.attempts if attempt.defect)

    @property
    def only_failures(self) -> bool:
        """Whether no attempt came as far as words, since each time the provider failed."""
        return all(attempt.usage is None for attempt in self.attempts)


async def ask(
    roles: Sequence[str],
    prompt: Sequence[Message],
    form: Form[T],
    *,
    call: RoundCaller,
    budget: RoundBudget,
    seconds: float,
    clock: Callable[[], float] = time.monotonic,
) -> Asked[T]:
    """Ask one role after the other until one writes what the form takes.

    Raises ``TimeoutError`` when the ``seconds`` are over, :class:`RoundBudgetExhausted` with what was spent before, and
    :class:`~gm_chat.engine.failures.TurnStopped`.
    """
    ends = clock() + seconds
    attempts: list[Attempt[T]] = []
    for role in roles:
        left = ends - clock()
        if left <= 0:
            raise TimeoutError(f"there is no time left for the {form.name}")
        try:
            budget.consume_global()
        except RoundBudgetExhausted as error:
            spent = Asked(attempts)
            error.usage, error.attempt_usages = spent.usage, spent.usages
            raise
        messages = [*prompt, *_correction(attempts, form.name)]
        attempts.append(await _attempt(role, messages, form, call, left))
        if attempts[-1].value is not None:
            break
    return Asked(attempts)


async def _attempt(
    role: str,
    messages: Sequence[Message],
    form: Form[T],
    call: RoundCaller,
    seconds: float,
) -> Attempt[T]:
    try:
        result = await call(role, messages, (), seconds=seconds, response_format=form.schema)
    except InvalidProviderRoundError as error:
        return Attempt(usage=error.usage or UNKNOWN_USAGE, defect=error.detail)
    except ProviderError as error:  # one that took too long included, which the TimeoutError below is not
        return Attempt(defect=f"{type(error).__name__}: {error}")
    except (TurnStopped, TimeoutError):
        raise
    except Exception as error:  # noqa: BLE001 - a provider may raise anything; the next attempt may fare better
        return Attempt(defect=f"{type(error).__name__}: {error}")
    if result.tool_call is not None:
        return Attempt(usage=result.usage, defect="there are no tools to call; write JSON")
    try:
        return Attempt(value=form.read(result.text), usage=result.usage, text=result.text)
    except DefectError as error:
        return Attempt(usage=result.usage, text=result.text, defect=error.detail)


def _correction(attempts: Sequence[Attempt[T]], what: str) -> list[Message]:
    """The last fault that its writer can mend, and what had it."""
    faulty = next((attempt for attempt in reversed(attempts) if attempt.usage is not None), None)
    if faulty is None:
        return []
    notice = Message(
        "user", f"This is no usable {what}: {faulty.defect}. Reply with the whole {what}, mended, as JSON."
    )
    return [Message("assistant", faulty.text[:MAX_QUOTED]), notice] if faulty.text.strip() else [notice]


def closed_object(properties: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON Schema of an object with exactly these properties."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }
