"""What a turn has said so far, kept in step for its two readers: the provider's next round and the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from gm_chat.engine.history import addressed_to
from gm_chat.engine.messages import (
    Call,
    CallIds,
    assistant_message,
    assistant_row,
    mending,
    model_json,
    tool_message,
    tool_row,
)
from gm_chat.providers.base import Message

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gm_chat.engine.ports import StoredMessage

__all__ = ["Transcript"]

_USE_DATA: Final = (
    "Answer the question from this data, naming each row and value that it asks for, or call another tool."
)
_NEVER_ADD: Final = "Totals and averages of such rows come from aggregate."


class Transcript:
    """Grows by :meth:`write`, :meth:`end_round` and :meth:`answer`. Text of an unfinished round is never lost."""

    def __init__(self, messages: Sequence[Message], *, provider: str) -> None:
        """Begin after the prompt, the history and the user's message."""
        self._messages = list(messages)
        self._provider = provider
        self._rows: list[StoredMessage] = []
        self._ids = CallIds(call.id for message in messages for call in message.tool_calls)
        self._shown_as: dict[str, str] = {}
        self._text: list[str] = []
        self._undone: tuple[Call, Mapping[str, Any]] | None = None
        self.has_text = False

    def address(self, provider: str) -> None:
        """Go on with another provider: it sees nothing that is private to the one before, and signs what follows."""
        self._provider = provider
        self._messages = addressed_to(provider, self._messages)

    def introduce(self, text: str) -> None:
        """Put ``text`` before the user's question, in its message: many models take only one of a user's at a time.

        It is not stored: the next question has its own.
        """
        for index in reversed(range(len(self._messages))):
            if self._messages[index].role == "user":
                question = self._messages[index].content
                self._messages[index] = replace(
                    self._messages[index], content=f"<managers>\n{text}\n</managers>\n\n{question}"
                )
                return

    def recall(self, messages: Sequence[Message]) -> None:
        """Put what tells of the time before the history between the prompt and everything else."""
        self._messages[1:1] = messages

    @property
    def messages(self) -> Sequence[Message]:
        """What the provider gets next: prompt, history, and this turn's finished rounds."""
        return self._messages

    @property
    def round_text(self) -> str:
        """The text of the running round; empty if it is blank."""
        text = "".join(self._text)
        return text if text.strip() else ""

    @property
    def rows(self) -> Sequence[StoredMessage]:
        """What the store gets: this turn's messages after the user's, an unfinished round's text included."""
        text = self.round_text
        if not text:
            return list(self._rows)
        return [*self._rows, assistant_row(text, (), provider=self._provider, metadata={})]

    def write(self, fragment: str) -> None:
        """Add a fragment of the running round's text."""
        self._text.append(fragment)
        self.has_text = self.has_text or bool(fragment.strip())

    def end_round(self, calls: Sequence[Call] = (), *, metadata: Mapping[str, Any] | None = None) -> None:
        """Turn the round's text and the calls that will be answered into one message. Nothing said, no message."""
        text = self.round_text
        self._text.clear()
        if not text and not calls:
            return
        claimed = [(self._ids.claim(call), call) for call in calls]
        self._shown_as.update({call.id: id for id, call in claimed})
        self._messages.append(assistant_message(text, claimed, provider=self._provider, metadata=metadata))
        self._rows.append(assistant_row(text, calls, provider=self._provider, metadata=metadata or {}))

    def answer(self, results: Iterable[tuple[Call, Any]]) -> None:
        """Add the results of calls of the round that has just ended. Behind some stands what to do with them."""
        for call, result in results:
            message = tool_message(self._shown_as[call.id], call.name, result, key=call.id)
            if advice := self._advice(call, result):
                message = replace(message, content=f"{message.content}\n{advice}")
            self._messages.append(message)
            self._rows.append(tool_row(call, result))

    def instruct(self, text: str) -> None:
        """Tell the model something that the user never said; it is not stored."""
        self._messages.append(Message("user", text))

    def _advice(self, call: Call, result: Any) -> str:
        """What is said behind a result, where a small model looks last.

        By then the prompt is far away: it counts rows and is done, repeats a call whose error it has just read, and
        forgets the change for which it had to look up a row.
        """
        if not isinstance(result, Mapping):
            return ""
        if call.name == "mutate":
            error = result.get("error")
            look_up = error.get("look_up") if isinstance(error, Mapping) else None
            self._undone = (call, look_up) if look_up else None
        if advice := mending(call.name, result):
            return advice
        data = result.get("data")
        if not data:
            return ""
        if call.name == "query" and self._undone is not None:
            undone, look_up = self._undone
            if call.args.get("manager") == look_up["manager"]:  # another's rows have other ids
                self._undone = None
                return _taken_up(undone, data)
        return f"{_USE_DATA} {_NEVER_ADD}" if call.name == "query" and len(data) > 1 else _USE_DATA


def _taken_up(undone: Call, rows: Sequence[Any]) -> str:
    """How a refused change goes on once its row was looked up; which one of several is meant, the model must say."""
    args = dict(undone.args)
    values = {key: value for key, value in args["input"].items() if key != "id"}
    if all(values.get(key) == value for key, value in args.get("expected", {}).items()):
        args.pop("expected", None)  # what the row is to become: see gm_chat.tools.mending
    row = rows[0] if len(rows) == 1 else None
    if isinstance(row, Mapping) and "id" in row:
        args["input"] = {"id": row["id"], **values}
        return f"Now call mutate with exactly these arguments: {model_json(args)}"
    args["input"] = values
    return f"Now call mutate again, with the id of the row that is meant in input: {model_json(args)}"
