"""Which provider serves a turn, and how the engine may call it."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from gm_chat.engine.ports import ProviderHandle
from gm_chat.host.providers import resolve
from gm_chat.persistence.threads import run_db
from gm_chat.providers.base import CallOptions, ChatEvent, Message, Provider, ToolDefinition
from gm_chat.providers.configuration import shown
from gm_chat.settings import ChatConfigurationError, ChatSettings, plain

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from gm_chat.host import PluginHost
    from gm_chat.plugin import ProviderSpec, TurnContext
    from gm_chat.wiring.builds import Builds

__all__ = ["DEFAULT_CANDIDATE", "build_profile", "build_provider", "call_limits"]

DEFAULT_CANDIDATE: Final = "default"
"""What ``gm_chat_select_provider`` sees for the settings' ``provider``, beside the names of the profiles."""

TIMEOUT_SECONDS: Final = 60.0
STREAM_TIMEOUT_SECONDS: Final = 30.0
MAX_RETRIES: Final = 2


async def build_provider(
    settings: ChatSettings, host: PluginHost, context: TurnContext, builds: Builds
) -> ProviderHandle:
    """Select by the plugins' hook, else take the settings' provider, and build it.

    A profile that a plugin selects has no fallback: the plugin may have had its reasons to keep others out.
    """
    chosen = None
    if host.implementing("gm_chat_select_provider"):
        candidates = (DEFAULT_CANDIDATE, *(name for name in settings.provider_profiles if name != DEFAULT_CANDIDATE))
        chosen = await run_db(host.select_provider, context, candidates)
    if chosen is not None and chosen != DEFAULT_CANDIDATE:
        return await build_profile(settings, host, builds, chosen)
    build = partial(_build, settings.provider, settings.provider_config, host, own=False)
    handle = await builds.run(DEFAULT_CANDIDATE, build)
    if settings.fallback_profile is None:
        return handle
    return replace(handle, fallback=partial(build_profile, settings, host, builds, settings.fallback_profile))


async def build_profile(settings: ChatSettings, host: PluginHost, builds: Builds, name: str) -> ProviderHandle:
    """Build a profile's provider from the profile's own configuration."""
    profile = settings.provider_profiles[name]
    build = partial(_build, profile.provider, profile.provider_config, host, own=True)
    return await builds.run(f"profile {name}", build)


def _build(provider: str, config: Mapping[str, Any], host: PluginHost, *, own: bool) -> ProviderHandle:
    """Build from a profile's ``own`` configuration, or without arguments: the provider then reads the settings."""
    spec = resolve(provider, host)
    built = spec.build(plain(config) if own else None)
    model = config.get("model")
    return ProviderHandle(
        name=spec.name,
        complete=_caller(spec, built),
        model=model if isinstance(model, str) else "",
        **call_limits(config),
    )


def call_limits(config: Mapping[str, Any]) -> dict[str, Any]:
    """Read what the host itself takes from a ``provider_config``, as fields of a :class:`ProviderHandle`.

    Raises :class:`ChatConfigurationError` that names the key and what it takes.
    """
    retries = config.get("max_retries")
    if retries is not None and (isinstance(retries, bool) or not isinstance(retries, int) or retries < 0):
        raise ChatConfigurationError(
            f"provider_config['max_retries'] is {shown(retries)}: expected a whole number, 0 or more"
        )
    return {
        "timeout_seconds": _seconds(config, "timeout_seconds", TIMEOUT_SECONDS),
        "stream_timeout_seconds": _seconds(config, "stream_timeout_seconds", STREAM_TIMEOUT_SECONDS),
        "max_retries": MAX_RETRIES if retries is None else retries,
    }


def _caller(spec: ProviderSpec, provider: Provider) -> Any:
    """Give the provider the options that it declares, and do without the others.

    A provider that has no ``tool_choice`` is asked for words by getting no tools.
    """
    complete: Any = provider.complete

    def call(messages: list[Message], tools: list[ToolDefinition], options: CallOptions) -> AsyncIterator[ChatEvent]:
        offered = tools
        if options.tool_choice == "none" and "tool_choice" not in spec.capabilities:
            offered = []
        if not spec.capabilities:
            return complete(messages, offered)  # type: ignore[no-any-return]  # the contract's AsyncIterator
        unset = CallOptions()
        known = {
            name: getattr(unset, name)
            for name in ("tool_choice", "response_format", "deadline")
            if name not in spec.capabilities
        }
        return complete(messages, offered, options=replace(options, **known))  # type: ignore[no-any-return]  # as above

    return call


def _seconds(config: Mapping[str, Any], key: str, default: float) -> float:
    value = config.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ChatConfigurationError(
            f"provider_config[{key!r}] is {shown(value)}: expected a number of seconds above 0"
        )
    return float(value)
