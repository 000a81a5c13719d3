"""What servers of language models have sent in the field, format by format: bytes, and what they must be taken for.

A provider's tests name their format (:attr:`gm_chat.testing.ProviderContract.wire_format`) and get all its cases.
:data:`KINDS` says in words what goes wrong; a case is named after its kind.
"""

from __future__ import annotations

import difflib
import importlib
from typing import TYPE_CHECKING, Final

from gm_chat.testing.wire_cases.base import WireCase
from gm_chat.testing.wire_cases.kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["FORMATS", "KINDS", "WireCase", "wire_cases"]

FORMATS: Final[Mapping[str, str]] = {
    "openai-sse": "openai",
    "anthropic-sse": "anthropic",
    "gemini-sse": "gemini",
    "ollama-ndjson": "ollama",
}
"""The names of the formats, and the modules that hold their cases."""


def wire_cases(wire_format: str) -> Sequence[WireCase]:
    """Return the cases of a format; raise ``ValueError`` if there is none of that name."""
    if wire_format not in FORMATS:
        close = difflib.get_close_matches(wire_format, FORMATS, n=1)
        raise ValueError(
            f"there is no wire format {wire_format!r}: "
            + (f"did you mean {close[0]!r}?" if close else f"there are {', '.join(FORMATS)}")
        )
    cases: Sequence[WireCase] = importlib.import_module(f"{__name__}.{FORMATS[wire_format]}").CASES
    return cases
