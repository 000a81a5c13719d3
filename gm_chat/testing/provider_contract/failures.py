"""What an adapter makes of a server that refuses, is silent or not there."""
# ruff: noqa: S101 - these are tests, although they ship: assert is how pytest explains a failure

from __future__ import annotations

import pytest

from gm_chat.providers.base import (
    ProviderAuthenticationError,
    ProviderError,
    ProviderOverloadedError,
    ProviderQuotaError,
    ProviderTimeoutError,
)
from gm_chat.testing.provider_contract.base import ContractBase, outcome
from gm_chat.testing.replay import Reply

__all__ = ["FailureContract"]


class FailureContract(ContractBase):
    """Nothing but a ProviderError comes out, of the kind that tells the host what to do about it."""

    @pytest.mark.asyncio
    @pytest.mark.parametrize(
        ("status", "kind"),
        [
            (400, ProviderError),
            (401, ProviderAuthenticationError),
            (403, ProviderAuthenticationError),
            (404, ProviderError),
            (429, ProviderQuotaError),
            (500, ProviderError),
            (503, ProviderOverloadedError),
        ],
    )
    async def test_an_error_status_has_its_error(self, status: int, kind: type[ProviderError]) -> None:
        """One request, one error of the right kind: retrying is the host's business."""
        reply = Reply(self.error_body, status=status, content_type="application/json", headers={"retry-after": "17"})
        async with self.serving(reply) as (server, provider):
            _, error = await outcome(provider)
        assert type(error) is kind
        assert error.retry_after == 17.0
        assert len(server.requests) == 1

    @pytest.mark.asyncio
    async def test_an_error_page_is_an_error(self) -> None:
        """A proxy's error page is shortened, not parsed."""
        reply = Reply(b"<html>" + b"x" * 100_000, status=502, content_type="text/html")
        async with self.serving(reply) as (_, provider):
            _, error = await outcome(provider)
        assert type(error) is ProviderError
        assert len(str(error)) < 1000

    @pytest.mark.asyncio
    async def test_no_server_is_an_error(self) -> None:
        """An address that nothing listens on gives a ProviderError, not the SDK's own."""
        async with self.serving() as (_, provider):
            pass
        _, error = await outcome(provider)
        assert type(error) is ProviderError

    @pytest.mark.asyncio
    @pytest.mark.parametrize("where", ["at the start", "in the middle"])
    async def test_a_silent_server_times_out(self, where: str) -> None:
        """``timeout_seconds`` reaches the SDK."""
        stall_at = 0 if where == "at the start" else self.end_of(self.text)
        async with self.serving(self.replying(self.text, stall_at=stall_at), timeout_seconds=0.2) as (_, provider):
            _, error = await outcome(provider)
        assert isinstance(error, ProviderTimeoutError)
