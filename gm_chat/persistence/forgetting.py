"""What ``chat_forget`` deletes: everything that the chat's own tables hold of one person.

The ledger keeps its sums, under a name that is nobody's. Each batch of conversations is written out, if that is asked
for, and deleted in one transaction, so that what was written is what is gone. Whoever does it a second time, or at the
same time, finds the rest, or nothing.
"""

from __future__ import annotations

import os
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from django.core import serializers
from django.db.models import F

from gm_chat.models import (
    ChatConversation,
    ChatEventSegment,
    ChatMessage,
    ChatPendingConfirmation,
    ChatRateCount,
    ChatTurn,
    ChatUsage,
)
from gm_chat.persistence.cleanup import BATCH_SIZE
from gm_chat.persistence.database import chat_database, transact
from gm_chat.persistence.following import request_cancel
from gm_chat.persistence.ledger import mark_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from django.db.models import Model, QuerySet

    from gm_chat.persistence.owner import Owner

__all__ = ["FORGOTTEN", "Export", "ask_to_stop", "forget"]

FORGOTTEN: Final = "forgotten"
"""The ledger's name for all who were forgotten."""

_HIDDEN: Final = frozenset(
    {"session_key", "current_key", "owner_key", "active_key", "request_key", "request_sha256", "payload_sha256"}
)
"""Columns that only this chat has a use for; whoever reads a session's key can take the session over."""


class Export:
    """A new file that only its owner can read: one JSON object ``{"model", "pk", "fields"}`` per line."""

    def __init__(self, path: Path) -> None:
        """Raises ``FileExistsError``: what an earlier command wrote is never written over."""
        self._file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8")

    def __call__(self, rows: Iterable[Model]) -> None:
        """Write each row, and have it on the disk before anybody deletes it."""
        for row in rows:
            shown = [field.name for field in row._meta.concrete_fields if field.name not in _HIDDEN]
            serializers.serialize("jsonl", [row], stream=self._file, fields=shown)
        self._file.flush()
        os.fsync(self._file.fileno())

    def place(self) -> int:
        """Where the next row begins."""
        return self._file.tell()

    def go_back(self, place: int) -> None:
        """Take back what was written after that."""
        self._file.seek(place)
        self._file.truncate()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def ask_to_stop(owner: Owner) -> list[str]:
    """Ask the owner's running turns to stop, and return their ids; those whose process died are ended."""
    running = ChatTurn.objects.using(chat_database()).filter(owner_key=owner.key, state=ChatTurn.State.RUNNING)
    return [turn_id for turn_id in list(running.values_list("pk", flat=True)) if request_cancel(owner, turn_id)]


def forget(
    owner: Owner,
    budgets: str,
    *,
    export: Export | None = None,
    dry_run: bool = False,
    batch_size: int = BATCH_SIZE,
) -> Counter[str]:
    """Delete, or in a dry run count, what is kept of the owner; return how many rows by what they are.

    ``budgets`` is how the keys of the owner's budgets begin (:func:`gm_chat.engine.budgets.prefix_of`). Conversations
    in which a turn runs are left alone: ``"conversations in use"`` says how many.
    """
    alias = chat_database()
    own = _conversations(owner, alias)
    found: Counter[str] = Counter()
    if export is not None:
        export(_lines(owner, alias).order_by("pk").iterator(chunk_size=BATCH_SIZE))
    last = 0
    while keys := list(own.filter(pk__gt=last).order_by("pk").values_list("pk", flat=True)[:batch_size]):
        last = keys[-1]
        place = export.place() if export is not None else 0
        work = partial(_forget_some, owner=owner, keys=keys, export=export, place=place, dry_run=dry_run)
        found += transact(work)
    counts = ChatRateCount.objects.using(alias).filter(pk__contains=f":{budgets}")
    found["rate counts"] = counts.count() if dry_run else counts.delete()[0]
    found["lines of the ledger"] += _anonymise(owner, alias, dry_run=dry_run)
    return found


def _conversations(owner: Owner, alias: str) -> QuerySet[ChatConversation]:
    rows = ChatConversation.objects.using(alias)
    if owner.user_id is not None:
        return rows.filter(user_id=owner.user_id)
    return rows.filter(user__isnull=True, session_key=owner.session_key)


def _forget_some(
    alias: str, *, owner: Owner, keys: Sequence[int], export: Export | None, place: int, dry_run: bool
) -> Counter[str]:
    rows = ChatConversation.objects.using(alias).filter(pk__in=keys)
    found: Counter[str] = Counter()
    if not dry_run:
        # The lock makes a message that arrives now wait, find no conversation, and begin a new one.
        rows.update(updated=F("updated"))
        busy = rows.filter(turns__state=ChatTurn.State.RUNNING).distinct()
        in_use = list(busy.values_list("pk", flat=True))
        found["conversations in use"] = len(in_use)
        rows = rows.exclude(pk__in=in_use)
    kept = list(rows.order_by("pk").values_list("pk", flat=True))
    parts = list(_parts(alias, kept))
    if export is not None:
        export.go_back(place)  # the transaction may be run again
        for _, part in parts:
            export(part.order_by("pk").iterator(chunk_size=BATCH_SIZE))
    found.update({name: part.count() for name, part in parts})
    if not dry_run:
        ChatConversation.objects.using(alias).filter(pk__in=kept).delete()
        found["lines of the ledger"] = _anonymise(owner, alias, dry_run=False)
    return found


def _parts(alias: str, kept: Sequence[int]) -> Iterable[tuple[str, QuerySet[Any]]]:
    """What goes with the conversations, each kind under its name."""
    yield "conversations", ChatConversation.objects.using(alias).filter(pk__in=kept)
    yield "messages", ChatMessage.objects.using(alias).filter(conversation__in=kept)
    yield "turns", ChatTurn.objects.using(alias).filter(conversation__in=kept)
    yield "event segments", ChatEventSegment.objects.using(alias).filter(turn__conversation__in=kept)
    yield "confirmations", ChatPendingConfirmation.objects.using(alias).filter(conversation__in=kept)


def _anonymise(owner: Owner, alias: str, *, dry_run: bool) -> int:
    """Let the ledger's lines name nobody and no conversation; the sums stay."""
    lines = _lines(owner, alias)
    return lines.count() if dry_run else lines.update(actor=FORGOTTEN, conversation=0)


def _lines(owner: Owner, alias: str) -> QuerySet[ChatUsage]:
    return ChatUsage.objects.using(alias).filter(actor=mark_of(owner.user_id, owner.key))
