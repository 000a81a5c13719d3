"""From the bytes of a response to the JSON objects in it. Pure: nothing here waits or knows the SDK.

The SDK's own reader takes every line for JSON that does not begin with ``data: ``, so a proxy's comment or a ``data:``
without the blank ends its stream with an error. This one reads server-sent events as their standard has them, and
beside them what Google's servers send when they give up in the middle of a stream: an error's JSON over several lines,
without any ``data:``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gm_chat.providers.base import ProviderIncompleteError, ProviderMalformedError
from gm_chat.providers.wire import value_of

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["EventDecoder"]

_OTHER_FIELDS: Final = frozenset({b"", b"event", b"id", b"retry"})
"""Of events; the name of a comment is empty."""


class EventDecoder:
    """Feed it the pieces in order, then :meth:`finish` it."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        self._bare: list[bytes] = []

    def feed(self, piece: bytes) -> Iterator[object]:
        """Take a piece and yield the values of the events that it completes."""
        # bytes.splitlines() knows the three ends of lines that the standard does, and no others.
        lines = (self._rest + piece).splitlines(keepends=True)
        # A carriage return at the end may be the first half of an end.
        self._rest = lines.pop() if lines and not lines[-1].endswith(b"\n") else b""
        for line in lines:
            yield from self._line(line.rstrip(b"\r\n"))

    def finish(self) -> Iterator[object]:
        """Yield what a last event without its blank line, or JSON without events, holds.

        Raises :class:`ProviderIncompleteError` if the stream ends in the middle of an event.
        """
        if self._rest:
            yield from self._line(self._rest.rstrip(b"\r"))
        try:
            yield from self._line(b"")
        except ProviderMalformedError as error:
            raise ProviderIncompleteError(f"the stream ended in the middle of an event: {error}") from error
        yield from self._bare_values()

    def _line(self, line: bytes) -> Iterator[object]:
        if not line:
            data = b"\n".join(self._data).strip()
            self._data.clear()
            if data and data != b"[DONE]":  # what gateways that know OpenAI's streams better close them with
                yield value_of(data)
            return
        name, _, value = line.removeprefix(b"\xef\xbb\xbf").partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
        elif name not in _OTHER_FIELDS:
            self._bare.append(line)

    def _bare_values(self) -> Iterator[object]:
        """Yield the objects of JSON without events: an error, or the array that the API sends without ``alt=sse``."""
        try:
            value = value_of(b"\n".join(self._bare))
        except ProviderMalformedError:
            return  # unknown fields, which the standard wants ignored
        yield from value if isinstance(value, list) else [value]
