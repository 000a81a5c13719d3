"""Reading the recent rows of a conversation back as history."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gm_chat.engine.history import window
from gm_chat.models import ChatMessage
from gm_chat.persistence.rows import MESSAGE_COLUMNS, message_from_row
from gm_chat.persistence.summaries import SUMMARY_COLUMNS, recall, rows_to_read

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet

    from gm_chat.engine.ports import DueSummary, StoredMessage

__all__ = ["Window", "read_window"]


class Window(NamedTuple):
    """Where a conversation stands, its recent messages, oldest first, and what is known of those before them."""

    conversation_id: int
    newest_id: int
    history: Sequence[StoredMessage]
    summary: str
    due: DueSummary | None


def read_window(messages: QuerySet[ChatMessage], limit: int, *, summarize_after: int | None = None) -> Window | None:
    """Read at most ``limit`` rows of one conversation's ``messages``, in one statement; ``None`` if it has none.

    The window starts at a user's message. When the newest turn alone is longer than the window, it is returned
    whole: a cut would separate tool calls from their results. That costs two statements more. ``summarize_after`` is
    the setting; without it no summary is due.
    """
    newest_first = messages.order_by("-pk").values("pk", "conversation_id", *MESSAGE_COLUMNS, *SUMMARY_COLUMNS)
    rows = list(newest_first[: rows_to_read(limit)])
    if not rows:
        return None
    conversation_id, newest_id = rows[0]["conversation_id"], rows[0]["pk"]
    summary, due = recall(rows, messages, window=limit, summarize_after=summarize_after)
    recent = rows[:limit]
    if recent and all(row["role"] != ChatMessage.Role.USER for row in recent):
        questions = messages.filter(role=ChatMessage.Role.USER).order_by("-pk")
        last_question = questions.values_list("pk", flat=True).first()
        recent = list(newest_first.filter(pk__gte=last_question)) if last_question is not None else []
    history = tuple(window([message_from_row(row) for row in reversed(recent)], limit))
    return Window(conversation_id, newest_id, history, summary, due)
