"""Texts of models and records, made harmless for where they are shown."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["markup_text", "printable"]

_CONTROLS: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u200b-\u200f\u202a-\u202e\u2066-\u2069]")
"""What could move a terminal's cursor, or turn the text around."""

_NO_XML: Final = re.compile(
    "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069]"
)
"""What XML 1.0 does not admit or advises against, and what turns text around."""


def printable(text: str) -> str:
    """For a line on a terminal."""
    return _CONTROLS.sub(" ", text)


def markup_text(text: str) -> str:
    """For XML or HTML, still to be escaped: each such character becomes U+FFFD."""
    return _NO_XML.sub("\ufffd", text)
