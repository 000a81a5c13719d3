"""Who used how much of which model, when. (The price of it: :mod:`gm_chat.prices`.)

A turn's own row says what it used; the statement that closes the turn writes that, so that the ledger costs none of its
own. When a conversation is deleted, :func:`bank` keeps the sums of its turns, by day and model, in ``ChatUsage``.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any, Final

from django.utils import timezone

from gm_chat.models import ChatConversation, ChatTurn, ChatUsage
from gm_chat.persistence.database import chat_database
from gm_chat.persistence.rows import read_time, stored_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from django.db.models import QuerySet

__all__ = ["Entry", "Used", "bank", "entries", "kept_of", "mark_of", "used_of"]

_CHUNK: Final = 1000


@dataclass(slots=True)
class Used:
    """Tokens of some turns, as far as providers reported them; ``unreported`` counts turns of which they did not."""

    turns: int = 0
    unreported: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0

    @property
    def is_known(self) -> bool:
        """Whether anything was reported: else the zeros mean nothing."""
        return self.turns > self.unreported or self.input_tokens + self.output_tokens > 0

    def add(self, other: Used) -> None:
        """Count the other's turns, too."""
        self.turns += other.turns
        self.unreported += other.unreported
        self.input_tokens += other.input_tokens
        self.cached_tokens += other.cached_tokens
        self.output_tokens += other.output_tokens


@dataclass(frozen=True, slots=True)
class Entry:
    """What one actor used of one model in one conversation on one day, in the project's time zone.

    ``actor`` is ``user:<id>``, or a mark that tells anonymous sessions apart and says nothing about them.
    """

    day: date
    actor: str
    conversation: int
    model: str
    used: Used


def entries(since: date, until: date) -> Iterator[Entry]:
    """All usage from one day to another, that of deleted conversations included. There may be several per key."""
    alias = chat_database()
    turns = ChatTurn.objects.using(alias).filter(created__gte=_begin(since), created__lt=_begin(until + timedelta(1)))
    yield from _of_turns(turns)
    banked = ChatUsage.objects.using(alias).filter(day__gte=since, day__lte=until)
    for row in banked.iterator(chunk_size=_CHUNK):
        yield Entry(row.day, row.actor, row.conversation, row.model, kept_of(row))


def bank(conversation: ChatConversation, alias: str) -> None:
    """Keep what a conversation's turns used; whoever deletes it calls this in the same transaction."""
    sums: dict[tuple[date, str, str], Used] = {}
    for entry in _of_turns(ChatTurn.objects.using(alias).filter(conversation_id=conversation.pk)):
        sums.setdefault((entry.day, entry.actor, entry.model), Used()).add(entry.used)
    ChatUsage.objects.using(alias).bulk_create(
        ChatUsage(
            day=day,
            actor=actor,
            conversation=conversation.pk,
            model=model[:255],
            turns=used.turns,
            unreported=used.unreported,
            input_tokens=used.input_tokens if used.is_known else None,
            cached_tokens=used.cached_tokens if used.is_known else None,
            output_tokens=used.output_tokens if used.is_known else None,
        )
        for (day, actor, model), used in sums.items()
    )


def _of_turns(turns: QuerySet[ChatTurn]) -> Iterator[Entry]:
    columns = ("created", "conversation_id", "conversation__user_id", "owner_key", "spent")
    rows: Iterable[Any] = turns.exclude(spent={}).order_by("created").values_list(*columns)
    for created, conversation, user_id, owner_key, spent in rows.iterator(chunk_size=_CHUNK):  # type: ignore[attr-defined]
        day = read_time(created).astimezone(timezone.get_default_timezone()).date()
        actor = mark_of(user_id, owner_key)
        for model, counts in spent.items():
            yield Entry(day, actor, conversation, model, used_of(counts))


def mark_of(user_id: object, owner_key: str) -> str:
    """How the ledger names an owner: a user by id, a session by something that says nothing about it."""
    return f"session:{owner_key[:12]}" if user_id is None else f"user:{user_id}"


def used_of(counts: Mapping[str, Any]) -> Used:
    """What a turn's row says of one model."""
    return Used(
        1,
        int(not counts["reported"]),
        counts["input_tokens"],
        counts["cached_tokens"],
        counts["output_tokens"],
    )


def kept_of(row: ChatUsage) -> Used:
    """What was kept of a deleted conversation."""
    tokens = (row.input_tokens or 0, row.cached_tokens or 0, row.output_tokens or 0)
    return Used(row.turns, row.unreported, *tokens)


def _begin(day: date) -> datetime:
    return stored_time(datetime.combine(day, time.min, timezone.get_default_timezone()).astimezone(UTC))
