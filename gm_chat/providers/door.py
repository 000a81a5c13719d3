"""How a dotted name of the specification finds its class in a plugin, without importing it at start-up."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["plugin_attribute"]


def plugin_attribute(package: str, name: str, *, missing: type[ImportError], extra: str) -> Any:
    """Return ``name`` of the plugin ``package``; raise ``missing`` with the line to type if it is not installed.

    Only the plugin's own absence is translated: an import that fails inside an installed plugin stays what it is.
    """
    try:
        module = importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise missing(
            f"{name} lives in a plugin that is not installed. Install it with: pip install 'gm-chat[{extra}]'",
            name=package,
        ) from error
    return getattr(module, name)
