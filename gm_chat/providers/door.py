"""Doors: how a name leads to a class in a plugin, and a plugin to its vendor's SDK, without importing at start-up."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["BrokenSDKError", "SDKDoor", "plugin_attribute"]


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


class BrokenSDKError(RuntimeError):
    """A vendor's SDK is installed, but it cannot be imported: another version than its plugin needs, a broken file."""


class SDKDoor:
    """The module of a plugin that imports its vendor's SDK, opened by the first request or configuration check.

    ``missing`` is raised when the SDK, or a package that it needs, is not installed, with the line to type for
    ``extra``; :class:`BrokenSDKError` with the reason when the import fails otherwise.
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
        except Exception as error:
            if isinstance(error, ModuleNotFoundError) and _is_absent(error.name):
                raise self._missing(
                    f"the SDK cannot be imported ({error}). Install it with: pip install 'gm-chat[{self._extra}]'",
                    name=error.name,
                ) from error
            raise BrokenSDKError(
                f"the SDK is installed, but cannot be imported: {type(error).__name__}: {error}. "
                f"Perhaps mended by: pip install --upgrade 'gm-chat[{self._extra}]'"
            ) from error
        self._opened = module
        return module

    async def aopen(self) -> ModuleType:
        """Return the module; the first import takes a second or two, which other tasks do not wait for."""
        if self._opened is not None:
            return self._opened
        return await asyncio.to_thread(self.open)


def _is_absent(module: str | None) -> bool:
    """Whether not even the package of a module that was not found is there.

    Several distributions share a namespace package, such as ``google``: then it is the package below it that counts.
    """
    package, _, rest = (module or "").partition(".")
    spec = importlib.util.find_spec(package) if package else None
    if spec is not None and spec.origin is None and rest:
        spec = importlib.util.find_spec(f"{package}.{rest.partition('.')[0]}")
    return package != "" and spec is None
