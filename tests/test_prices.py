"""What usage costs: exact, by the nearest name, and unknown where a part of it is."""

from decimal import Decimal
from typing import Any

import pytest

from gm_chat.persistence.ledger import Used
from gm_chat.prices import cost_of, price_of
from gm_chat.settings import ChatConfigurationError, build_settings
from gm_chat.settings.environment import read_environment
from gm_chat.settings.sources import Source

PRICES = {
    "openai/small": {"input": "0.40", "cached": "0.10", "output": "1.60"},
    "large": {"input": 3, "output": 15},
    "ollama": {"input": 0, "output": 0.0},
}


def prices(given: Any = PRICES) -> Any:
    return build_settings([Source("GM_CHAT", {"prices": given})]).prices


@pytest.mark.parametrize(
    ("model", "output"),
    [
        ("openai/small", "1.60"),
        ("anthropic/large", "15"),
        ("ollama/any", "0"),
        ("ollama", "0"),
        ("openai/other", None),
        ("openai", None),
    ],
)
def test_the_nearest_name_counts(model: str, output: str | None) -> None:
    found = price_of(model, prices())
    assert (None if found is None else found.output) == (None if output is None else Decimal(output))


@pytest.mark.parametrize(
    ("model", "used", "cost"),
    [
        ("openai/small", Used(1, 0, 1_000_000, 0, 1_000_000), "2.00"),
        ("openai/small", Used(1, 0, 1_000_000, 600_000, 0), "0.22"),
        ("x/large", Used(2, 0, 10, 10, 1), "0.000045"),
        ("openai/small", Used(2, 1, 5, 0, 0), "0.000002"),
        ("openai/small", Used(1, 1), None),
        ("nobody/knows", Used(1, 0, 5, 0, 5), None),
        ("ollama/any", Used(1, 0, 5, 0, 5), "0"),
        ("openai/small", Used(1, 0, 10, 20, 0), "0.000002"),
    ],
)
def test_costs_are_exact(model: str, used: Used, cost: str | None) -> None:
    found = cost_of(model, used, prices())
    assert found == (None if cost is None else Decimal(cost))


@pytest.mark.parametrize(
    "price",
    [
        {"input": "1"},
        {"input": "cheap", "output": "1"},
        {"input": "-1", "output": "1"},
        {"input": "NaN", "output": "1"},
        {"input": "Infinity", "output": "1"},
        {"input": True, "output": "1"},
        {"input": "1", "output": "1", "cache": "1"},
        "1",
    ],
)
def test_a_price_that_is_none_is_named(price: Any) -> None:
    with pytest.raises(ChatConfigurationError, match="prices"):
        prices({"m": price})


def test_a_float_is_the_number_that_was_written() -> None:
    assert prices({"m": {"input": 0.1, "output": 0.15}})["m"].input == Decimal("0.1")


def test_the_environment_has_prices_too(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as environment:
        environment.setenv("GM_CHAT_PRICES", '{"openai/small": {"input": "1", "output": "2"}}')
        assert prices(read_environment().values["prices"])["openai/small"].output == 2
    monkeypatch.setenv("GM_CHAT_PRICES__MISTRAL__INPUT", "1.5")
    monkeypatch.setenv("GM_CHAT_PRICES__MISTRAL__OUTPUT", "2")
    assert prices(read_environment().values["prices"])["mistral"].input == Decimal("1.5")
