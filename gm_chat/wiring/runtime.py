"""The frozen Runtime, and the one that serves this process."""

from __future__ import annotations

import threading
import uuid
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.core.signals import setting_changed

from gm_chat.audit import AuditPolicy
from gm_chat.defaults import core_plugins
from gm_chat.engine import TurnRunner
from gm_chat.engine.audit import AuditTrail
from gm_chat.engine.rate_limit import RateLimiter
from gm_chat.host import PluginHost
from gm_chat.host.stores import chosen_store
from gm_chat.loops import legacy_loop, planned_loop
from gm_chat.managers import registry
from gm_chat.managers.index import SchemaIndex
from gm_chat.managers.service import DataService
from gm_chat.persistence.conversations import DjangoTurnStore
from gm_chat.persistence.threads import run_db
from gm_chat.settings import SETTING_NAMES, ChatSettings, get_chat_settings, plain
from gm_chat.tools.direct import direct_tools
from gm_chat.wiring.builds import Builds
from gm_chat.wiring.catalogs import Catalogs, load_catalogs
from gm_chat.wiring.channel_bus import channel_bus
from gm_chat.wiring.observer import Observer
from gm_chat.wiring.provider import build_profile, build_provider

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gm_chat.engine.ports import ProviderHandle, TurnObserver, TurnStore
    from gm_chat.managers.api import ManagerInfo, ManagerService
    from gm_chat.plugin import Action, Actor, Decision, RateLimitStore, ToolSpec, TurnContext

__all__ = ["Runtime", "get_runtime", "reset_runtime"]


def _new_id() -> str:
    return uuid.uuid4().hex


@dataclass(frozen=True)
class Runtime:
    """Everything a turn needs, built from the settings once; satisfies ``engine.ports.TurnServices``.

    The schema index is built when it is first asked for: a manager source that fails must not keep
    ``manage.py gm_chat_plugins`` from naming it.
    """

    settings: ChatSettings
    host: PluginHost
    store: TurnStore = field(default_factory=DjangoTurnStore)
    new_id: Callable[[], str] = _new_id
    builds: Builds = field(default_factory=Builds, repr=False, compare=False)
    runner: TurnRunner = field(init=False, repr=False, compare=False)
    audit: AuditTrail = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Here and not in cached properties, which two threads could build twice: there is one runner per Runtime.
        loop = planned_loop if self.settings.planned.enabled else legacy_loop
        object.__setattr__(self, "runner", TurnRunner(self, loop, bus=channel_bus()))
        audit = self.settings.audit
        trail = AuditTrail(self.host.audit_sinks, AuditPolicy.from_settings(audit), required=audit.required)
        object.__setattr__(self, "audit", trail)

    @classmethod
    def build(cls, settings: ChatSettings) -> Runtime:
        """Load the plugins that ``settings`` allow and compose."""
        host = PluginHost.build(
            core=core_plugins(settings),
            disabled=settings.disabled_plugins,
            enabled=settings.enabled_plugins,
            options=plain(settings.plugins),
        )
        return cls(settings, host, DjangoTurnStore(summarize_after=settings.summarize_after))

    @cached_property
    def described(self) -> tuple[ManagerInfo, ...]:
        """What every source says of its managers. Raises what a source's ``describe()`` raises."""
        return tuple(info for source in self.host.manager_sources for info in source.describe())

    @cached_property
    def catalogs(self) -> Catalogs:
        """People's words for the exposed managers. Raises ``ChatConfigurationError`` for the setting's catalog."""
        known = {info.name: info for info in self.described if info.exposed}
        return load_catalogs([(self.host.catalog_origins[spec.name], spec) for spec in self.host.catalogs], known)

    @cached_property
    def index(self) -> SchemaIndex:
        """Every manager of every source, with the catalogs' words. Raises what :attr:`catalogs` raises."""
        return SchemaIndex.build(self.described, self.catalogs.catalog)

    @cached_property
    def managers(self) -> ManagerService:
        """Reads and writes of application data, as a given actor."""
        return DataService(self.index, self.host.manager_sources, self.settings.allowed_mutations)

    @cached_property
    def limiter(self) -> RateLimiter:
        """What keeps actors within the budgets of ``rate_limit``; its store is made when it is first asked."""
        return RateLimiter(self.settings.rate_limit, lambda: self._rate_limit_store)

    @cached_property
    def _rate_limit_store(self) -> RateLimitStore:
        return chosen_store(self.settings.rate_limit.store, self.host).build()

    @cached_property
    def observer(self) -> TurnObserver:
        """Signals, plugins' observers and the audit trail, as one."""
        return Observer(self.host, self.audit)

    async def permit(self, action: Action, actor: Actor, context: Mapping[str, Any]) -> Decision:
        """Ask all permission checks; one denial wins."""
        return await self.host.permit(action, actor, context)

    async def provider_for(self, context: TurnContext) -> ProviderHandle:
        """Select and build the turn's provider."""
        return await build_provider(self.settings, self.host, context, self.builds)

    async def profile_provider(self, name: str) -> ProviderHandle:
        """Build the provider of a profile of the settings."""
        return await build_profile(self.settings, self.host, self.builds, name)

    async def tools_for(self, context: TurnContext) -> Sequence[ToolSpec]:
        """The core's tools, the plugins', the direct ones; what is disabled and what plugins filter out is gone."""
        tools = list(self.host.tools)
        if self.settings.tool_strategy == "direct":
            view = await self.managers.view(context.actor)
            tools += direct_tools(view)
        tools = [tool for tool in tools if tool.definition.name not in self.settings.disabled_tools]
        if not self.host.implementing("gm_chat_filter_tools"):
            return tools
        return await run_db(self.host.filter_tools, context, tools)

    async def prompt_sections(self, context: TurnContext) -> Sequence[str]:
        """Plugins' sections for the system prompt; the hooks run off the event loop."""
        if not self.host.implementing("gm_chat_system_prompt"):
            return ()
        return await run_db(self.host.prompt_sections, context)


_lock = threading.Lock()
_runtime: Runtime | None = None


def get_runtime() -> Runtime:
    """The process's Runtime, built on first use. Raises ``ChatConfigurationError`` if the settings are invalid."""
    global _runtime  # noqa: PLW0603 (the one piece of state that the composition root keeps)
    runtime = _runtime
    if runtime is None:
        with _lock:
            runtime = _runtime or Runtime.build(get_chat_settings())
            _runtime = runtime
    return runtime


def reset_runtime() -> None:
    """Drop the process's Runtime; turns that run keep theirs. For tests that change more than Django's settings."""
    global _runtime  # noqa: PLW0603 (the one piece of state that the composition root keeps)
    with _lock:
        _runtime = None


def _forget(*, setting: str, **_: Any) -> None:
    if setting == "INSTALLED_APPS":
        registry.reset()
    if setting in SETTING_NAMES or setting in {"CACHES", "CHANNEL_LAYERS"}:
        reset_runtime()


setting_changed.connect(_forget, dispatch_uid="gm_chat.wiring")
