"""Google's Gemini models for gm-chat.

Importing this package imports no SDK: only the first request (or a configuration check) does.
"""

from gm_chat_provider_google.provider import GeminiProvider, GoogleProvider

__all__ = ["GeminiProvider", "GoogleProvider"]
