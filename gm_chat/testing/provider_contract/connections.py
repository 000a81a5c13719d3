"""Leaving closes the connection, completing keeps it, and nothing is left behind."""
# ruff: noqa: S101 - these are tests, although they ship: assert is how pytest explains a failure

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from gm_chat.providers.base import ProviderError, TextChunkEvent
from gm_chat.testing.provider_contract.base import ContractBase, collect, outcome, stream
from gm_chat.testing.replay import Reply

__all__ = ["ConnectionContract"]


class ConnectionContract(ContractBase):
    """Whoever leaves a stream stops the provider, and the bill."""

    @pytest.mark.asyncio
    async def test_leaving_closes_the_connection(self) -> None:
        """Whoever leaves the iterator stops the provider, and the bill, at once."""
        reply = self.replying(self.text, stall_at=self.end_of(self.text))
        async with self.serving(reply) as (server, provider):
            async with aclosing(stream(provider)) as events:
                async for event in events:
                    assert isinstance(event, TextChunkEvent)
                    break
            assert await server.requests[0].closed_by_client(within=1.0) < 1.0

    @pytest.mark.asyncio
    @pytest.mark.parametrize("where", ["before the first byte", "in the middle"])
    async def test_cancelling_closes_the_connection(self, where: str) -> None:
        """So does cancelling the task that waits for the next event."""
        stall_at = 0 if where == "before the first byte" else self.end_of(self.text)
        async with self.serving(self.replying(self.text, stall_at=stall_at)) as (server, provider):
            task = asyncio.create_task(collect(provider))
            await server.wait_for_request(within=5.0)
            await asyncio.sleep(0.05)  # lets the adapter read what comes before the silence
            task.cancel()
            assert await server.requests[0].closed_by_client(within=1.0) < 1.0
            with pytest.raises(asyncio.CancelledError):
                await task

    @pytest.mark.asyncio
    async def test_connections_are_reused(self) -> None:
        """Two complete calls, by two instances, share a connection."""
        async with self.serving(self.replying(self.text)) as (server, provider):
            await collect(provider)
            await collect(self.build(server.url))
        assert [request.connection for request in server.requests] == [1, 1]

    @pytest.mark.asyncio
    async def test_a_server_that_hangs_up_is_asked_once(self) -> None:
        """On a connection opened for the request the end is the server's answer."""
        async with self.serving(Reply(hang_up=True)) as (server, provider):
            _, error = await outcome(provider)
        assert type(error) is ProviderError
        assert len(server.requests) == 1
