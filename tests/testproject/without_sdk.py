"""Run in a process of its own: ``python -m testproject.without_sdk hide openai`` or ``break openai``.

Hides a vendor's SDK as if it was not installed, or puts one that raises in its place, and prints as JSON, for the
provider of that name what ``manage.py check`` finds, for the others also what they answer.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

SDKS: Final = {"openai": "openai", "ollama": "ollama", "anthropic": "anthropic", "google": "google.genai"}
SPEAKS: Final = {
    # the provider's class, the format and path of its service, what its base_url is below the server's address
    "openai": ("OpenAIProvider", "openai-sse", "/v1/chat/completions", "/v1"),
    "ollama": ("OllamaProvider", "ollama-ndjson", "/api/chat", ""),
    "anthropic": ("AnthropicProvider", "anthropic-sse", "/v1/messages", ""),
    "google": ("GeminiProvider", "gemini-sse", "/v1/models/gemini-2.5-flash:streamGenerateContent", ""),
}


class Hidden:
    """A finder of modules that does not find one package."""

    def __init__(self, finder: Any, package: str) -> None:
        self._finder, self._package = finder, package

    def __getattr__(self, name: str) -> Any:
        return getattr(self._finder, name)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Find another module than the hidden ones."""
        if f"{name}.".startswith(f"{self._package}."):
            return None
        spec: ModuleSpec | None = self._finder.find_spec(name, path, target)
        return spec


def hide(package: str) -> None:
    sys.meta_path[:] = [Hidden(finder, package) for finder in sys.meta_path]


def break_(package: str) -> None:
    folder = Path(tempfile.mkdtemp())
    module = folder.joinpath(*package.split("."), "__init__.py")
    module.parent.mkdir(parents=True)
    module.write_text("raise RuntimeError('it was built for another libc')\n")
    sys.path.insert(0, str(folder))


def findings(provider: str) -> list[list[str]]:
    """What the checks say of a provider: pairs of an id with its message and hint."""
    from django.test import override_settings

    from gm_chat import checks

    config = {} if provider == "ollama" else {"api_key": "test"}
    with override_settings(GM_CHAT={"enabled": True, "provider": provider, "provider_config": config}):
        found = checks.check_chat()
    return [[str(item.id), f"{item.msg}\n{item.hint}"] for item in found if str(item.id) in ERRORS]


ERRORS: Final = {f"gm_chat.E{number:03}" for number in (2, 3, 4, 10)}


async def answer(provider: str) -> str:
    """The text of one stream."""
    from gm_chat.providers.base import TextChunkEvent
    from gm_chat.testing.contract import collect
    from gm_chat.testing.replay import ReplayServer, Reply
    from gm_chat.testing.wire_cases import wire_cases

    class_name, wire_format, path, below = SPEAKS[provider]
    adapter = getattr(importlib.import_module("gm_chat.providers"), class_name)
    (case,) = (case for case in wire_cases(wire_format) if case.name == "usage-details")
    async with ReplayServer() as server:
        server.reply(path, Reply(case.body))
        config = {"base_url": f"{server.url}{below}", **({} if provider == "ollama" else {"api_key": "test"})}
        events = await collect(adapter.from_config(config))
    return "".join(event.content for event in events if isinstance(event, TextChunkEvent))


def main(how: str, name: str) -> None:
    import django

    {"hide": hide, "break": break_}[how](SDKS[name])
    os.environ["DJANGO_SETTINGS_MODULE"] = "testproject.settings"
    django.setup()
    told: dict[str, Any] = {"found": findings(name)}
    if how == "hide":
        others = [other for other in SDKS if other != name]
        told["others"] = {other: [findings(other), asyncio.run(answer(other))] for other in others}
    print(json.dumps(told))  # noqa: T201 - what the test reads


if __name__ == "__main__":
    main(*sys.argv[1:])
