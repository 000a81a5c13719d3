"""The public contract for plugins: the standard library and pluggy, nothing else.

A plugin is a distribution with an entry point in the group ``gm_chat``, naming a module that holds hook
implementations::

    # pyproject.toml
    [project.entry-points.gm_chat]
    weather = "acme_weather.plugin"

    # acme_weather/plugin.py
    from gm_chat.plugin import ToolContext, ToolDefinition, ToolSpec, hookimpl

    async def forecast(args, context: ToolContext):
        return {"city": args["city"], "sky": "clear"}

    @hookimpl
    def gm_chat_tools():
        yield ToolSpec(
            definition=ToolDefinition(
                "forecast", "Weather of a city.",
                {"type": "object", "properties": {"city": {"type": "string"}},
                 "required": ["city"], "additionalProperties": False},
            ),
            run=forecast,
        )

The entry-point module must not import its vendor's SDK: it is imported by every process, ``manage.py`` included.
Import it in ``ProviderSpec.build`` or inside the tool. ``gm_chat.plugin.hookspecs`` documents every hook,
``gm_chat.testing`` holds what a plugin's tests need.
"""

from gm_chat.plugin.charges import Charge, Standing, Tally
from gm_chat.plugin.context import Actor, ToolContext, Transport, TurnContext, TurnOutcome
from gm_chat.plugin.decisions import Action, Decision, Verdict
from gm_chat.plugin.errors import PluginConfigurationError, PluginError, ToolError
from gm_chat.plugin.markers import CONTRACT_VERSION, hookimpl, hookspec
from gm_chat.plugin.protocols import (
    AggregatingSource,
    AuditSink,
    ManagerSource,
    PermissionCheck,
    PreviewingSource,
    RateLimitStore,
)
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

__all__ = [
    "CONTRACT_VERSION",
    "Action",
    "Actor",
    "AggregatingSource",
    "AuditSink",
    "CatalogSpec",
    "Charge",
    "CheckResult",
    "Decision",
    "ManagerSource",
    "PermissionCheck",
    "PluginConfigurationError",
    "PluginError",
    "PreviewingSource",
    "PromptSection",
    "ProviderSpec",
    "RateLimitStore",
    "RateLimitStoreSpec",
    "Standing",
    "StreamProtocolSpec",
    "Tally",
    "ToolContext",
    "ToolDefinition",
    "ToolError",
    "ToolSpec",
    "Transport",
    "TurnContext",
    "TurnOutcome",
    "Verdict",
    "hookimpl",
    "hookspec",
]
