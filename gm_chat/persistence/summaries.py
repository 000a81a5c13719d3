"""Summaries of conversations, in their rows: whether one is due, what it is made of, and how it is kept.

A turn pays for none of this until a summary is due: what :func:`recall` needs comes with the window's rows.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from django.db.models import BigIntegerField, TextField
from django.db.models.functions import Cast, Left
from django.utils import timezone

from gm_chat.encoding import jsonable
from gm_chat.engine.messages import model_json
from gm_chat.engine.past import PastMessage, SummarySource
from gm_chat.engine.summary import STEP, is_due, kept_messages
from gm_chat.models import ChatConversation, ChatMessage
from gm_chat.persistence.prepared import Parameter, PreparedQuery
from gm_chat.persistence.threads import run_db

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.db.models import QuerySet

__all__ = ["SUMMARY_COLUMNS", "StoredSummary", "recall", "rows_to_read"]

SUMMARY_COLUMNS: Final = (
    "conversation__summary_text",
    "conversation__summarized_through_id",
    "conversation__summary_tried_through",
)
"""What the window's query reads of the conversation, beside its messages' own columns."""

MAX_MESSAGES: Final = 200
MAX_CHARACTERS: Final = 16_000
"""Bounds of what one summary is made of, beside the one before it."""

MAX_TEXT: Final = 1_500
MAX_RESULT: Final = 600
MAX_NAME: Final = 100
_ELLIPSIS: Final = "…"


@dataclass(frozen=True, slots=True)
class StoredSummary:
    """The summary that a conversation has; ``covered`` is the id of the last message in it, 0 when there is none.

    Implements ``engine.ports.DueSummary`` for the messages between ``covered`` and ``before``. ``marker`` is what the
    row held in ``covered``'s stead, usable or not; ``newest`` is the conversation's newest message.
    """

    database: str
    conversation_id: int
    text: str
    marker: int | None
    covered: int
    newest: int
    before: int

    async def read(self) -> SummarySource:
        """Note the attempt and load the messages, in one hop. A marker that is not the conversation's starts anew."""
        return await run_db(self._read)

    async def save(self, source: SummarySource, text: str) -> None:
        """Keep the text if the conversation still has the summary that it extends."""
        await run_db(partial(self._save, source.through, jsonable(text)))

    def _read(self) -> SummarySource:
        with transaction.atomic(using=self.database):
            self._conversation().update(summary_tried_through=self.newest)
            messages = ChatMessage.objects.using(self.database).filter(conversation_id=self.conversation_id)
            known = bool(self.covered) and messages.filter(pk=self.covered).exists()
            covered, text = (self.covered, self.text) if known else (0, "")
            new = messages.filter(pk__gt=covered, pk__lt=self.before).order_by("-pk")
            return _source(text, covered, list(new.values("pk", "role", **_CUT)[: MAX_MESSAGES + 1]))

    def _save(self, through: int, text: str) -> None:
        self._conversation().filter(summarized_through=self.marker).update(
            summary_text=text, summarized_through_id=through, summary_updated_at=timezone.now()
        )

    def _conversation(self) -> QuerySet[ChatConversation]:
        return ChatConversation.objects.using(self.database).filter(pk=self.conversation_id)


def _cut(column: str, length: int) -> Left:
    """The beginning of a column, cut by the database: a row of 2 MB never reaches this process."""
    return Left(Cast(column, TextField()), length + 1)


_CUT: Final = {
    "text_cut": Left("content", MAX_TEXT + 1),
    "name_cut": Left("tool_name", MAX_NAME),
    "args_cut": _cut("tool_args", MAX_RESULT),
    "result_cut": _cut("tool_result", MAX_RESULT),
}


def recall(
    rows: Sequence[Mapping[str, Any]], alias: str, *, window: int, summarize_after: int | None
) -> tuple[str, StoredSummary | None]:
    """Return the summary that goes before the window, and the same as a :class:`StoredSummary` if it is due.

    ``rows`` are the newest messages of a conversation, the newest first, with :data:`SUMMARY_COLUMNS`, as many as
    :func:`rows_to_read` says. ``summarize_after`` messages may do without a summary; ``None``: however many there are.

    A summary without the marker of what it covers does not count, nor one whose marker lies ahead of the conversation.
    """
    text, marker, tried = (rows[0][column] for column in SUMMARY_COLUMNS)
    covered = marker if text and marker and marker <= rows[0]["pk"] else 0
    text = text if covered else ""
    if summarize_after is None or not is_due(
        [row["pk"] for row in rows], window=window, covered=covered, tried=tried or 0
    ):
        return text, None
    if summarize_after > window:
        older = _message_before(summarize_after).fetch(alias, conversation_id=rows[0]["conversation_id"])
        if not older or older[0]["pk"] <= covered:
            return text, None
    return text, StoredSummary(
        database=alias,
        conversation_id=rows[0]["conversation_id"],
        text=text,
        marker=marker,
        covered=covered,
        newest=rows[0]["pk"],
        before=_first_kept(rows, kept_messages(window)),
    )


@lru_cache
def _message_before(newest: int) -> PreparedQuery:
    """The message before so many of a conversation's newest ones."""
    messages = ChatMessage.objects.filter(conversation_id=Parameter("conversation_id", BigIntegerField()))
    return PreparedQuery(messages.order_by("-pk").values("pk")[newest : newest + 1])


def rows_to_read(window: int) -> int:
    """How many rows tell a window and whether a summary is due before it."""
    return max(window + 1, STEP)


def _first_kept(rows: Sequence[Mapping[str, Any]], keep: int) -> int:
    """The id of the user's message with which the rows begin that a summary leaves out; at least one exchange."""
    questions = [index for index, row in enumerate(rows) if row["role"] == ChatMessage.Role.USER]
    fitting = [index for index in questions if index < keep] or questions[:1]
    return int(rows[fitting[-1]]["pk"] if fitting else rows[-1]["pk"])


def _source(previous: str, covered: int, rows: Sequence[Mapping[str, Any]]) -> SummarySource:
    """Take the newest of ``rows``, which are newest first, as far as the bounds allow."""
    taken: list[PastMessage] = []
    left = MAX_CHARACTERS
    for row in rows[:MAX_MESSAGES]:
        message = _past(row)
        left -= len(message.text) + len(message.tool_args)
        if left < 0:
            break
        taken.append(message)
    return SummarySource(
        previous=previous,
        messages=[message for message in reversed(taken) if message.text.strip()],
        through=rows[0]["pk"] if rows else covered,
        complete=len(taken) == len(rows),
    )


def _past(row: Mapping[str, Any]) -> PastMessage:
    if row["role"] != ChatMessage.Role.TOOL:
        return PastMessage(role=row["role"], text=_shortened(row["text_cut"], MAX_TEXT))
    return PastMessage(
        role="tool",
        text=_json_text(row["result_cut"]) or _shortened(row["text_cut"], MAX_TEXT),
        tool_name=row["name_cut"],
        tool_args=_json_text(row["args_cut"]),
    )


def _json_text(cut: str | None) -> str:
    """JSON as a model reads it best; where the database cut it, as it stands there."""
    if cut is None or len(cut) > MAX_RESULT:
        return _shortened(cut or "", MAX_RESULT)
    return model_json(json.loads(cut))


def _shortened(text: str, length: int) -> str:
    return text if len(text) <= length else text[:length] + _ELLIPSIS
