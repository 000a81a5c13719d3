"""The entry point. GeneralManager and the project's managers are imported when the host asks for sources, not here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.apps import apps
from django.conf import settings
from django.urls import Resolver404, resolve

from gm_chat.plugin import CheckResult, ManagerSource, hookimpl
from gm_chat_source_general_manager.options import Options

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["GM_CHAT_CONTRACT", "Options", "gm_chat_manager_sources", "gm_chat_system_checks"]

GM_CHAT_CONTRACT: Final = 1
_THEIR_PLACE: Final = "/chat/"
"""Where GeneralManager's chat answers, unless its settings say otherwise."""


@hookimpl
def gm_chat_manager_sources(options: Options) -> Iterator[ManagerSource]:
    """Offer the source ``general_manager`` where the app of that name is installed; elsewhere there is none."""
    if apps.is_installed("general_manager"):
        # Imported here: it needs GeneralManager, whose modules define models.
        from gm_chat_source_general_manager.source import GeneralManagerSource

        yield GeneralManagerSource(options)


@hookimpl
def gm_chat_system_checks() -> Iterator[CheckResult]:
    """Find GeneralManager's own chat hidden behind this one, at the same place."""
    theirs = (getattr(settings, "GENERAL_MANAGER", None) or {}).get("CHAT") or {}
    place = "/" + str(theirs.get("url", _THEIR_PLACE)).strip("/") + "/"
    if apps.is_installed("general_manager") and theirs.get("enabled") and _is_ours(place):
        yield CheckResult(
            id="gm_chat_source_general_manager.W001",
            level="warning",
            message=f"GeneralManager's chat is enabled at {place}, where this chat answers instead of it.",
            hint=(
                'Give this one another place, GM_CHAT = {"url": "/assistant/", ...}, or switch the other off: '
                'GENERAL_MANAGER = {"CHAT": {"enabled": False, ...}} and GM_CHAT = {"enabled": True, ...}.'
            ),
        )


def _is_ours(place: str) -> bool:
    try:
        return "gm_chat" in resolve(place).namespaces
    except Resolver404:
        return False
