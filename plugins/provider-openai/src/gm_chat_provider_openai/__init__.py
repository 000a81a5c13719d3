"""OpenAI, and every server that speaks its chat completions API, for gm-chat.

Importing this package imports no SDK: only the first request (or a configuration check) does.
"""

from gm_chat_provider_openai.provider import OpenAIProvider

__all__ = ["OpenAIProvider"]
