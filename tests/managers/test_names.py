import pytest
from hypothesis import given
from hypothesis import strategies as st

from gm_chat.managers.names import did_you_mean, graphql_name, is_secret_name, split_words, stem_of_manager


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


@given(st.text())
def test_splitting_keeps_every_letter_and_digit(text: str) -> None:
    words = split_words(text)
    assert all(words)
    assert all(part.isalnum() or not part.isascii() for part in words)
    ascii_kept = "".join(character for character in text if character.isascii() and character.isalnum()).lower()
    assert "".join(character for character in "".join(words) if character.isascii()).startswith(ascii_kept[:1])


@pytest.mark.parametrize("name", ["password", "api_token", "client_secret", "apiKey", "API-KEY", "key", "smtp_passwd"])
def test_a_whole_word_makes_a_secret(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["monkey", "tokenizer", "keyword", "input_tokens", "secretary", "passage", "turkey"])
def test_a_part_of_a_word_makes_no_secret(name: str) -> None:
    assert not is_secret_name(name)


def test_names_of_mutations_are_made_of_the_stem() -> None:
    assert stem_of_manager("PartManager") == "Part"
    assert stem_of_manager("Parts") == "Parts"
    assert stem_of_manager("Manager") == "Manager"


def test_names_that_graphql_does_not_know_are_spelt_in_ascii() -> None:
    assert graphql_name("unit_price") == "unit_price"
    assert graphql_name("größe") == "gru00f6u00dfe".replace("u00f6", "uf6").replace("u00df", "udf")
    assert graphql_name("3d") == "_3d"


def test_the_nearest_name_comes_first() -> None:
    assert did_you_mean("pric", ["name", "price"]) == "did you mean 'price'? known: name, price"
    assert did_you_mean("zzz", ["name"]) == "known: name"
    assert did_you_mean("x", []) == "there is none to choose from"
    assert did_you_mean("x", [f"field{number:02}" for number in range(40)]).endswith("field29 and 10 more")
