"""What an adapter adds to its vendor's SDK, per streamed chunk: ``python bench/providers.py [--quick]``.

The same bytes, from a server in a process of its own, are read by the bare SDK, as its documentation says, and by the
adapter: text events, one tool call, the usage. Once they are sent at once, once chunk by chunk, as a model sends them.
Counted is the processor time of the reading process; readers take turns, and the median of the ratios counts. Exits
with 1 when an adapter costs more than 1.25 x its SDK.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from turnbench.machine import Machine
from turnbench.report import Target, print_table, print_targets

from gm_chat.providers import AnthropicProvider, GeminiProvider, OllamaProvider, OpenAIProvider
from gm_chat.testing.contract import QUESTION, collect
from gm_chat.testing.replay import ReplayServer, Reply

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

MOST: Final = 1.25
WORD: Final = " word"
ARGUMENTS: Final = {"manager": "PartManager", "fields": ["name"]}
SHORT: Final = [{"role": "user", "content": "Which parts are there?"}]


# --- the bytes ----------------------------------------------------------------------------------------------------


def openai_chunks(count: int) -> Iterator[bytes]:
    frame = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "system_fingerprint": "f",
    }

    def chunk(delta: Any, reason: str | None = None, **further: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return event({**frame, "choices": [choice], "usage": None, **further})

    yield chunk({"role": "assistant", "content": ""})
    yield from (chunk({"content": WORD}) for _ in range(count))
    function = {"name": "query", "arguments": json.dumps(ARGUMENTS)}
    yield chunk({"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": function}]})
    yield chunk({}, "tool_calls")
    yield event({**frame, "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}})
    yield b"data: [DONE]\n\n"


def anthropic_chunks(count: int) -> Iterator[bytes]:
    def named(kind: str, **values: Any) -> bytes:
        return f"event: {kind}\n".encode() + event({"type": kind, **values})

    def block(index: int, content: Any, deltas: list[Any]) -> Iterator[bytes]:
        yield named("content_block_start", index=index, content_block=content)
        yield from (named("content_block_delta", index=index, delta=delta) for delta in deltas)
        yield named("content_block_stop", index=index)

    usage = {"input_tokens": 9, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    yield named("message_start", message={**message, "stop_reason": None, "stop_sequence": None})
    yield from block(0, {"type": "text", "text": ""}, [{"type": "text_delta", "text": WORD}] * count)
    tool = {"type": "tool_use", "id": "a", "name": "query", "input": {}}
    yield from block(1, tool, [{"type": "input_json_delta", "partial_json": json.dumps(ARGUMENTS)}])
    yield named("message_delta", delta={"stop_reason": "tool_use", "stop_sequence": None}, usage={"output_tokens": 9})
    yield named("message_stop")


def gemini_chunks(count: int) -> Iterator[bytes]:
    def chunk(*parts: Any, **candidate: Any) -> bytes:
        usage = {"promptTokenCount": 9, "candidatesTokenCount": 9, "totalTokenCount": 18}
        content = {"parts": list(parts), "role": "model"}
        frame = {"usageMetadata": usage, "modelVersion": "m", "responseId": "r"}
        return event({"candidates": [{"content": content, "index": 0, **candidate}], **frame}, b"\r\n")

    yield from (chunk({"text": WORD}) for _ in range(count))
    yield chunk({"functionCall": {"name": "query", "args": ARGUMENTS}}, finishReason="STOP")


def ollama_chunks(count: int) -> Iterator[bytes]:
    def line(content: str, message: Any = None, *, done: bool = False, **values: Any) -> bytes:
        frame = {"model": "m", "created_at": "2026-11-29T19:40:00.123456789Z"}
        value = {
            **frame,
            "message": {"role": "assistant", "content": content, **(message or {})},
            "done": done,
            **values,
        }
        return json.dumps(value, separators=(",", ":")).encode() + b"\n"

    yield from (line(WORD) for _ in range(count))
    yield line("", {"tool_calls": [{"function": {"name": "query", "arguments": ARGUMENTS}}]})
    yield line("", done=True, done_reason="stop", prompt_eval_count=9, eval_count=9)


def event(value: Any, end: bytes = b"\n") -> bytes:
    return b"data: " + json.dumps(value, separators=(",", ":")).encode() + end * 2


# --- the readers: each returns the length of the text ---------------------------------------------------------------


async def bare_openai(client: Any) -> int:
    stream = await client.chat.completions.create(model="m", messages=SHORT, stream=True)
    return sum([len(chunk.choices[0].delta.content or "") async for chunk in stream if chunk.choices])


async def bare_anthropic(client: Any) -> int:
    stream = await client.messages.create(model="m", messages=SHORT, max_tokens=9, stream=True)
    deltas = [item.delta async for item in stream if item.type == "content_block_delta"]
    return sum(len(delta.text) for delta in deltas if delta.type == "text_delta")


async def bare_google(client: Any) -> int:
    stream = await client.aio.models.generate_content_stream(model="m", contents="Which parts are there?")
    parts = [part async for chunk in stream for part in chunk.candidates[0].content.parts]
    return sum(len(part.text or "") for part in parts)


async def bare_ollama(client: Any) -> int:
    stream = await client.chat(model="m", messages=SHORT, stream=True)
    return sum([len(chunk.message.content or "") async for chunk in stream])


def clients(url: str) -> dict[str, Any]:
    import anthropic
    import ollama
    import openai
    from google import genai

    return {
        "openai": openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0),
        "anthropic": anthropic.AsyncAnthropic(base_url=url, api_key="x", max_retries=0),
        "google": genai.Client(api_key="x", http_options={"base_url": url, "api_version": "v1"}),
        "ollama": ollama.AsyncClient(host=url),
    }


BARE: Final = {"openai": bare_openai, "anthropic": bare_anthropic, "google": bare_google, "ollama": bare_ollama}
CHUNKS: Final = {
    "openai": openai_chunks,
    "anthropic": anthropic_chunks,
    "google": gemini_chunks,
    "ollama": ollama_chunks,
}
PATHS: Final = {
    "openai": "/v1/chat/completions",
    "anthropic": "/v1/messages",
    "google": "/v1/models/m:streamGenerateContent",
    "ollama": "/api/chat",
}
ADAPTERS: Final[dict[str, Any]] = {
    "openai": (OpenAIProvider, "/v1"),
    "anthropic": (AnthropicProvider, ""),
    "google": (GeminiProvider, ""),
    "ollama": (OllamaProvider, ""),
}


def adapter(name: str, url: str) -> Callable[[], Awaitable[int]]:
    provider, below = ADAPTERS[name]
    key = {} if name == "ollama" else {"api_key": "x"}

    async def read() -> int:
        events = await collect(provider.from_config({"base_url": url + below, "model": "m", **key}), QUESTION)
        return sum(len(getattr(item, "content", "")) for item in events)

    return read


# --- measuring ------------------------------------------------------------------------------------------------------


async def serve(count: int, *, piecewise: bool) -> None:
    """Say the address, and answer until the parent closes our input."""
    async with ReplayServer() as server:
        for name, path in PATHS.items():
            chunks = list(CHUNKS[name](count))
            ends = [sum(map(len, chunks[:number])) for number in range(1, len(chunks))] if piecewise else ()
            server.reply(path, Reply(b"".join(chunks), cuts=ends, content_type="text/event-stream"))
        print(server.url, flush=True)
        await asyncio.to_thread(sys.stdin.read)


@contextmanager
def serving(count: int, *, piecewise: bool) -> Iterator[str]:
    command = [sys.executable, __file__, "--serve", str(count), *(["--piecewise"] if piecewise else [])]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()


async def cost(read: Callable[[], Awaitable[int]], count: int) -> float:
    """Microseconds of processor time per chunk of one stream."""
    began = time.process_time()
    length = await read()
    spent = time.process_time() - began
    assert length == count * len(WORD), f"the text has {length} characters: expected {count * len(WORD)}"
    return spent / count * 1e6


async def measure(names: list[str], count: int, repeats: int, *, piecewise: bool) -> list[Target]:
    rows, targets = [], []
    how = "chunk by chunk" if piecewise else "at once"
    with serving(count, piecewise=piecewise) as url:
        bare_clients = clients(url)
        for name in names:
            bare, ours = (lambda name=name: BARE[name](bare_clients[name])), adapter(name, url)
            await cost(bare, count)
            await cost(ours, count)
            pairs = [(await cost(bare, count), await cost(ours, count)) for _ in range(repeats)]
            ratio = statistics.median(mine / theirs for theirs, mine in pairs)
            theirs, mine = (statistics.median(column) for column in zip(*pairs, strict=True))
            rows.append((name, theirs, mine, mine - theirs, f"{ratio:.2f} x"))
            targets.append(Target(f"{name}, {how}", ratio, MOST))
    head = (f"{count} chunks", "SDK", "adapter", "difference", "ratio")
    print_table(f"Processor time per chunk, sent {how} (microseconds)", head, rows)
    return targets


async def run(chosen: argparse.Namespace) -> bool:
    machine = Machine([])
    count, repeats = (200, 5) if chosen.quick else (1_000, 11)
    targets = [
        target
        for piecewise in (False, True)
        for target in await measure(chosen.only, count, repeats, piecewise=piecewise)
    ]
    print(f"  ({machine})")
    return print_targets(targets)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="short streams: for a look, not for a report")
    parser.add_argument("--only", nargs="+", choices=tuple(BARE), default=list(BARE), help="the providers to measure")
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--piecewise", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    os.environ["OLLAMA_API_KEY"] = ""
    if chosen.serve:
        asyncio.run(serve(chosen.serve, piecewise=chosen.piecewise))
        return 0
    return 0 if asyncio.run(run(chosen)) else 1


if __name__ == "__main__":
    sys.exit(main())
