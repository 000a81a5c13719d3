"""Reading the recent rows of a conversation back as history."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.db.models import BigIntegerField, CharField

from gm_chat.engine.history import window
from gm_chat.models import ChatConversation, ChatMessage
from gm_chat.persistence.prepared import Parameter, PreparedQuery
from gm_chat.persistence.rows import MESSAGE_COLUMNS, message_from_row
from gm_chat.persistence.summaries import SUMMARY_COLUMNS, recall, rows_to_read

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet

    from gm_chat.engine.past import DueSummary
    from gm_chat.engine.ports import StoredMessage

__all__ = ["Window", "read_current_window", "read_window"]

_COLUMNS: Final = ("pk", "conversation_id", *MESSAGE_COLUMNS, *SUMMARY_COLUMNS)


class Window(NamedTuple):
    """Where a conversation stands, its recent messages, oldest first, and what is known of those before them."""

    conversation_id: int
    newest_id: int
    history: Sequence[StoredMessage]
    summary: str
    due: DueSummary | None


def read_window(alias: str, conversation_id: int, limit: int) -> Window | None:
    """Read at most ``limit`` rows of a conversation's messages, in one statement; ``None`` if it has none.

    The window starts at a user's message. When the newest turn alone is longer than the window, it is returned
    whole: a cut would separate tool calls from their results. That costs two statements more. No summary is due.
    """
    rows = _of_conversation(rows_to_read(limit)).fetch(alias, conversation_id=conversation_id)
    return _window(alias, rows, limit, None)


def read_current_window(alias: str, owner_key: str, limit: int, *, summarize_after: int | None) -> Window | None:
    """The same of the owner's current conversation. ``summarize_after`` is the setting; ``None``: no summary is due."""
    rows = _of_owner(rows_to_read(limit)).fetch(alias, owner_key=owner_key)
    return _window(alias, rows, limit, summarize_after)


def _window(alias: str, rows: Sequence[dict[str, Any]], limit: int, summarize_after: int | None) -> Window | None:
    if not rows:
        return None
    conversation_id, newest_id = rows[0]["conversation_id"], rows[0]["pk"]
    summary, due = recall(rows, alias, window=limit, summarize_after=summarize_after)
    recent = rows[:limit]
    if recent and all(row["role"] != ChatMessage.Role.USER for row in recent):
        recent = _newest_turn(alias, conversation_id)
    history = tuple(window([message_from_row(row) for row in reversed(recent)], limit))
    return Window(conversation_id, newest_id, history, summary, due)


def _newest_turn(alias: str, conversation_id: int) -> list[dict[str, Any]]:
    messages = ChatMessage.objects.using(alias).filter(conversation_id=conversation_id)
    question = messages.filter(role=ChatMessage.Role.USER).order_by("-pk").values_list("pk", flat=True).first()
    return [] if question is None else list(_newest_first(messages.filter(pk__gte=question)))


def _newest_first(messages: QuerySet[ChatMessage]) -> QuerySet[ChatMessage, Any]:
    rows: QuerySet[ChatMessage, Any] = messages.order_by("-pk").values(*_COLUMNS)
    return rows


@lru_cache
def _of_conversation(rows: int) -> PreparedQuery:
    id = Parameter("conversation_id", BigIntegerField())
    return PreparedQuery(_newest_first(ChatMessage.objects.filter(conversation_id=id))[:rows])


@lru_cache
def _of_owner(rows: int) -> PreparedQuery:
    # A subquery and no join: SQLite would walk through the messages of all conversations.
    owner = ChatConversation.objects.filter(current_key=Parameter("owner_key", CharField())).values("pk")[:1]
    return PreparedQuery(_newest_first(ChatMessage.objects.filter(conversation_id=owner))[:rows])
