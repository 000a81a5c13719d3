"""What an actor may use in a window, and what a provider call is expected to use of it: pure decisions.

(Specification: "Rate limits"; contract: "Rate limit".)

A user is charged as such. An anonymous visitor is charged twice, as a session and as an address: whoever drops the
cookie gets a new session, and remains at the same address. Of a budget that several visitors of an address share,
``address_requests`` says the size: it is as many times a visitor's as that is of ``requests``.
"""

from __future__ import annotations

import hashlib
import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gm_chat.plugin.charges import Standing
    from gm_chat.plugin.context import Actor
    from gm_chat.providers.base import Message, ToolDefinition

__all__ = [
    "BYTES_PER_TOKEN",
    "REQUESTS",
    "Budget",
    "BudgetState",
    "budgets_of",
    "estimated_tokens",
    "has_budgets",
    "prefix_of",
    "tightest",
]

REQUESTS: Final = "requests"
_TOKENS: Final = ("tokens", "input_tokens", "output_tokens")

_IPV6_SITE: Final = 64
"""Bits of an IPv6 address that say whose it is: below them, one visitor has more addresses than anybody can count."""

BYTES_PER_TOKEN: Final = 4
"""On the whole, in English text and JSON."""
_CALL_TOKENS: Final = 16
"""What a call costs beside its texts, at least."""


@dataclass(frozen=True, slots=True)
class Budget:
    """A limit on what counts under ``key``. ``kind`` is the setting's name: ``requests``, ``tokens``, ..."""

    kind: str
    key: str
    limit: int

    def share(self, input_tokens: int, output_tokens: int) -> int:
        """What so many tokens take of this budget."""
        match self.kind:
            case "tokens":
                return input_tokens + output_tokens
            case "input_tokens":
                return input_tokens
            case "output_tokens":
                return output_tokens
            case _:
                return 0


@dataclass(frozen=True, slots=True)
class BudgetState:
    """A budget as its actor may know it: what is left, and in how many seconds there is more."""

    kind: str
    limit: int
    remaining: int
    reset_seconds: float


def has_budgets(settings: Any) -> bool:
    """Whether the ``rate_limit`` settings limit anything at all."""
    return any((getattr(settings, kind) or 0) > 0 for kind in (REQUESTS, *_TOKENS)) or _is_positive(
        settings.address_requests
    )


def budgets_of(actor: Actor, settings: Any) -> tuple[Budget, ...]:
    """The budgets that the actor is charged to, by the ``rate_limit`` settings. None, zero and less are no budget."""
    return tuple(
        Budget(kind, _key(kind, scope), limit)
        for scope, of_address in _scopes(actor)
        for kind in (REQUESTS, *_TOKENS)
        if (limit := _limit(kind, settings, of_address=of_address)) > 0
    )


def prefix_of(actor: Actor) -> str:
    """How the keys of the actor's own budgets begin, those of the address left out: others may be there, too."""
    scope, _ = next(_scopes(actor))
    return _key("", scope)


def _limit(kind: str, settings: Any, *, of_address: bool) -> int:
    limit: int = getattr(settings, kind) or 0
    shared = settings.address_requests
    if not of_address or shared is None:
        return limit
    if shared <= 0 or kind == REQUESTS:
        return int(shared)
    return limit * shared // settings.requests if _is_positive(settings.requests) else limit


def _is_positive(value: int | None) -> bool:
    return value is not None and value > 0


def _scopes(actor: Actor) -> Iterator[tuple[str, bool]]:
    """Who is charged, and whether that is an address."""
    if actor.user_id is not None:
        yield f"user:{actor.user_id}", False
        return
    if actor.session_key:
        yield f"session:{actor.session_key}", False
    if actor.address:
        yield f"address:{_site(actor.address)}", True
    elif not actor.session_key:
        yield "anonymous", False


def _site(address: str) -> str:
    """The address, as far as it says who is there."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is None:
            return str(ipaddress.ip_network((ip, _IPV6_SITE), strict=False))
        return str(ip.ipv4_mapped)
    return str(ip)


def _key(kind: str, scope: str) -> str:
    # A digest: session keys are secrets, and a store may be readable by others.
    digest = hashlib.sha256(scope.encode("utf-8", "surrogatepass")).hexdigest()[:40]
    return f"{scope.partition(':')[0]}:{digest}:{kind}"


def estimated_tokens(messages: Sequence[Message], tools: Sequence[ToolDefinition]) -> int:
    """About how many tokens a provider will count for what it is sent: a quarter of the bytes, on the whole."""
    size = sum(_size(message) for message in messages)
    size += sum(len(tool.name) + len(tool.description) + len(repr(tool.input_schema)) for tool in tools)
    return _CALL_TOKENS + size // BYTES_PER_TOKEN


def _size(message: Message) -> int:
    size = len(message.content.encode("utf-8", "surrogatepass"))
    if message.tool_calls:
        size += sum(len(call.name) + len(repr(call.args)) for call in message.tool_calls)
    return size


def tightest(budgets: Sequence[Budget], standings: Sequence[Standing]) -> tuple[BudgetState, ...]:
    """For each kind the state of the budget of which the least is left."""
    states: dict[str, BudgetState] = {}
    for budget, standing in zip(budgets, standings, strict=True):
        state = BudgetState(
            budget.kind, budget.limit, max(0, budget.limit - standing.used), max(0.0, standing.wait_seconds)
        )
        known = states.get(budget.kind)
        if known is None or (state.remaining, -state.reset_seconds) < (known.remaining, -known.reset_seconds):
            states[budget.kind] = state
    return tuple(states.values())
