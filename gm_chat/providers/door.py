"""Doors: how a name leads to a class in a plugin, and a plugin to its vendor's SDK, without importing at start-up."""

from __future__ import annotations

import asyncio
import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["SDKDoor", "plugin_attribute"]


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


class SDKDoor:
    """The module of a plugin that imports its vendor's SDK, opened by the first request or configuration check.

    ``missing`` is raised when that import fails, with the line to type for ``extra``.
    """

    def __init__(self, module: str, *, missing: type[ImportError], extra: str) -> None:
        self._module = module
        self._missing = missing
        self._extra = extra
        self._opened: ModuleType | None = None

    def open(self) -> ModuleType:
        """Return the module."""
        if self._opened is not None:
            return self._opened
        try:
            module = importlib.import_module(self._module)
        except ImportError as error:
            raise self._missing(
                f"the SDK cannot be imported ({error}). Install it with: pip install 'gm-chat[{self._extra}]'",
                name=error.name,
            ) from error
        self._opened = module
        return module

    async def aopen(self) -> ModuleType:
        """Return the module; the first import takes a second or two, which other tasks do not wait for."""
        if self._opened is not None:
            return self._opened
        return await asyncio.to_thread(self.open)
