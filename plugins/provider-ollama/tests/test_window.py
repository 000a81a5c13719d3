"""Prompts that Ollama cut are told to the operator, once; others are not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from gm_chat_provider_ollama import OllamaProvider, window
from gm_chat_provider_ollama.window import seems_cut

from gm_chat.providers.base import Message
from gm_chat.testing.contract import collect
from gm_chat.testing.replay import ReplayServer, Reply

if TYPE_CHECKING:
    from collections.abc import Mapping


def body(characters: int, num_ctx: int = 4096) -> Mapping[str, Any]:
    messages = [{"role": "system", "content": "x" * (characters - 10)}, {"role": "user", "content": "x" * 10}]
    return {"messages": messages, **({"options": {"num_ctx": num_ctx}} if num_ctx else {})}


@pytest.mark.parametrize(
    ("characters", "num_ctx", "read", "cut"),
    [
        # What public reports measured, with prompts of about four characters a token.
        (32_000, 0, 2050, True),
        (32_000, 4096, 2051, True),
        (63_000, 4096, 2051, True),
        (159_062, 32_768, 16_386, True),
        (640_000, 65_536, 32_770, True),
        # Rows of a query have two characters a token: only the half of the window tells.
        (8_200, 4096, 2050, True),
        (8_200, 4096, 2049, True),
        (8_200, 4096, 2040, False),
        (8_200, 0, 2050, False),
        # Read whole.
        (4_000, 4096, 1_000, False),
        (4_000, 0, 1_000, False),
        (16_000, 16_384, 4_000, False),
        (6_000, 4096, 2_050, False),
        (10, 4096, 30, False),
        # Not told.
        (32_000, 4096, 0, False),
        (32_000, 4096, None, False),
        (32_000, 4096, "2050", False),
    ],
)
def test_what_seems_cut(characters: int, num_ctx: int, read: Any, cut: bool) -> None:
    assert seems_cut(body(characters, num_ctx), {"done": True, "prompt_eval_count": read}) is cut


async def test_the_operator_is_told_once_for_each_configuration(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window, "_warned", set())
    done = {"message": {"content": "Hi"}, "done": True, "prompt_eval_count": 2051, "eval_count": 1}
    messages = [Message("user", "x" * 32_000)]
    async with ReplayServer() as server:
        server.reply("/api/chat", Reply(json.dumps(done).encode() + b"\n", content_type="application/x-ndjson"))
        for config in ({}, {}, {"num_ctx": 0}, {"num_ctx": 0}):
            await collect(OllamaProvider.from_config({"base_url": server.url, **config}), messages)
    assert [request.json().get("options") for request in server.requests] == [{"num_ctx": 16_384}] * 2 + [None] * 2
    first, second = (record.getMessage() for record in caplog.records if record.name == "gm_chat.providers.ollama")
    assert "read 2051 tokens of a conversation of 32000 characters" in first
    assert "provider_config['num_ctx'] (now 16384)" in first
    assert "(now the server's own)" in second
