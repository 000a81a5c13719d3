"""From candidates to registered plugins: each import, each look and each registration isolated from the others."""

from __future__ import annotations

import functools
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gm_chat.host.calls import Loaded
from gm_chat.host.options import read_options
from gm_chat.host.problems import Failed, Origin, PluginRecord, Problem, State, attempt
from gm_chat.host.validation import Inspection, contract_fault, inspect_plugin
from gm_chat.settings import suggestion

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pluggy

    from gm_chat.host.discovery import Candidate

__all__ = ["Loading", "load_plugins"]

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Loading:
    """What came of loading. ``refused_hooks`` are hooks that refused plugins implement, or meant to."""

    loaded: list[Loaded] = field(default_factory=list)
    records: list[PluginRecord] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    refused_hooks: set[str] = field(default_factory=set)

    def reject(self, origin: Origin, state: State, found: Sequence[Problem], hooks: tuple[str, ...] = ()) -> None:
        """Record a plugin that will not run."""
        self.problems.extend(found)
        self.refused_hooks.update(hooks)
        self.records.append(
            PluginRecord(
                name=origin.plugin, distribution=origin.distribution, version=origin.version, state=state, hooks=hooks
            )
        )


def load_plugins(
    manager: pluggy.PluginManager, candidates: Sequence[Candidate], options: Mapping[str, Mapping[str, Any]]
) -> Loading:
    """Load the candidates and register those that keep the contract, so that pluggy calls them in the given order."""
    loading = Loading()
    for candidate in candidates:
        _load(candidate, options.get(candidate.origin.plugin, {}), manager, loading)
    # pluggy calls the plugin that was registered last first.
    for loaded in reversed(list(loading.loaded)):
        registered = attempt(functools.partial(manager.register, loaded.plugin, loaded.origin.plugin))
        if isinstance(registered, Failed):
            loading.loaded.remove(loaded)
            _forget(manager, loaded)
            found = [loaded.origin.problem("error", f"pluggy refused it: {registered}.")]
            loading.reject(loaded.origin, "refused", found, loaded.hooks)
    for loaded in loading.loaded:
        origin = loaded.origin
        loading.records.append(
            PluginRecord(
                name=origin.plugin,
                distribution=origin.distribution,
                version=origin.version,
                state="active",
                hooks=loaded.hooks,
            )
        )
    return loading


def settings_for_nobody(options: Mapping[str, Any], known: Sequence[str]) -> list[Problem]:
    """Warn of settings under ``plugins`` that no installed plugin reads."""
    return [
        Origin(name, "not installed", "").problem(
            "warning",
            "there are settings for it, but no installed plugin has that name.",
            hint=suggestion(name, known),
        )
        for name in sorted(options)
        if name not in known
    ]


def _load(candidate: Candidate, raw_options: object, manager: pluggy.PluginManager, loading: Loading) -> None:
    origin = candidate.origin
    plugin = attempt(candidate.load)
    if isinstance(plugin, Failed):
        logger.debug("plugin %r failed while it was imported", origin.plugin, exc_info=plugin.error)
        message = f"importing it failed with {plugin}."
        loading.reject(origin, "failed", [origin.problem("error", message)])
        return
    inspection = attempt(_inspection(plugin, manager))
    if isinstance(inspection, Failed):
        message = f"it cannot be examined: {inspection}."
        loading.reject(origin, "refused", [origin.problem("error", message)])
        return
    if inspection.faults:
        found = [
            origin.problem("error", fault.message, hook=fault.hook, hint=fault.hint) for fault in inspection.faults
        ]
        meant = {fault.meant for fault in inspection.faults if fault.meant}
        loading.reject(origin, "refused", found, tuple(sorted(meant.union(inspection.hooks))))
        return
    options = attempt(lambda: read_options(plugin, raw_options))
    if isinstance(options, Failed):
        hint = f"See plugins[{origin.plugin!r}] in the chat's settings."
        loading.reject(origin, "refused", [origin.problem("error", str(options.error), hint=hint)], inspection.hooks)
        return
    loading.loaded.append(Loaded(origin, plugin, inspection.hooks, options))


def _inspection(plugin: object, manager: pluggy.PluginManager) -> Callable[[], Inspection]:
    def inspect() -> Inspection:
        hash(plugin)  # pluggy keeps plugins in sets
        if plugin is None:
            raise TypeError("the entry point names None")
        fault = contract_fault(plugin)
        found = inspect_plugin(plugin, manager)
        return found if fault is None else Inspection(found.hooks, (fault,))

    return inspect


def _forget(manager: pluggy.PluginManager, loaded: Loaded) -> None:
    # Before 1.7 pluggy leaves a plugin half registered when it refuses it.
    if manager.get_plugin(loaded.origin.plugin) is loaded.plugin:
        manager.unregister(loaded.plugin, loaded.origin.plugin)
