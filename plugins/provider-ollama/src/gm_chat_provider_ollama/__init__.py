"""Models that Ollama serves, for gm-chat.

Importing this package imports no SDK: only the first request (or a configuration check) does.
"""

from gm_chat_provider_ollama.provider import OllamaProvider

__all__ = ["OllamaProvider"]
