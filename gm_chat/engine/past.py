"""What a summary is made of, and who brings and keeps it: the part of a conversation before its window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["DueSummary", "PastMessage", "SummarySource"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PastMessage:
    """A stored message as a summary takes it in: long texts are cut, JSON values are text."""

    role: Literal["user", "assistant", "tool"]
    text: str
    tool_name: str = ""
    tool_args: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummarySource:
    """What a summary is made of: the one before it and the messages since, oldest first, bounded in size.

    ``through`` is the id of the last message that the new summary covers. Without ``complete``, older messages were
    too many and are left out for good.
    """

    previous: str
    messages: Sequence[PastMessage]
    through: int
    complete: bool = True


class DueSummary(Protocol):
    """A summary that should be extended before the turn goes on; it belongs to one conversation."""

    async def read(self) -> SummarySource:
        """Load what it is to cover, and note the attempt: the next one waits for ten more messages."""
        ...

    async def save(self, source: SummarySource, text: str) -> None:
        """Keep the new summary, unless another one was kept since :meth:`read`."""
        ...
