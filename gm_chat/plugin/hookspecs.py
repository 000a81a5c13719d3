"""Every hook of gm_chat, documented where it is specified.

Registration hooks fire once, while the host is built. Each may take ``options``: the plugin's own settings from
``plugins: {<plugin name>: {...}}``, validated by the ``Options`` class of the plugin's module if it has one (any
callable that takes the keys as keyword arguments: a dataclass, a pydantic model), else the plain mapping.
An implementation may leave out arguments that it does not need.

Per-turn hooks fire inside a turn, off the event loop's critical path where they only observe.
All hooks are plain functions; a plugin with an ``async def`` implementation is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gm_chat.plugin.markers import hookspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gm_chat.plugin.context import TurnContext, TurnOutcome
    from gm_chat.plugin.protocols import AuditSink, ManagerSource, PermissionCheck
    from gm_chat.plugin.specs import (
        CatalogSpec,
        CheckResult,
        PromptSection,
        ProviderSpec,
        RateLimitStoreSpec,
        StreamProtocolSpec,
        ToolSpec,
    )
    from gm_chat.providers.base import ToolDefinition


# --- registration -----------------------------------------------------------------------------------------------


@hookspec
def gm_chat_providers(options: Any) -> Iterable[ProviderSpec]:
    """Offer LLM providers. Since contract 1.

    An exception is check E004 if the chosen provider is this plugin's, else a warning. A name that two plugins
    offer is an error, never decided silently.
    """
    raise AssertionError("a hook specification is never called")


@hookspec
def gm_chat_tools(options: Any) -> Iterable[ToolSpec]:
    """Offer tools to the model, beside the built-in ones. Since contract 1.

    An exception is a warning, and the plugin's tools are absent.
    """
    raise AssertionError("a hook specification is never called")


@hookspec
def gm_chat_manager_sources(options: Any) -> Iterable[ManagerSource]:
    """Offer managers. Since contract 1. An exception is an error: the chat does not start with half its data."""
    raise AssertionError("a hook specification is never called")


@hookspec
def gm_chat_catalogs(options: Any) -> Iterable[CatalogSpec]:
    """Offer people's words for managers. Since contract 1. An exception is a warning, also one from ``load()``.

    A catalog can never make a hidden manager visible. Of several entries for a manager the setting's is used, else the
    first plugin's.
    """
    raise AssertionError("a hook specification is never called")


@hookspec
def gm_chat_permission_checks(options: Any) -> Iterable[PermissionCheck]:
    """Offer permission checks; all are asked, and one denial wins. Since contract 1.

    An exception here is always fatal; one at run time denies the action.
    """
    raise AssertionError("a hook specification is never called")


@hookspec
def gm_chat_audit_sinks(options: Any) -> Iterable[AuditSink]:
    """Offer audit sinks. Since contract 1. An exception is logged; if the sink is required, auditing fails closed."""
    raise AssertionError("a hook specification is never called")


@hookspec
def gm_chat_rate_limit_stores(options: Any) -> Iterable[RateLimitStoreSpec]:
    """Offer stores for ``rate_limit["store"]``. Since contract 1. An exception is fatal if the store is chosen."""
    raise AssertionError("a hook specification is never called")


@hookspec
def gm_chat_stream_protocols(options: Any) -> Iterable[StreamProtocolSpec]:
    """Offer other event vocabularies. Since contract 1. An exception is a warning."""
    raise AssertionError("a hook specification is never called")


@hookspec
def gm_chat_eval_datasets(options: Any) -> Iterable[str]:
    """Offer paths of evaluation datasets (YAML). Since contract 1. An exception is named in a check."""
    raise AssertionError("a hook specification is never called")


@hookspec
def gm_chat_urls(options: Any) -> Iterable[Any]:
    """Offer Django URL patterns, mounted at ``<chat url>x/<plugin name>/``. Since contract 1.

    An exception is named in a check.
    """
    raise AssertionError("a hook specification is never called")


@hookspec
def gm_chat_system_checks(options: Any) -> Iterable[CheckResult]:
    """Add findings to ``manage.py check``. Since contract 1. Fires at each check; an exception is named in it."""
    raise AssertionError("a hook specification is never called")


# --- per turn ---------------------------------------------------------------------------------------------------


@hookspec(firstresult=True)
def gm_chat_select_provider(context: TurnContext, candidates: Sequence[str]) -> str | None:
    """Choose the provider of a turn, by name, from ``candidates``; ``None`` leaves it to the next. Since contract 1.

    The settings' choice comes last. An exception, or a name outside ``candidates``, fails the turn: another provider
    is never used silently.
    """
    raise AssertionError("a hook specification is never called")


@hookspec
def gm_chat_filter_tools(context: TurnContext, tools: Sequence[ToolDefinition]) -> Iterable[str]:
    """Return the names to keep of ``tools`` for this turn. Since contract 1.

    Plugins are asked in order of name, each with what is left. A tool may be removed, never added: an unknown name,
    like an exception, fails the turn.
    """
    raise AssertionError("a hook specification is never called")


@hookspec
def gm_chat_system_prompt(context: TurnContext) -> PromptSection | None:
    """Add a section to the system prompt. Since contract 1. An exception leaves the section out and is logged."""
    raise AssertionError("a hook specification is never called")


@hookspec
def gm_chat_turn_started(context: TurnContext) -> None:
    """Observe an accepted turn. Since contract 1. An exception is logged."""
    raise AssertionError("a hook specification is never called")


@hookspec
def gm_chat_turn_paused(context: TurnContext, outcome: TurnOutcome) -> None:
    """Observe that a turn waits for a confirmation; its end is still to come.

    Since contract 1. An exception is logged.
    """
    raise AssertionError("a hook specification is never called")


@hookspec
def gm_chat_turn_finished(context: TurnContext, outcome: TurnOutcome) -> None:
    """Observe a turn's end, once for each turn: done, failed or cancelled. Since contract 1.

    An exception is logged.
    """
    raise AssertionError("a hook specification is never called")
