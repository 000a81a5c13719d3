"""Calling hooks plugin by plugin, so that every result and every error carries its plugin's name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pluggy

from gm_chat.host.problems import Failed, Origin, attempt
from gm_chat.host.validation import SPECS
from gm_chat.plugin import hookspecs
from gm_chat.plugin.markers import PROJECT_NAME

__all__ = ["HookCall", "Loaded", "call_table", "listed", "new_manager"]

_OPTIONS: Final = "options"


@dataclass(frozen=True, slots=True)
class Loaded:
    """A plugin that keeps the contract, with its validated settings."""

    origin: Origin
    plugin: object
    hooks: tuple[str, ...]
    options: Any


@dataclass(frozen=True, slots=True)
class HookCall:
    """One plugin's implementation of one hook."""

    hook: str
    origin: Origin
    caller: Callable[..., Any]
    options: Any

    def __call__(self, **arguments: Any) -> Any:
        """Call it and return what it returned, or :class:`Failed`. Nothing is iterated here."""
        if _OPTIONS in SPECS[self.hook].arguments:
            arguments[_OPTIONS] = self.options
        result = attempt(lambda: self.caller(**arguments))
        if isinstance(result, list) and not SPECS[self.hook].firstresult:
            result = result[0] if result else None  # pluggy's list of the one plugin's result
        if inspect.iscoroutine(result):
            result.close()  # else Python warns that it was never awaited
            return Failed(TypeError("it returned a coroutine; hooks are plain functions"))
        return result

    def items(self, **arguments: Any) -> list[Any] | Failed:
        """Call it and list what it returns or yields; ``None`` counts as nothing."""
        result = self(**arguments)
        return [] if result is None else listed(result)


def listed(result: Any) -> list[Any] | Failed:
    """What a hook returned, as a list; a generator runs here."""

    def collect() -> list[Any]:
        if isinstance(result, Failed):
            raise result.error
        if not isinstance(result, Iterable) or isinstance(result, str | bytes | Mapping):
            raise TypeError(f"it returned a {type(result).__name__}; return a list, or yield")
        return list(result)

    return attempt(collect)


def new_manager() -> pluggy.PluginManager:
    """A pluggy manager that knows every hook."""
    manager = pluggy.PluginManager(PROJECT_NAME)
    manager.add_hookspecs(hookspecs)
    return manager


def call_table(manager: pluggy.PluginManager, plugins: Iterable[Loaded]) -> Mapping[str, tuple[HookCall, ...]]:
    """For each hook the calls in their order: ``tryfirst`` ones, then by plugin, then ``trylast`` ones."""
    by_name = {loaded.origin.plugin: loaded for loaded in plugins}
    everything = [loaded.plugin for loaded in by_name.values()]
    table = {}
    for name in SPECS:
        calls = []
        # pluggy lists implementations in the reverse of the order in which it calls them.
        for implementation in reversed(getattr(manager.hook, name).get_hookimpls()):
            loaded = by_name[implementation.plugin_name]
            others = [plugin for plugin in everything if plugin is not loaded.plugin]
            caller = manager.subset_hook_caller(name, remove_plugins=others)
            calls.append(HookCall(name, loaded.origin, caller, loaded.options))
        table[name] = tuple(calls)
    return table
