"""How settings become a provider that the engine may call: options by capability, limits, and the fallback."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gm_chat.plugin import Actor, ProviderSpec, TurnContext, hookimpl
from gm_chat.providers.base import CallOptions, ChatEvent, DoneEvent, Message, ToolDefinition
from gm_chat.settings import ChatConfigurationError, ChatSettings
from gm_chat.testing.hosts import make_host
from gm_chat.wiring.builds import Builds
from gm_chat.wiring.provider import build_provider, call_limits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping

    from gm_chat.engine.ports import ProviderHandle
    from gm_chat.host import PluginHost

CONTEXT = TurnContext("t1", "7", Actor("1"), "Which parts?", "http")
TOOLS = [ToolDefinition("query", "Reads.", {})]
EVERYTHING = CallOptions(tool_choice="none", response_format={"type": "object"}, deadline=7.5)


class Acme:
    """Notes what it is called with."""

    seen: list[Any]

    def __init__(self, config: Mapping[str, Any] | None) -> None:
        self.config = config
        self.seen = []

    async def complete(
        self, messages: list[Message], tools: list[ToolDefinition], *, options: CallOptions | None = None
    ) -> AsyncIterator[ChatEvent]:
        self.seen.append((tools, options))
        yield DoneEvent()


class AcmePlugin:
    """Offers ``acme`` with some capabilities; may select a profile."""

    def __init__(self, *capabilities: Any, selects: str | None = None) -> None:
        self.capabilities = frozenset(capabilities)
        self.selects = selects
        self.built: list[Acme] = []

    def build(self, config: Mapping[str, Any] | None) -> Acme:
        self.built.append(Acme(config))
        return self.built[-1]

    @hookimpl
    def gm_chat_providers(self) -> Iterable[ProviderSpec]:
        yield ProviderSpec(name="acme", build=self.build, capabilities=self.capabilities)

    @hookimpl
    def gm_chat_select_provider(self, context: TurnContext, candidates: Any) -> str | None:
        return self.selects


def host_of(plugin: AcmePlugin) -> PluginHost:
    return make_host({"acme": plugin})


def settings(**values: Any) -> ChatSettings:
    return ChatSettings.model_validate({"provider": "acme", **values})


PROFILES = {
    "spare": {"provider": "acme", "provider_config": {"model": "spare", "max_retries": 0}, "trust_group": "us"},
    "other": {"provider": "acme", "provider_config": {"model": "other"}, "trust_group": "us"},
}


async def call(handle: ProviderHandle, options: CallOptions = EVERYTHING) -> None:
    async for _ in handle.complete([Message("user", "hi")], TOOLS, options):
        pass


@pytest.mark.parametrize(
    ("capabilities", "tools", "options"),
    [
        ((), [], None),
        (("tool_choice",), TOOLS, CallOptions(tool_choice="none")),
        (("response_format",), [], CallOptions(response_format={"type": "object"})),
        (("deadline",), [], CallOptions(deadline=7.5)),
        (("tool_choice", "response_format", "deadline"), TOOLS, EVERYTHING),
    ],
)
async def test_a_provider_gets_the_options_that_it_declares(capabilities: Any, tools: Any, options: Any) -> None:
    plugin = AcmePlugin(*capabilities)
    await call(await build_provider(settings(), host_of(plugin), CONTEXT, Builds()))
    assert plugin.built[0].seen == [(tools, options)]


@pytest.mark.parametrize("empty", [{}, {"timeout_seconds": None, "stream_timeout_seconds": None, "max_retries": None}])
async def test_the_limits_have_defaults(empty: Any) -> None:
    assert call_limits(empty) == {"timeout_seconds": 60, "stream_timeout_seconds": 30, "max_retries": 2}
    handle = await build_provider(settings(provider_config=empty), host_of(AcmePlugin()), CONTEXT, Builds())
    assert (handle.timeout_seconds, handle.stream_timeout_seconds, handle.max_retries) == (60, 30, 2)


async def test_the_limits_are_read() -> None:
    config = {"timeout_seconds": 0.5, "stream_timeout_seconds": 7, "max_retries": 0}
    assert call_limits({**config, "model": "m"}) == config


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("timeout_seconds", value) for value in (0, -1, True, "60", float("nan"), float("inf"))),
        *(("max_retries", value) for value in (-1, True, 1.0, "2")),
    ],
)
def test_a_limit_that_is_none_is_named(key: str, value: Any) -> None:
    with pytest.raises(ChatConfigurationError, match=rf"provider_config\['{key}'\] is .*: expected a "):
        call_limits({key: value})


async def test_the_fallback_is_built_from_its_profile_when_it_is_needed() -> None:
    plugin = AcmePlugin()
    chat = settings(provider_profiles=PROFILES, fallback_profile="spare", provider_config={"model": "first"})
    handle = await build_provider(chat, host_of(plugin), CONTEXT, Builds())
    assert [built.config for built in plugin.built] == [None]
    assert handle.fallback is not None
    spare = await handle.fallback()
    assert [built.config for built in plugin.built] == [None, {"model": "spare", "max_retries": 0}]
    assert (spare.name, spare.max_retries, spare.fallback) == ("acme", 0, None)


@pytest.mark.parametrize(("selects", "has_fallback"), [(None, True), ("default", True), ("other", False)])
async def test_a_profile_that_a_plugin_selects_has_no_fallback(selects: str | None, has_fallback: bool) -> None:
    chat = settings(provider_profiles=PROFILES, fallback_profile="spare")
    handle = await build_provider(chat, host_of(AcmePlugin(selects=selects)), CONTEXT, Builds())
    assert (handle.fallback is not None) == has_fallback


async def test_without_the_setting_there_is_none() -> None:
    handle = await build_provider(settings(provider_profiles=PROFILES), host_of(AcmePlugin()), CONTEXT, Builds())
    assert handle.fallback is None
