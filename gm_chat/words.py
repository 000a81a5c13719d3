"""Words as people and programs write them: the one way to split any text, whether a name, a question or a catalog."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

__all__ = ["STOP_WORDS", "singular", "split_words", "telling_words"]

_ASCII_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


def split_words(text: str) -> list[str]:
    """Split any text into lower-case words: ``BOMLine`` -> bom, line; ``unit_price2`` -> unit, price, 2."""
    if text.isascii():  # the same, two to three times as fast: all names are split at every start
        return [word.lower() for word in _ASCII_WORDS.findall(text)]
    words: list[str] = []
    word, before = "", ""
    for character in unicodedata.normalize("NFC", text):
        kind = _kind(character)
        if kind != before and word and not (before == "upper" and kind == "lower"):
            words.append(word)
            word = ""
        elif before == "upper" and kind == "lower" and len(word) > 1:
            words.append(word[:-1])  # an acronym: the last capital of BOMLi... begins the next word
            word = word[-1]
        word += character if kind else ""
        before = kind
    if word:
        words.append(word)
    return [part.lower() for part in words]


def _kind(character: str) -> str:
    if character.isupper():
        return "upper"
    if character.isalpha():
        return "lower"
    return "digit" if character.isdecimal() else ""


def singular(word: str) -> str:
    """Take off an English plural, lightly: ``parts``, ``companies``, ``boxes``; ``status`` and ``glass`` stay."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("sses", "xes", "ches", "shes", "zes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def telling_words(text: str) -> list[str]:
    """The words of a text that say what it is about, each once and in the singular."""
    return list(dict.fromkeys(singular(word) for word in split_words(text) if word not in STOP_WORDS))


STOP_WORDS: Final = frozenset(
    split_words("""
    a about all am an and any are as at be been being but by can could did do does each every find for from get give
    had has have how i if in into is it its list many may me much my of on only or our please shall should show so
    some tell than that the their them then there these they this those to us was we were what when where which who
    whose why will with would you your
    """)
)
"""English words that stand in questions about anything."""
