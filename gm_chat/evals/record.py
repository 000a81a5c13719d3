"""What a run of a case was, and what the judges said of it: the one shape that runner, judges and reports share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from decimal import Decimal

__all__ = ["Observed", "Outcome", "Status", "ToolUse", "Verdict"]

Status = Literal["pass", "fail", "error"]
"""``error`` is not ``fail``: the run says nothing about the model's answer, because there was none to judge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """One tool call of the model: what it asked, and the JSON that it got."""

    name: str
    arguments: Mapping[str, Any]
    result: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """One run of one case, through all messages of its conversation."""

    dataset: str
    case: str
    repeat: int = 1
    """Which of the repetitions, from 1."""
    variant: str = ""
    """The name of the settings or the path of the provider, where several run side by side."""
    tags: tuple[str, ...] = ()
    """The case's, by which reports add up."""
    questions: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    """What was said to each message, in order."""
    calls: tuple[ToolUse, ...] = ()
    """Of the whole conversation, in the order in which they were made."""
    confirmations: tuple[str, ...] = ()
    """The mutations that were put before the user."""
    rounds: int = 0
    """Requests to the provider."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    """``None`` where the provider did not report them."""
    cost: Decimal | None = None
    """In the currency of the prices that the settings give; ``None`` without one."""
    seconds: float = 0.0
    error: str = ""
    """Why there is nothing to judge, in one line: the public code, then what is known of the cause."""

    @property
    def answer(self) -> str:
        """The last answer."""
        return self.answers[-1] if self.answers else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What one judge says. ``why`` is one line, also where it passed."""

    judge: str
    passed: bool
    why: str
    is_hard: bool = True
    """Whether it decides; the others are reported only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A run and its verdicts; none where the run could not be judged."""

    observed: Observed
    verdicts: tuple[Verdict, ...] = ()

    @property
    def status(self) -> Status:
        """``error`` if there was nothing to judge, else whether every hard verdict passed."""
        if self.observed.error:
            return "error"
        return "pass" if all(verdict.passed for verdict in self.verdicts if verdict.is_hard) else "fail"
