"""Bytes and text from a client, checked: an object, a message's text, a message's id, or a refusal in clear words."""

from __future__ import annotations

import json
from typing import Any, ClassVar, Final

from gm_chat.encoding import jsonable
from gm_chat.engine.events import Error
from gm_chat.errors import PUBLIC_MESSAGES

__all__ = ["BadEvent", "BadMessage", "Unusable", "json_object", "usable_key", "usable_text"]

KEY_LENGTH: Final = 128
_LONGEST_CHARACTER: Final = 12  # bytes that JSON may take for one: a surrogate pair, written as two \u escapes
_BESIDE_THE_TEXT: Final = 4096


class Unusable(ValueError):  # noqa: N818 - named, like its subclasses, after what the client is told
    """What came is not what a client may say. The words quote nothing of it."""

    code: ClassVar[str]

    @property
    def event(self) -> Error:
        """The event that answers it."""
        return Error(self.code, str(self))


class BadMessage(Unusable):
    """It is no message."""

    code = "bad_message"


class BadEvent(Unusable):
    """It is no event that a client may send."""

    code = "bad_event"

    def __init__(self, message: str = PUBLIC_MESSAGES["bad_event"]) -> None:
        super().__init__(message)


def json_object(data: bytes | str, *, max_characters: int) -> dict[str, Any]:
    """Return the JSON object in ``data``, or raise :class:`BadMessage`. What is too long by far is not even parsed."""
    if len(data) > max_characters * _LONGEST_CHARACTER + _BESIDE_THE_TEXT:
        raise BadMessage(f"The text is longer than the {max_characters} characters that are allowed.")
    try:
        payload = json.loads(data if isinstance(data, str) else data.decode("utf-8"))
    except UnicodeDecodeError:
        raise BadMessage("The body is not valid UTF-8.") from None
    except RecursionError:
        raise BadMessage("The body is nested too deeply.") from None
    except ValueError:
        raise BadMessage('The body is not JSON. Send an object like {"text": "..."}.') from None
    if not isinstance(payload, dict):
        raise BadMessage('The body must be a JSON object like {"text": "..."}.')
    return payload


def usable_text(text: object, *, max_characters: int) -> str:
    """Return ``text`` if it is a message, or raise :class:`BadMessage`.

    NUL and lone surrogates, which no database or provider takes, become U+FFFD.
    """
    if not isinstance(text, str) or not text.strip():
        raise BadMessage(PUBLIC_MESSAGES["bad_message"])
    if len(text) > max_characters:
        raise BadMessage(f"The text is longer than the {max_characters} characters that are allowed.")
    return str(jsonable(text))


def usable_key(key: object) -> str | None:
    """Return the client's name for its message, ``None`` if it gave none, or raise :class:`BadMessage`."""
    if key is None:
        return None
    if not isinstance(key, str) or not key.strip() or len(key) > KEY_LENGTH:
        raise BadMessage(f"A message's id must be a text of 1 to {KEY_LENGTH} characters.")
    return str(jsonable(key))
