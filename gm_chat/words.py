"""Words as people and programs write them: the one way to split any text, whether a name, a question or a catalog."""

from __future__ import annotations

import unicodedata

__all__ = ["split_words"]


def split_words(text: str) -> list[str]:
    """Split any text into lower-case words: ``BOMLine`` -> bom, line; ``unit_price2`` -> unit, price, 2."""
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
