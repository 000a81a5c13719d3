"""What an adapter sends."""
# ruff: noqa: S101 - these are tests, although they ship: assert is how pytest explains a failure

from __future__ import annotations

import pytest

from gm_chat.testing.histories import HISTORIES, TOOLS
from gm_chat.testing.provider_contract.base import ContractBase, collect

__all__ = ["RequestContract"]


class RequestContract(ContractBase):
    """Whatever a conversation holds, the service is sent what it accepts."""

    @pytest.mark.asyncio
    @pytest.mark.parametrize("name", HISTORIES)
    async def test_a_history_becomes_a_valid_request(self, name: str) -> None:
        """Each prefix of each history that holds a question converts to what the SDK's types allow."""
        history = HISTORIES[name]
        async with self.serving(self.replying(self.text)) as (server, provider):
            for length in range(1, len(history) + 1):
                if any(message.role == "user" for message in history[:length]):
                    await collect(provider, history[:length], TOOLS)
        assert server.requests
        for request in server.requests:
            self.check_request(request.json())

    @pytest.mark.asyncio
    async def test_without_tools_there_is_no_tools_key(self) -> None:
        """An empty list of tools is refused by some services."""
        async with self.serving(self.replying(self.text)) as (server, provider):
            await collect(provider)
            await collect(provider, tools=TOOLS)
        without, with_tools = (request.json() for request in server.requests)
        assert "tools" not in without
        assert "tools" in with_tools
