"""PluginHost: the one caller of plugins' hooks, typed, with every failure attributed."""

from __future__ import annotations

import asyncio
import copy
import logging
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Self

import gm_chat
from gm_chat.host import registration as reg
from gm_chat.host.calls import HookCall, call_table, listed, new_manager
from gm_chat.host.discovery import Candidate, EntryPointLike, candidates_of, choose, installed_entry_points
from gm_chat.host.guards import denying, timed
from gm_chat.host.loading import load_plugins, settings_for_nobody
from gm_chat.host.problems import Failed, Origin, PluginRecord, Problem, attempt
from gm_chat.plugin.decisions import Action, Decision, Verdict
from gm_chat.plugin.errors import PluginError
from gm_chat.plugin.specs import (
    CatalogSpec,
    CheckResult,
    PromptSection,
    ProviderSpec,
    RateLimitStoreSpec,
    StreamProtocolSpec,
    ToolSpec,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence

    from gm_chat.plugin.context import Actor, TurnContext, TurnOutcome
    from gm_chat.plugin.protocols import AuditSink, ManagerSource, PermissionCheck

__all__ = ["CORE_DISTRIBUTION", "FAILED_CHECK_ID", "PERMISSION_CHECK_SECONDS", "PluginHost"]

CORE_DISTRIBUTION: Final = "gm-chat"
FAILED_CHECK_ID: Final = "gm_chat.W010"
"""The check id of a plugin's warning, so also of a failing ``gm_chat_system_checks``."""
PERMISSION_CHECK_SECONDS: Final = 10.0
"""A permission check that takes longer denies."""

_NO_OPTIONS: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType({})
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PluginHost:
    """All plugins, loaded once; immutable, safe to share between threads and event loops.

    Names choose among ``providers``, ``rate_limit_stores`` and ``stream_protocols``; ``urls`` holds each plugin's
    URL patterns by the plugin's name, ``catalog_origins`` each catalog's plugin by the catalog's name; everything else
    is in call order: the core's first, then by plugin name.
    Per-turn methods are synchronous and may block as long as a plugin does: call them off the event loop.
    """

    plugins: tuple[PluginRecord, ...]
    problems: tuple[Problem, ...]
    providers: Mapping[str, ProviderSpec]
    tools: tuple[ToolSpec, ...]
    manager_sources: tuple[ManagerSource, ...]
    catalogs: tuple[CatalogSpec, ...]
    catalog_origins: Mapping[str, Origin]
    permission_checks: tuple[PermissionCheck, ...]
    audit_sinks: tuple[AuditSink, ...]
    rate_limit_stores: Mapping[str, RateLimitStoreSpec]
    stream_protocols: Mapping[str, StreamProtocolSpec]
    eval_datasets: tuple[str, ...]
    urls: Mapping[str, tuple[Any, ...]]
    _judges: tuple[Callable[[Action, Actor, Mapping[str, Any]], Awaitable[Decision]], ...] = field(repr=False)
    _closed: str | None = field(repr=False)
    _calls: Mapping[str, tuple[HookCall, ...]] = field(repr=False)

    @classmethod
    def build(
        cls,
        *,
        core: Sequence[tuple[str, object]],
        disabled: Collection[str] = (),
        enabled: Collection[str] | None = None,
        options: Mapping[str, Mapping[str, Any]] = _NO_OPTIONS,
        entry_points: Iterable[EntryPointLike] | None = None,
    ) -> Self:
        """Load every plugin that may be loaded and ask it once for what it offers. Never raises for a plugin's sake.

        ``core`` are gm-chat's own plugins by name; no list disables them and nobody else gets their names.
        ``disabled`` and ``enabled`` (``None``: all) hold names of plugins or distributions and are applied before
        anything is imported. ``options`` are the plugins' settings by plugin name. ``entry_points`` replaces the
        installed ones, e.g. in tests.
        """
        reserved = [name for name, _ in core]
        found = attempt(lambda: candidates_of(installed_entry_points() if entry_points is None else entry_points))
        problems: list[Problem] = []
        if isinstance(found, Failed):
            nobody = Origin("*", "all distributions", "")
            problems.append(nobody.problem("error", f"the installed plugins cannot be listed: {found}."))
            found = []
        selection = choose(found, disabled=disabled, enabled=enabled, reserved=reserved)
        manager = new_manager()
        loading = load_plugins(manager, [*map(_core_candidate, core), *selection.load], options)
        known = [*reserved, *(candidate.origin.plugin for candidate in found)]
        problems += [*selection.problems, *loading.problems, *settings_for_nobody(options, known)]
        calls = call_table(manager, loading.loaded)
        collected = {item.hook: reg.collect(item, calls[item.hook], reserved) for item in reg.REGISTRATIONS}
        problems += [problem for part in collected.values() for problem in part.problems]
        for problem in problems:
            logger.log(logging.ERROR if problem.severity == "error" else logging.WARNING, "%s", problem)
        checks: reg.Collected[PermissionCheck] = collected[reg.PERMISSION_CHECKS.hook]
        return cls(
            plugins=tuple(sorted((*selection.records, *loading.records), key=_display_order(reserved))),
            problems=tuple(problems),
            **_offers(collected),
            _judges=tuple(
                denying(origin, timed(PERMISSION_CHECK_SECONDS, check.check)) for origin, check in checks.items
            ),
            _closed=_reason_to_deny(problems, loading.refused_hooks),
            _calls=calls,
        )

    def implementing(self, hook: str) -> tuple[str, ...]:
        """The names of the active plugins that implement ``hook``, in call order."""
        return tuple(call.origin.plugin for call in self._calls[hook])

    def system_checks(self) -> list[CheckResult]:
        """Ask the plugins for findings; a plugin that fails to answer is itself a finding."""
        results: list[CheckResult] = []
        for call in self._calls["gm_chat_system_checks"]:
            found = reg.typed_items(call, CheckResult)
            if isinstance(found, str):
                problem = call.origin.problem("warning", found, hook=call.hook)
                found = [CheckResult(id=FAILED_CHECK_ID, level="warning", message=str(problem))]
            results.extend(found)
        return results

    def select_provider(self, context: TurnContext, candidates: Sequence[str]) -> str | None:
        """The first plugin's choice for this turn, ``None`` if none chooses.

        Raises :class:`~gm_chat.plugin.PluginError`, and so fails the turn, if a plugin raises or names a provider
        outside ``candidates``.
        """
        for call in self._calls["gm_chat_select_provider"]:
            choice = _or_raise(call, call(context=context, candidates=tuple(candidates)))
            if choice is None:
                continue
            if not isinstance(choice, str) or choice not in candidates:
                raise _broken(call, f"chose the provider {choice!r}, which is none of {', '.join(candidates)}")
            return choice
        return None

    def filter_tools(self, context: TurnContext, tools: Sequence[ToolSpec]) -> list[ToolSpec]:
        """The tools that every plugin leaves in, in their given order. Raises ``PluginError`` like the above."""
        left = list(tools)
        for call in self._calls["gm_chat_filter_tools"]:
            # Copies: a plugin that writes into a schema would change the tool for everybody.
            answer = call(context=context, tools=tuple(copy.deepcopy(tool.definition) for tool in left))
            if answer is None:  # no opinion, or a forgotten return: either guess could be the wrong one
                raise _broken(call, "returned None; return the names of the tools to keep")
            kept = _or_raise(call, listed(answer))
            known = [tool.definition.name for tool in left]
            unknown = [name for name in kept if not isinstance(name, str) or name not in known]
            if unknown:
                raise _broken(call, f"kept the tool {unknown[0]!r}, which was not among those it was given")
            left = [tool for tool in left if tool.definition.name in kept]
        return left

    def prompt_sections(self, context: TurnContext) -> list[str]:
        """The plugins' sections for the system prompt, by their order, then by plugin; failing ones are left out."""
        sections: list[PromptSection] = []
        for call in self._calls["gm_chat_system_prompt"]:
            result = call(context=context)
            if isinstance(result, PromptSection):
                sections.append(result)
            elif result is not None:
                what = result if isinstance(result, Failed) else f"returned a {type(result).__name__}"
                _log_failure(call, what, "its section is left out")
        return [section.text for section in sorted(sections, key=lambda section: section.order)]

    def turn_started(self, context: TurnContext) -> None:
        """Tell the observers; what they raise is logged."""
        for call in self._calls["gm_chat_turn_started"]:
            _ignore(call, call(context=context))

    def turn_paused(self, context: TurnContext, outcome: TurnOutcome) -> None:
        """Tell the observers; what they raise is logged."""
        for call in self._calls["gm_chat_turn_paused"]:
            _ignore(call, call(context=context, outcome=outcome))

    def turn_finished(self, context: TurnContext, outcome: TurnOutcome) -> None:
        """Tell the observers; what they raise is logged."""
        for call in self._calls["gm_chat_turn_finished"]:
            _ignore(call, call(context=context, outcome=outcome))

    async def permit(self, action: Action, actor: Actor, context: Mapping[str, Any]) -> Decision:
        """Ask all checks at once: one denial wins, else the action is allowed.

        A check that raises or takes longer than :data:`PERMISSION_CHECK_SECONDS` denies. If a plugin's checks could
        not be built, everything is denied: nobody knows what they would have forbidden.
        """
        if self._closed is not None:
            return Decision.deny(self._closed)
        asked = [judge(action, actor, context) for judge in self._judges]
        # A single check, which is what most projects have, needs no task of its own.
        decisions = await asyncio.gather(*asked) if len(asked) > 1 else [await answer for answer in asked]
        denials = (decision for decision in decisions if decision.verdict is Verdict.DENY)
        return next(denials, Decision.allow())


def _core_candidate(entry: tuple[str, object]) -> Candidate:
    name, plugin = entry
    return Candidate(Origin(name, CORE_DISTRIBUTION, gm_chat.__version__), lambda: plugin)


def _offers(collected: Mapping[str, reg.Collected[Any]]) -> dict[str, Any]:
    urls: dict[str, tuple[Any, ...]] = {}
    for origin, pattern in collected[reg.URLS.hook].items:
        urls[origin.plugin] = (*urls.get(origin.plugin, ()), pattern)
    by_name: dict[str, reg.Registration[Any]] = {
        "providers": reg.PROVIDERS,
        "rate_limit_stores": reg.RATE_LIMIT_STORES,
        "stream_protocols": reg.STREAM_PROTOCOLS,
    }
    in_order: dict[str, reg.Registration[Any]] = {
        "tools": reg.TOOLS,
        "manager_sources": reg.MANAGER_SOURCES,
        "catalogs": reg.CATALOGS,
        "permission_checks": reg.PERMISSION_CHECKS,
        "audit_sinks": reg.AUDIT_SINKS,
        "eval_datasets": reg.EVAL_DATASETS,
    }
    return {
        **{name: MappingProxyType(collected[item.hook].by_name()) for name, item in by_name.items()},
        **{name: collected[item.hook].values for name, item in in_order.items()},
        "catalog_origins": MappingProxyType({spec.name: origin for origin, spec in collected[reg.CATALOGS.hook].items}),
        "urls": MappingProxyType(urls),
    }


def _reason_to_deny(problems: Iterable[Problem], refused_hooks: Collection[str]) -> str | None:
    hook = reg.PERMISSION_CHECKS.hook
    broken = [problem.plugin for problem in problems if problem.hook == hook]
    if broken or hook in refused_hooks:
        who = ", ".join(sorted(set(broken))) or "a refused plugin"
        return f"permission checks of {who} could not be built, so that every action is denied; see gm_chat_plugins"
    return None


def _display_order(reserved: Collection[str]) -> Callable[[PluginRecord], tuple[bool, str, str]]:
    return lambda record: (record.name not in reserved, record.name, record.distribution)


def _broken(call: HookCall, what: object) -> PluginError:
    return PluginError(f"plugin {call.origin.plugin!r} ({call.origin.distribution}): {call.hook} {what}")


def _or_raise(call: HookCall, result: Any) -> Any:
    if isinstance(result, Failed):
        raise _broken(call, f"failed: {result}") from result.error
    return result


def _log_failure(call: HookCall, what: object, consequence: str) -> None:
    cause = what.error if isinstance(what, Failed) else None
    logger.error("%s; %s", _broken(call, what), consequence, exc_info=cause)


def _ignore(call: HookCall, result: Any) -> None:
    if isinstance(result, Failed):
        _log_failure(call, f"failed: {result}", "the turn goes on")
