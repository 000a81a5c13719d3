"""What a permission check may answer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal


class Verdict(Enum):
    """One check's opinion. All checks are asked; one DENY wins, and ABSTAIN means "not mine to judge"."""

    ALLOW = "allow"
    DENY = "deny"
    ABSTAIN = "abstain"


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict with the reason that an operator reads; clients only see that they were refused."""

    verdict: Verdict
    reason: str = ""

    @classmethod
    def allow(cls) -> Decision:
        """The action is permitted as far as this check is concerned."""
        return cls(Verdict.ALLOW)

    @classmethod
    def deny(cls, reason: str) -> Decision:
        """The action is refused, whatever the other checks say."""
        return cls(Verdict.DENY, reason)

    @classmethod
    def abstain(cls) -> Decision:
        """This check has no opinion on the action."""
        return cls(Verdict.ABSTAIN)


@dataclass(frozen=True, slots=True)
class Action:
    """What somebody is about to do.

    ``kind``: ``connect`` (a request or socket arrives), ``message``, ``tool`` (``name`` is the tool),
    ``mutation`` (``name`` is the mutation) or ``confirm``.
    """

    kind: Literal["connect", "message", "tool", "mutation", "confirm"]
    name: str = ""
