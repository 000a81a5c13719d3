"""The keys of ``provider_config`` that this provider reads, with their defaults."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from gm_chat.providers.base import CheckWarning
from gm_chat.providers.configuration import ProviderConfig, check_count, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["OWN_SERVER", "AnthropicConfig"]

OWN_SERVER: Final = "ANTHROPIC_BASE_URL"
"""The SDK's variable for the address."""

RETIRED: Final = "claude-3-5-haiku-latest"
"""The specification's default, which Anthropic has retired since."""

MAX_TOKENS: Final = 1024
MIN_THINKING: Final = 1024
"""The API refuses a smaller budget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnthropicConfig(ProviderConfig):
    """Validated configuration. (Specification: "Provider adapters".)

    ``max_tokens``: the most that one answer may take, thinking included. ``thinking_budget``: tokens for thinking, or
    "adaptive", by which the newer models decide themselves; ``None`` leaves it to the model.
    ``temperature``: the API has had none since its version 2026-10-21, so a request that sets it asks for the version
    before.
    """

    max_temperature: ClassVar[float] = 1.0
    example_url: ClassVar[str] = "http://127.0.0.1:8080"

    model: str = RETIRED
    max_tokens: int = MAX_TOKENS
    thinking_budget: int | Literal["adaptive"] | None = None

    @classmethod
    def check_base_url(cls, url: object) -> None:
        """Raise ``ValueError`` for no address, and for one with the ``/v1`` that the SDK appends itself."""
        # Named, since slots=True makes a second class of this one, which a bare super() does not know.
        super(AnthropicConfig, cls).check_base_url(url)
        if str(url).rstrip("/").endswith("/v1"):
            raise ValueError(
                "provider_config['base_url'] ends with /v1, which is appended to it: leave that out, as in "
                f"{cls.example_url!r}"
            )

    def retired_model(self) -> list[CheckWarning]:
        """Return a warning if Anthropic itself is asked for the default model; servers of one's own may call one so."""
        if self.model != RETIRED or self.base_url or os.environ.get(OWN_SERVER):
            return []
        return [
            CheckWarning(
                id="gm_chat.W013",
                message=f"Anthropic has retired the model {RETIRED!r}, which is the default.",
                hint='Name another one: "provider_config": {"model": "claude-haiku-4-5"}',
            )
        ]

    @classmethod
    def check(cls, given: Mapping[str, Any]) -> None:
        """Check ``max_tokens`` and ``thinking_budget``, and that the latter leaves room for an answer."""
        check_count(given, "max_tokens", of="tokens")
        budget = given.get("thinking_budget")
        if budget is None:
            return
        if "temperature" in given:
            raise ValueError("provider_config has 'thinking_budget' and 'temperature': a model that thinks takes none")
        if budget == "adaptive":
            return
        if isinstance(budget, bool) or not isinstance(budget, int) or budget < MIN_THINKING:
            raise ValueError(
                f"provider_config['thinking_budget'] is {shown(budget)}: expected 'adaptive' or a whole number of "
                f"tokens, {MIN_THINKING} or more"
            )
        limit = given.get("max_tokens", MAX_TOKENS)
        if budget >= limit:
            raise ValueError(
                f"provider_config['thinking_budget'] is {budget}, 'max_tokens' is {limit}: thinking counts towards "
                "'max_tokens', which must be larger"
            )
