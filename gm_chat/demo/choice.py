"""Which provider answers: decided from the command line, the surroundings and what is installed, and said in words."""

from __future__ import annotations

import json
import urllib.request
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

__all__ = ["OLLAMA", "Choice", "choose", "installed_plugins", "ollama_model"]

OLLAMA: Final = "http://127.0.0.1:11434"
PROBE_SECONDS: Final = 0.5
OWN_MACHINE_SECONDS: Final = 300
"""A model on the own machine may read the prompt for minutes before its first word."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A provider's name, its configuration, and why it was taken. ``notes`` are worth telling the user."""

    provider: str
    config: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""
    notes: tuple[str, ...] = ()

    @property
    def has_model(self) -> bool:
        """Whether a language model answers."""
        return self.provider != "offline"


def choose(
    requested: str,
    *,
    base_url: str | None = None,
    model: str | None = None,
    environment: Mapping[str, str],
    plugins: Collection[str],
    find_ollama_model: Callable[[], str | None],
) -> Choice:
    """Decide. ``auto`` takes a reachable Ollama with a model, else a configured key, else ``offline``.

    ``find_ollama_model`` is asked only when it matters; ``plugins`` are the names of the installed ones.
    """
    if requested == "offline":
        note = ("--base-url and --model mean nothing to the offline provider",) if base_url or model else ()
        return Choice("offline", {}, "as asked for", note)
    if requested == "ollama" and model is None and base_url is None:
        model = find_ollama_model()
    if requested != "auto":
        return Choice(requested, _config(requested, base_url, model), "as asked for")
    if base_url is not None:
        return Choice("openai", _config("openai", base_url, model), "an OpenAI-compatible --base-url")
    notes: list[str] = []
    if (found := find_ollama_model()) is not None:
        if "ollama" in plugins:
            config = _config("ollama", None, model or found)
            return Choice("ollama", config, "Ollama runs on this machine")
        notes.append("Ollama runs on this machine; to use it: pip install 'gm-chat[chat-ollama]'")
    if environment.get("OPENAI_API_KEY"):
        if "openai" in plugins:
            return Choice("openai", _config("openai", None, model), "OPENAI_API_KEY is set", tuple(notes))
        notes.append("OPENAI_API_KEY is set; to use it: pip install 'gm-chat[chat-openai]'")
    return Choice("offline", {}, "no Ollama with a tool-capable model and no OPENAI_API_KEY found", tuple(notes))


def _config(provider: str, base_url: str | None, model: str | None) -> dict[str, Any]:
    config: dict[str, Any] = {}
    if model is not None:
        config["model"] = model
    if base_url is not None:
        config["base_url"] = base_url
    if base_url is not None and provider == "openai":
        config["temperature"] = 0  # most likely a small model: it must call tools, not be inventive
    if base_url is not None or provider == "ollama":
        config["timeout_seconds"] = OWN_MACHINE_SECONDS
        config["stream_timeout_seconds"] = OWN_MACHINE_SECONDS
    return config


def installed_plugins() -> set[str]:
    """Name the plugins that the installed distributions announce, without importing any."""
    return {entry.name for entry in entry_points(group="gm_chat")}


def ollama_model(base_url: str = OLLAMA) -> str | None:
    """Return the first model of a local Ollama that can call tools; ``None`` if it is not there or has none."""
    listing = _get_json(f"{base_url}/api/tags")
    models = listing.get("models") if isinstance(listing, dict) else None
    for entry in models if isinstance(models, list) else []:
        name = entry.get("name") if isinstance(entry, dict) else None
        if isinstance(name, str):
            shown = _get_json(f"{base_url}/api/show", {"model": name})
            if isinstance(shown, dict) and "tools" in (shown.get("capabilities") or ()):
                return name
    return None


def _get_json(url: str, body: Mapping[str, Any] | None = None) -> Any:
    """GET, or POST a body; ``None`` for whatever goes wrong, because a probe only asks whether all is well."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, headers={"Content-Type": "application/json"})  # noqa: S310 - http
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=PROBE_SECONDS) as response:
            return json.load(response)
    except (OSError, ValueError):
        return None
