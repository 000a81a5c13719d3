"""Ready tests for each hook. Inherit in a class ``Test...``, name your plugin, and pytest runs them::

    class TestMyTools(ToolsContract):
        plugin = acme_weather.plugin
        options = {"city": "Ulm"}

They use no event loop plugin and no database, so they run in any pytest. What only the plugin's author can know
(which tool to call, with what) is a class attribute or method to set; its docstring says which tests need it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gm_chat.testing.hook_contracts.base import HookContract
from gm_chat.testing.hook_contracts.per_turn import (
    FilterToolsContract,
    SelectProviderContract,
    SystemPromptContract,
    TurnObserverContract,
)
from gm_chat.testing.hook_contracts.registration import (
    AuditSinksContract,
    CatalogsContract,
    EvalDatasetsContract,
    ManagerSourcesContract,
    PermissionChecksContract,
    ProvidersContract,
    StreamProtocolsContract,
    SystemChecksContract,
    ToolsContract,
    UrlsContract,
)
from gm_chat.testing.hook_contracts.stores import RateLimitStoresContract

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "CONTRACTS",
    "AuditSinksContract",
    "CatalogsContract",
    "EvalDatasetsContract",
    "FilterToolsContract",
    "HookContract",
    "ManagerSourcesContract",
    "PermissionChecksContract",
    "ProvidersContract",
    "RateLimitStoresContract",
    "SelectProviderContract",
    "StreamProtocolsContract",
    "SystemChecksContract",
    "SystemPromptContract",
    "ToolsContract",
    "TurnObserverContract",
    "UrlsContract",
]

CONTRACTS: Final[Mapping[str, type[HookContract]]] = {
    **{
        hook: contract
        for contract in (
            ProvidersContract,
            ToolsContract,
            ManagerSourcesContract,
            CatalogsContract,
            PermissionChecksContract,
            AuditSinksContract,
            RateLimitStoresContract,
            StreamProtocolsContract,
            EvalDatasetsContract,
            UrlsContract,
            SystemChecksContract,
            SelectProviderContract,
            FilterToolsContract,
            SystemPromptContract,
        )
        for hook in contract.hooks
    },
    "gm_chat_turn_started": TurnObserverContract,
    "gm_chat_turn_paused": TurnObserverContract,
    "gm_chat_turn_finished": TurnObserverContract,
}
"""The contract class of each hook."""
