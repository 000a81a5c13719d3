"""Words, numbers and names."""

from __future__ import annotations

import pytest
from gm_chat_provider_offline.words import canonical, day, name_words, number, plural, spellings, stem, tokens
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("Parts", "part"),
        ("alloys", "alloy"),
        ("assemblies", "assembly"),
        ("branches", "branch"),
        ("boxes", "box"),
        ("glass", "glass"),
        ("status", "status"),
        ("aluminium", "aluminum"),
        ("Aluminum", "aluminum"),
        ("colours", "color"),
        ("is", "is"),
    ],
)
def test_stem(word: str, expected: str) -> None:
    assert stem(word) == expected


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("lead_time_days", ("lead", "time", "days")),
        ("BOMLine", ("BOM", "Line")),
        ("OrderLineManager", ("Order", "Line", "Manager")),
        ("größe", ("größe",)),
    ],
)
def test_name_words(name: str, words: tuple[str, ...]) -> None:
    assert "".join(name_words(name)) == "".join(words)


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("five", 5),
        ("12", 12),
        ("1,200", 1200),
        ("-3.5", -3.5),
        ("5kg", 5),
        ("€20", 20),
        ("M8", None),
        ("1.4301x", 1.4301),
        ("six6", None),
        ("12,5", None),
    ],
)
def test_number(word: str, value: float | None) -> None:
    assert number(word) == value


@pytest.mark.parametrize(("word", "value"), [("2026-03-01", "2026-03-01"), ("2026-13-01", None), ("20260301", None)])
def test_day(word: str, value: str | None) -> None:
    assert day(word) == value


def test_spellings_are_the_typed_one_first() -> None:
    assert spellings("Grey harbour") == ("Grey harbour", "Grey harbor", "gray harbour", "gray harbor")
    assert spellings("aluminum 6061") == ("aluminum 6061", "aluminium 6061")
    assert spellings("steel") == ("steel",)
    assert len(spellings("grey colour fibre centre tyre")) == 4
    assert canonical("Grey  Harbour") == canonical("gray harbor")


def test_tokens_keep_what_stands_inside_words() -> None:
    found = tokens('What is "Maps of Spain", BRG-10/2.5 or Acme\'s (M8x20)?')
    assert [token.text for token in found] == ["What", "is", "Maps of Spain", "BRG-10/2.5", "or", "Acme", "M8x20"]
    assert [token.quoted for token in found] == [False, False, True, False, False, False, False]


@pytest.mark.parametrize(
    ("noun", "count", "expected"),
    [
        ("part", 2, "parts"),
        ("part", 1, "part"),
        ("part", 0, "parts"),
        ("assembly", 3, "assemblies"),
        ("order line", 2, "order lines"),
        ("box", 2, "boxes"),
        ("day", 2, "days"),
        ("goods", 2, "goods"),
    ],
)
def test_plural(noun: str, count: int, expected: str) -> None:
    assert plural(noun, count) == expected


@given(st.text())
def test_any_text_gives_words(text: str) -> None:
    found = tokens(text)
    assert len(found) <= 60
    assert all(token.text for token in found)
