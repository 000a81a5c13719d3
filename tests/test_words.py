import pytest
from hypothesis import given
from hypothesis import strategies as st

from gm_chat.words import split_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("BOMLine", ["bom", "line"]),
        ("unit_price2", ["unit", "price", "2"]),
        ("HTTPServer", ["http", "server"]),
        ("apiKey", ["api", "key"]),
        ("API-KEY", ["api", "key"]),
        ("purchase orders, please!", ["purchase", "orders", "please"]),
        ("größeÄnderung ÉTAT", ["größe", "änderung", "état"]),
        ("零件 список", ["零件", "список"]),
        ("", []),
        (" _-.\x00\ud800", []),
    ],
)
def test_any_text_is_split_into_lower_case_words(text: str, words: list[str]) -> None:
    assert split_words(text) == words


@given(st.text(st.characters(max_codepoint=127)) | st.text("aBcD1_ "))
def test_plain_letters_are_split_like_any_others(text: str) -> None:
    assert split_words(text) == split_words(f"{text}\u2014")


@given(st.text())
def test_splitting_keeps_every_letter_and_digit(text: str) -> None:
    words = split_words(text)
    assert all(words)
    assert all(part.isalnum() or not part.isascii() for part in words)
    ascii_kept = "".join(character for character in text if character.isascii() and character.isalnum()).lower()
    assert "".join(character for character in "".join(words) if character.isascii()).startswith(ascii_kept[:1])
