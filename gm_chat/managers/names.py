"""Names of managers and their members: compared with known ones, judged for secrets, written for GraphQL."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Final

from gm_chat.words import split_words

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["did_you_mean", "graphql_name", "is_secret_name", "split_words", "stem_of_manager"]

_SECRET_WORDS: Final = frozenset(
    {"apikey", "credential", "credentials", "key", "passphrase", "passwd", "password", "pwd", "secret", "token"}
)
_NOT_IN_GRAPHQL: Final = re.compile(r"[^0-9A-Za-z_]")


def is_secret_name(name: str) -> bool:
    """Whether a whole word of the name speaks of a secret: ``api_key``, ``apiKey``; not ``monkey``, ``tokenizer``."""
    return not _SECRET_WORDS.isdisjoint(split_words(name))


def stem_of_manager(name: str) -> str:
    """``PartManager`` -> ``Part``: what mutation and type names are made of."""
    return name.removesuffix("Manager") or name


def graphql_name(name: str) -> str:
    """The name in GraphQL, which knows ASCII letters, digits and ``_`` only: others become their code point."""
    if name.isascii() and name.isidentifier():
        return name
    ascii_name = _NOT_IN_GRAPHQL.sub(lambda match: f"u{ord(match[0]):x}", name)
    return f"_{ascii_name}" if ascii_name[:1].isdigit() else ascii_name


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of an error message: the nearest known name if one is near, then what is known."""
    names = sorted(known)
    if not names:
        return "there is none to choose from"
    near = difflib.get_close_matches(name, names, n=1)
    question = f"did you mean {near[0]!r}? " if near else ""
    shown = ", ".join(names[:30]) + (f" and {len(names) - 30} more" if len(names) > 30 else "")
    return f"{question}known: {shown}"
