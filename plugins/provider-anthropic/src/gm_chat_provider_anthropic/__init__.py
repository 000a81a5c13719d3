"""Claude, and every server that speaks Anthropic's messages API, for gm-chat.

Importing this package imports no SDK: only the first request (or a configuration check) does.
"""

from gm_chat_provider_anthropic.provider import AnthropicProvider

__all__ = ["AnthropicProvider"]
