"""The core's hook implementations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gm_chat.defaults.audit_logger import LoggerSink
from gm_chat.defaults.cache_store import CacheRateLimitStore
from gm_chat.defaults.database_store import DatabaseRateLimitStore
from gm_chat.defaults.login_check import LoginCheck
from gm_chat.defaults.permission_setting import PermissionSetting
from gm_chat.planned.catalog import read_catalog
from gm_chat.plugin import CatalogSpec, RateLimitStoreSpec, hookimpl
from gm_chat.settings import import_callable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gm_chat.plugin import AuditSink, ManagerSource, PermissionCheck, ToolSpec

__all__ = ["CORE_PLUGIN", "CorePlugin", "core_plugins"]

CORE_PLUGIN: Final = "core"
"""The name under which the core's plugin is listed; no other plugin gets it."""


def core_plugins(settings: Mapping[str, Any]) -> list[tuple[str, object]]:
    """What :meth:`gm_chat.host.PluginHost.build` takes as ``core``, for these chat settings."""
    return [(CORE_PLUGIN, CorePlugin(settings))]


class CorePlugin:
    """gm-chat's own plugin for one set of chat settings."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        """Keep the settings; nothing is imported or opened yet."""
        self._settings = settings

    @hookimpl
    def gm_chat_tools(self) -> list[ToolSpec]:
        """Offer the built-in tools."""
        # Imported here: `manage.py` loads plugins, and must not pay for tools that it never runs.
        from gm_chat.tools import core_tools

        return core_tools()

    @hookimpl
    def gm_chat_manager_sources(self) -> Iterator[ManagerSource]:
        """Offer the managers declared over Django models."""
        # Imported here, as above: it brings the ORM compiler.
        from gm_chat.managers.source import DjangoModelSource

        yield DjangoModelSource(mutations=frozenset(self._settings["allowed_mutations"]))

    @hookimpl
    def gm_chat_permission_checks(self) -> Iterator[PermissionCheck]:
        """Ask for a login before a change, and the setting ``permission``, if there is one."""
        yield LoginCheck()
        permission = self._settings["permission"]
        if permission is not None:
            yield PermissionSetting(import_callable(permission, setting="permission"))

    @hookimpl
    def gm_chat_rate_limit_stores(self) -> Iterator[RateLimitStoreSpec]:
        """Offer the stores ``cache`` and ``database``."""
        alias = self._settings["rate_limit"]["cache"]
        yield RateLimitStoreSpec(name="cache", build=lambda: CacheRateLimitStore(alias))
        yield RateLimitStoreSpec(name="database", build=DatabaseRateLimitStore)

    @hookimpl
    def gm_chat_audit_sinks(self) -> Iterator[AuditSink]:
        """Send audit events to the setting ``audit.logger``, if there is one."""
        log = self._settings["audit"]["logger"]
        if log is not None:
            yield LoggerSink(import_callable(log, setting="audit.logger"))

    @hookimpl
    def gm_chat_catalogs(self) -> Iterator[CatalogSpec]:
        """Offer the setting ``planned.catalog``, if there is one."""
        catalog = self._settings["planned"]["catalog"]
        if catalog is not None:
            yield CatalogSpec(name="settings", load=lambda: read_catalog(catalog))
