"""What every request must be, whatever the history; and no keys from outside."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pytest
from anthropic.types.message_create_params import MessageCreateParamsStreaming
from pydantic import TypeAdapter

if TYPE_CHECKING:
    from pathlib import Path

BODY: TypeAdapter[Any] = TypeAdapter(MessageCreateParamsStreaming)
ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@pytest.fixture(scope="session")
def no_profiles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(autouse=True)
def _no_keys_from_outside(monkeypatch: pytest.MonkeyPatch, no_profiles: Path) -> None:
    for name in [name for name in os.environ if name.startswith("ANTHROPIC_")]:
        monkeypatch.delenv(name)
    for name in ("HOME", "XDG_CONFIG_HOME", "APPDATA"):  # where the SDK looks for profiles
        monkeypatch.setenv(name, str(no_profiles))


@pytest.fixture(scope="session")
def check_body() -> Callable[[Mapping[str, Any]], None]:
    """Fails for a body that the SDK's types or the API's rules do not allow."""
    return _check_body


def plain(value: Any) -> Any:
    """The SDK types arrays as iterables, which pydantic validates only while they are read."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, Iterable) and not isinstance(value, str) else value


def _check_body(body: Mapping[str, Any]) -> None:
    # Pydantic drops keys that a TypedDict lacks: equal means that nothing was foreign.
    assert plain(BODY.validate_python(body)) == plain(body)
    messages = body["messages"]
    assert [message["role"] for message in messages] == (["user", "assistant"] * len(messages))[: len(messages)]
    assert messages[-1]["role"] == "user"
    assert len(marked(body)) <= 4
    seen: set[str] = set()
    waiting: list[str] = []
    for message in messages:
        blocks = message["content"]
        assert blocks
        kinds = [block["type"] for block in blocks]
        answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        assert answered == waiting, "each call is answered in the next message, in order"
        assert kinds[: len(answered)] == ["tool_result"] * len(answered), "and before anything else"
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
        for block in blocks:
            check_block(block)
        assert seen.isdisjoint(waiting)
        assert len(set(waiting)) == len(waiting)
        seen.update(waiting)
    assert not waiting
    if seen:
        assert body["tools"], "calls need declared tools"


def check_block(block: Mapping[str, Any]) -> None:
    match block["type"]:
        case "text":
            assert block["text"].strip()
        case "tool_result":
            assert block["content"].strip()
        case "tool_use":
            assert ID.fullmatch(block["id"])
            assert NAME.fullmatch(block["name"])
        case "thinking" | "redacted_thinking":
            assert "cache_control" not in block
        case kind:
            raise AssertionError(f"a block of type {kind}")


def marked(value: Any) -> list[Any]:
    """Return all that carries a cache mark."""
    if isinstance(value, Mapping):
        inner = [item for part in value.values() for item in marked(part)]
        return [value, *inner] if "cache_control" in value else inner
    return [item for part in value for item in marked(part)] if isinstance(value, list) else []
