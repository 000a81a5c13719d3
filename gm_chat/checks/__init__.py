"""What ``manage.py check`` says about the chat: each finding with the line to type.

Nothing here may stop the command: broken settings, plugins, declarations and providers are findings themselves.
Only the chosen provider's SDK is imported. ``docs/settings.md`` lists the ids. (Specification: "Django system checks".)
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from django.apps import apps
from django.core import checks

from gm_chat.checks.access import access_findings, taint_findings
from gm_chat.checks.audit import audit_findings
from gm_chat.checks.catalogs import catalog_findings
from gm_chat.checks.limits import limit_deployment_findings, limit_findings
from gm_chat.checks.secrets import secret_findings
from gm_chat.checks.serving import deployment_findings, serving_findings
from gm_chat.defaults.plugin import CORE_PLUGIN
from gm_chat.host.problems import Failed, attempt
from gm_chat.host.providers import EXTRAS
from gm_chat.host.providers import resolve as resolve_provider
from gm_chat.managers import registry
from gm_chat.managers.index import SchemaIndex
from gm_chat.managers.schema import build_schema
from gm_chat.providers.base import CheckWarning
from gm_chat.settings import (
    ChatConfigurationError,
    get_chat_settings,
    plain,
    suggestion,
    tolerated_names,
    validate_chat_settings,
)
from gm_chat.settings.environment import unknown_variables
from gm_chat.wiring import get_runtime
from gm_chat.wiring.provider import call_limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from gm_chat.host import PluginHost
    from gm_chat.host.problems import Problem
    from gm_chat.settings import ChatSettings

__all__ = ["check_chat", "check_deployment"]

_SEVERITY: Final = {"error": checks.ERROR, "warning": checks.WARNING}
_LEVELS: Final = {
    "debug": checks.DEBUG,
    "info": checks.INFO,
    "warning": checks.WARNING,
    "error": checks.ERROR,
    "critical": checks.CRITICAL,
}
_MEND: Final = "Mend what the message names, then see the result: python manage.py chat_schema"


def check_chat() -> list[checks.CheckMessage]:
    """Return every finding; where the chat is not enabled, only what would keep it from being enabled."""
    try:
        findings = [*_unknown_names()]
        settings = get_chat_settings()
        if settings.enabled:
            findings += _enabled_findings(validate_chat_settings())
    except ChatConfigurationError as error:
        return [*_unknown_variables(), *_invalid_settings(error)]
    return findings


def check_deployment() -> list[checks.CheckMessage]:
    """Return what would be amiss in production only: ``manage.py check --deploy`` asks for it."""
    try:
        settings = get_chat_settings()
    except ChatConfigurationError:
        return []  # check_chat tells
    if not settings.enabled:
        return []
    host = attempt(lambda: get_runtime().host)
    return [
        *deployment_findings(settings),
        *limit_deployment_findings(settings),
        *access_findings(settings, host),
        *taint_findings(settings),
    ]


def _enabled_findings(settings: ChatSettings) -> Iterator[checks.CheckMessage]:
    index = attempt(lambda: SchemaIndex.build(get_runtime().described))  # whatever is wrong with the catalogs
    host = attempt(lambda: get_runtime().host)
    if isinstance(host, Failed):
        yield checks.Error(f"The chat cannot be built: {host}", id="gm_chat.E001")
        return
    catalogs = attempt(lambda: get_runtime().catalogs)
    yield from _schema(settings, index)
    yield from catalog_findings(catalogs)
    yield from _providers(settings, host)
    yield from _plugins(host, () if isinstance(catalogs, Failed) else catalogs.problems)
    yield from _tools(settings, host)
    yield from serving_findings(settings)
    yield from limit_findings(settings, host)
    yield from audit_findings(settings, host)
    yield from secret_findings()


# --- E002: settings ---------------------------------------------------------------------------------------------


def _invalid_settings(error: ChatConfigurationError) -> Iterator[checks.CheckMessage]:
    for line in str(error).splitlines():
        yield checks.Error(line, hint="docs/settings.md explains every setting.", id="gm_chat.E002")


def _unknown_names() -> Iterator[checks.CheckMessage]:
    yield from _unknown_variables()
    for unknown in tolerated_names():
        place = "".join(f"[{part!r}]" for part in unknown.path)
        yield checks.Warning(
            f"GENERAL_MANAGER['CHAT']{place} is unknown to gm_chat and left to GeneralManager.",
            hint=unknown.hint,
            id="gm_chat.W002",
        )


def _unknown_variables() -> Iterator[checks.CheckMessage]:
    for variable, unknown in unknown_variables(os.environ):
        yield checks.Warning(
            f"The environment variable {variable} sets nothing: there is no such chat setting.",
            hint=unknown.hint,
            id="gm_chat.W001",
        )


# --- E001, E002: managers and mutations -------------------------------------------------------------------------


def _schema(settings: ChatSettings, index: SchemaIndex | Failed) -> Iterator[checks.CheckMessage]:
    missing = ChatConfigurationError.missing_graphql_schema()
    if isinstance(index, Failed):
        yield checks.Error(f"{missing} {index}", hint=_MEND, id="gm_chat.E001")
        return
    if not index.managers:
        yield checks.Error(str(missing), hint=_first_manager(), id="gm_chat.E001")
    elif isinstance(schema := attempt(lambda: build_schema(index.managers.values())), Failed):
        yield checks.Error(f"{missing} {schema}", hint=_MEND, id="gm_chat.E001")
    if unknown := [name for name in settings.allowed_mutations if name not in index.mutations]:
        yield checks.Error(
            str(ChatConfigurationError.unknown_allowed_mutations(", ".join(unknown))),
            hint=" ".join(f"{name}: {suggestion(name, index.mutations)}" for name in unknown),
            id="gm_chat.E002",
        )
    for manager, name in registry.warnings():
        yield checks.Warning(
            f"{manager} shows the field {name!r}, whose name looks like a secret.",
            hint=f'Take "{name}" out of its fields, or add "gm_chat.W003" to SILENCED_SYSTEM_CHECKS if it is none.',
            id="gm_chat.W003",
        )


def _first_manager() -> str:
    """The lines that expose one model of this very project."""
    ours = (model for model in apps.get_models() if not model.__module__.startswith(("django.", "gm_chat.")))
    model = next(ours, None)
    if model is None:
        return "Create chat_managers.py in an app that has models, and expose one of them there."
    name = model.__name__
    return (
        f"Create {apps.get_app_config(model._meta.app_label).name.replace('.', '/')}/chat_managers.py with:\n"
        "\tfrom gm_chat.managers import expose\n"
        f"\tfrom {model.__module__} import {name}\n"
        f"\t{name}Manager = expose({name})"
    )


# --- E002 to E004, W012, W013: providers ------------------------------------------------------------------------


def _providers(settings: ChatSettings, host: PluginHost) -> Iterator[checks.CheckMessage]:
    yield from _provider("provider", settings.provider, settings.provider_config, host, own=False)
    used = {settings.fallback_profile, *(settings.planned.roles.values() if settings.planned.enabled else ())}
    for name in sorted({*settings.provider_profiles} & used):
        profile = settings.provider_profiles[name]
        place = f"provider_profiles[{name!r}]"
        yield from _provider(place, profile.provider, profile.provider_config, host, own=True)


def _provider(
    place: str, provider: str, config: Mapping[str, Any], host: PluginHost, *, own: bool
) -> Iterator[checks.CheckMessage]:
    """Check a provider; a profile's, which has its ``own`` configuration, must be one that takes such a thing."""
    spec = attempt(lambda: resolve_provider(provider, host))
    if isinstance(spec, Failed):
        yield _unusable(place, provider, host, spec.error)
        return
    check: Any = spec.check or (lambda _: None)  # a class by its path may return anything
    outcome = attempt(lambda: (check(plain(config)), call_limits(config), own and spec.build(plain(config))))
    match outcome:
        case Failed(error=ValueError() as error):
            yield checks.Error(
                f"The chat's {place} {provider!r} cannot work as it is configured: {error}",
                hint="docs/providers.md lists the keys of every provider.",
                id="gm_chat.E002",
            )
        case Failed(error=error):
            yield _unusable(place, provider, host, error, spec.required_extra)
        case ([*found], *_):
            for warning in (item for item in found if isinstance(item, CheckWarning)):
                text = f"The chat's {place} {provider!r} may not work: {warning.message}"
                yield checks.Warning(text, hint=warning.hint, id=warning.id)


def _unusable(
    place: str, provider: str, host: PluginHost, error: BaseException, extra: str | None = None
) -> checks.CheckMessage:
    """E003 where something must be installed, E004 where it cannot be imported otherwise, a misspelt path included."""
    if not isinstance(error, ImportError):
        reason = error if isinstance(error, ChatConfigurationError) else f"{type(error).__name__}: {error}"
        return checks.Error(
            f"The chat's {place} {provider!r} cannot be used. {reason}",
            hint=f"Installed: {', '.join(sorted(host.providers)) or 'none'}. The dotted path of a class will do, too.",
            id="gm_chat.E004",
        )
    extra = extra or EXTRAS.get(provider.rpartition(".")[2].removesuffix("Provider").lower())
    package = f'"gm-chat[{extra}]"' if extra else error.name
    return checks.Error(
        f"The chat's {place} {provider!r} needs a package that is not installed: {error}",
        hint=f"python -m pip install {package}" if package else None,
        id="gm_chat.E003",
    )


# --- plugins ----------------------------------------------------------------------------------------------------


def _tools(settings: ChatSettings, host: PluginHost) -> Iterator[checks.CheckMessage]:
    """Name what ``disabled_tools`` cannot disable: the tool that was meant would go on being offered."""
    known = [tool.definition.name for tool in host.tools]
    for name in settings.disabled_tools:
        if name not in known and not (settings.tool_strategy == "direct" and name.startswith("query_")):
            yield checks.Warning(
                f"The chat setting 'disabled_tools' names {name!r}, and there is no such tool.",
                hint=suggestion(name, known),
                id="gm_chat.W014",
            )


def _plugins(host: PluginHost, of_catalogs: Iterable[Problem]) -> Iterator[checks.CheckMessage]:
    for problem in (*host.problems, *of_catalogs):
        code = "E010" if problem.severity == "error" else "W010"
        text = str(replace(problem, hint=None))
        hint = problem.hint or _do_without(problem, host)
        yield checks.CheckMessage(_SEVERITY[problem.severity], text, hint=hint, id=f"gm_chat.{code}")
    for result in host.system_checks():
        yield checks.CheckMessage(_LEVELS[result.level], result.message, hint=result.hint, id=result.id)


def _do_without(problem: Problem, host: PluginHost) -> str | None:
    """The line that leaves a broken plugin out, where it is one that can be left out."""
    installed = {record.name for record in host.plugins if record.name != CORE_PLUGIN}
    if problem.severity != "error" or problem.plugin not in installed:
        return None
    return f'Mend or upgrade it, or do without it: GM_CHAT["disabled_plugins"] = ["{problem.plugin}"]'
