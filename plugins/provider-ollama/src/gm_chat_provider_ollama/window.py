"""Noticing that Ollama has cut a prompt, of which it says nothing itself.

A prompt that exceeds the context window is cut from the front, where the tools and the instructions are, and answered
with status 200. The one trace of it is the number of tokens that were read: too few for so long a text, or just what
is left when the server throws away all but half of its window.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from gm_chat.providers.wire import count_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gm_chat_provider_ollama.config import OllamaConfig

__all__ = ["MAX_CHARACTERS_PER_TOKEN", "seems_cut", "warn_if_cut"]

logger = logging.getLogger("gm_chat.providers.ollama")

MAX_CHARACTERS_PER_TOKEN: Final = 6
"""More than the tokens of any text hold on average. Measured: prose 4.1, source code 4.6, rows of a query 2."""

_SLACK: Final = 8
"""Tokens that the server keeps in addition to half of its window: 2 or 3 were seen."""

_warned: set[OllamaConfig] = set()


def seems_cut(body: Mapping[str, Any], last: Mapping[str, Any]) -> bool:
    """Whether the stream's ``last`` object tells that the request ``body`` was not read whole."""
    read = count_of(last.get("prompt_eval_count"))
    if not read:  # left out by servers that had the prompt in their cache
        return False
    sent = sum(len(message["content"]) for message in body["messages"])
    window = body.get("options", {}).get("num_ctx", 0)
    is_half = window > 0 and 0 <= read - window // 2 <= _SLACK
    return sent > MAX_CHARACTERS_PER_TOKEN * read or (is_half and 2 * sent > MAX_CHARACTERS_PER_TOKEN * read)


def warn_if_cut(config: OllamaConfig, body: Mapping[str, Any], last: Mapping[str, Any]) -> None:
    """Tell the operator, once for each configuration: it is that which is to be mended."""
    if config in _warned or not seems_cut(body, last):
        return
    _warned.add(config)
    logger.warning(
        "Ollama seems to have cut a prompt silently: it read %s tokens of a conversation of %d characters. The model "
        "%r may not have seen its tools and instructions. Raise provider_config['num_ctx'] (now %s), or lower the chat "
        "settings max_recent_messages and max_results.",
        last.get("prompt_eval_count"),
        sum(len(message["content"]) for message in body["messages"]),
        config.model,
        config.num_ctx or "the server's own",
    )
