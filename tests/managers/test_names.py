import pytest

from gm_chat.managers.names import did_you_mean, graphql_name, is_secret_name, stem_of_manager


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
