"""What usage costs, by the setting ``prices``: Decimals all the way, per million tokens."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["cost_of", "price_of"]

_MILLION: Final = Decimal(1_000_000)


def price_of(model: str, prices: Mapping[str, Any]) -> Any | None:
    """The price for what a ledger calls ``openai/gpt-4.1-mini``: under that name, the model's, or the provider's."""
    provider, _, name = model.partition("/")
    return next((prices[key] for key in (model, name, provider) if key in prices), None)


def cost_of(model: str, used: Any, prices: Mapping[str, Any]) -> Decimal | None:
    """What it costs; ``None`` where the model has no price, or nothing of its usage is known."""
    price = price_of(model, prices)
    if price is None or not used.is_known:
        return None
    cached = price.input if price.cached is None else price.cached
    fresh = max(0, used.input_tokens - used.cached_tokens)
    total: Decimal = fresh * price.input + used.cached_tokens * cached + used.output_tokens * price.output
    return total / _MILLION
