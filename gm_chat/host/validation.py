"""Does a plugin keep the contract? Answered by looking at it, before any of its hooks is called."""

from __future__ import annotations

import difflib
import inspect
from dataclasses import dataclass
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, Final

from gm_chat.plugin import hookspecs
from gm_chat.plugin.markers import CONTRACT_VERSION, PROJECT_NAME
from gm_chat.settings import suggestion

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pluggy

__all__ = ["SPECS", "Fault", "HookSpec", "Inspection", "contract_fault", "inspect_plugin"]

_PREFIX: Final = "gm_chat_"


@dataclass(frozen=True, slots=True)
class HookSpec:
    """One hook: its arguments, in order, and whether the first answer ends the call."""

    name: str
    arguments: tuple[str, ...]
    firstresult: bool


def _read_specs() -> Mapping[str, HookSpec]:
    specs = {}
    for name, function in vars(hookspecs).items():
        options = getattr(function, f"{PROJECT_NAME}_spec", None)
        if options is not None:
            specs[name] = HookSpec(name, tuple(inspect.signature(function).parameters), bool(options["firstresult"]))
    return MappingProxyType(specs)


SPECS: Final = _read_specs()
"""Every hook by name, in the order of :mod:`gm_chat.plugin.hookspecs`."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a plugin is refused. ``meant`` is the hook that its author most likely had in mind."""

    hook: str | None
    message: str
    hint: str | None = None
    meant: str | None = None


@dataclass(frozen=True, slots=True)
class Inspection:
    """The hooks that a plugin implements, sorted, and its faults."""

    hooks: tuple[str, ...]
    faults: tuple[Fault, ...]


def contract_fault(plugin: object) -> Fault | None:
    """Compare the contract version that the plugin states, if it does, with the host's."""
    stated = getattr(plugin, "GM_CHAT_CONTRACT", None)
    if stated is None or stated == CONTRACT_VERSION:
        return None
    newer = isinstance(stated, int) and stated > CONTRACT_VERSION
    return Fault(
        None,
        f"it is written for contract {stated!r}, this gm-chat has contract {CONTRACT_VERSION}.",
        "Upgrade gm-chat." if newer else "Upgrade the plugin.",
    )


def inspect_plugin(plugin: object, manager: pluggy.PluginManager) -> Inspection:
    """Look at everything that is, or seems meant to be, a hook implementation."""
    hooks: list[str] = []
    faults: list[Fault] = []
    for name in sorted(dir(plugin)):
        options = manager.parse_hookimpl_opts(plugin, name)
        if options is None:
            faults.extend(_unmarked(plugin, name))
            continue
        if options.get("optionalhook") and name not in SPECS:
            continue  # the plugin knows that older hosts lack this hook
        if name in SPECS:
            hooks.append(name)
        faults.extend(_implementation_faults(name, getattr(plugin, name), options))
    return Inspection(tuple(hooks), tuple(faults))


def _unmarked(plugin: object, name: str) -> Iterator[Fault]:
    if not name.startswith(_PREFIX):
        return
    value = inspect.getattr_static(plugin, name, None)
    home = plugin.__name__ if isinstance(plugin, ModuleType) else type(plugin).__module__
    if inspect.isfunction(value) and value.__module__ == home:  # imported functions are somebody else's
        hint = f"Write @hookimpl above {name}, or give the function a name that does not start with {_PREFIX!r}."
        yield Fault(name, "it is not marked with @hookimpl and would never be called.", hint, name)


def _implementation_faults(name: str, function: Any, options: Mapping[str, Any]) -> Iterator[Fault]:
    spec = SPECS.get(options.get("specname") or name)
    if options.get("specname") and options["specname"] != name:
        yield Fault(name, f"it stands for {options['specname']!r} (specname).", "Name the function like its hook.")
    elif spec is None:
        meant = next(iter(difflib.get_close_matches(name, SPECS, n=1)), None)
        yield Fault(name, "there is no such hook.", suggestion(name, SPECS), meant)
    if options.get("wrapper") or options.get("hookwrapper"):
        yield Fault(name, "hook wrappers are not supported: each plugin is called by itself.", None, name)
    inner = inspect.unwrap(function)
    if inspect.iscoroutinefunction(inner) or inspect.isasyncgenfunction(inner):
        hint = "Write `def` and hand out an object with async methods instead."
        yield Fault(name, "it is `async def`; hooks are plain functions and are never awaited.", hint, name)
    if spec is not None:
        yield from _argument_faults(spec, function)


def _argument_faults(spec: HookSpec, function: Any) -> Iterator[Fault]:
    takes = ", ".join(spec.arguments)
    for argument in inspect.signature(function).parameters.values():
        if argument.kind in (argument.VAR_POSITIONAL, argument.VAR_KEYWORD, argument.KEYWORD_ONLY):
            message = f"its argument {str(argument).split(':')[0]!r} would never be passed: only plain names are."
            yield Fault(spec.name, message, f"Take some of ({takes}).", spec.name)
        elif argument.name not in spec.arguments:
            is_method = argument.name == "self"
            hint = "Name an instance in the entry point, not a class." if is_method else None
            message = f"the hook has no argument {argument.name!r}."
            yield Fault(spec.name, message, hint or suggestion(argument.name, spec.arguments), spec.name)
        elif argument.default is not argument.empty:
            message = f"its argument {argument.name!r} has a default, and some versions of pluggy then leave it out."
            yield Fault(spec.name, message, "Remove the default.", spec.name)
