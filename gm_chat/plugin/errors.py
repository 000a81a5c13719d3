"""Errors of the plugin contract, by who reads them.

::

    Exception
    ├── ToolError           the model: becomes the tool's result, so that it can mend its call
    ├── PluginError         the operator: a plugin broke the contract
    │   └── PluginConfigurationError   its settings under ``plugins: {name: ...}`` are invalid
    └── (provider errors: see gm_chat.providers.base)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


class ToolError(Exception):
    """A tool call that cannot be served, told to the model as ``{"error": {"code", "message", ...}}``.

    ``code`` is stable and machine-readable (``unknown_field``); ``message`` names the culprit and what to do;
    ``details`` adds what is allowed, e.g. ``allowed=["name", "price"]``. All of it must be fit for the actor's eyes.
    """

    def __init__(self, code: str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details: Mapping[str, Any] = details

    def as_result(self) -> dict[str, Any]:
        """The tool result that the model sees."""
        return {"error": {"code": self.code, "message": self.message, **self.details}}


class PluginError(Exception):
    """A plugin broke the contract; the message names the plugin and what it did."""


class PluginConfigurationError(PluginError):
    """A plugin's own settings are invalid; the message names the key."""
