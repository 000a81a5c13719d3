"""The entry point. GeneralManager and the project's managers are imported when the host asks for sources, not here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.apps import apps

from gm_chat.plugin import ManagerSource, hookimpl
from gm_chat_source_general_manager.options import Options

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["GM_CHAT_CONTRACT", "Options", "gm_chat_manager_sources"]

GM_CHAT_CONTRACT: Final = 1


@hookimpl
def gm_chat_manager_sources(options: Options) -> Iterator[ManagerSource]:
    """Offer the source ``general_manager`` where the app of that name is installed; elsewhere there is none."""
    if apps.is_installed("general_manager"):
        # Imported here: it needs GeneralManager, whose modules define models.
        from gm_chat_source_general_manager.source import GeneralManagerSource

        yield GeneralManagerSource(options)
