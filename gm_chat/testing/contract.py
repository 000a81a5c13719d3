"""What every provider adapter must do, as tests to inherit.

An adapter's author records a few streams of the real service, byte for byte, and says what they mean::

    class TestAcme(ProviderContract):
        path = "/v1/stream"
        terminal = b'"finished":true'
        text = Recording(read("text.sse"), text="Hello", usage=TokenUsage(5, 1))
        tool_call = Recording(read("tool_call.sse"), calls=[("query", {"manager": "Part"})])
        parallel_calls = Recording(read("parallel.sse"), calls=[("query", {"manager": "Part"}), ("query", {})])

        def build(self, url, **config):
            return AcmeProvider.from_config({"base_url": url, "api_key": "test", **config})

        def check_request(self, body):
            acme.types.ChatRequest.model_validate(body)

The adapter then talks, with its real SDK, to a :class:`~gm_chat.testing.replay.ReplayServer`, which replays the
recordings whole, cut, stalled and broken. A service that speaks one of the formats in
:data:`gm_chat.testing.wire_cases.FORMATS` says so, ``wire_format = "openai-sse"``, and is tested with what servers of
that format have sent in the field. The tests need pytest and pytest-asyncio.
"""

from __future__ import annotations

from gm_chat.testing.histories import HISTORIES, QUESTION, TOOLS
from gm_chat.testing.provider_contract.base import Recording, collect, outcome
from gm_chat.testing.provider_contract.connections import ConnectionContract
from gm_chat.testing.provider_contract.failures import FailureContract
from gm_chat.testing.provider_contract.leaks import LeakContract
from gm_chat.testing.provider_contract.requests import RequestContract
from gm_chat.testing.provider_contract.streams import StreamContract

__all__ = ["HISTORIES", "QUESTION", "TOOLS", "ProviderContract", "Recording", "collect", "outcome"]


class ProviderContract(StreamContract, FailureContract, ConnectionContract, RequestContract, LeakContract):
    """Inherit from it in a class ``Test...``, and set what ``ContractBase`` declares without a value."""
