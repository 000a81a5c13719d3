"""The entry point. The schema itself is imported when its managers are first asked for, not here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gm_chat.plugin import ManagerSource, hookimpl
from gm_chat_source_graphql.options import Options
from gm_chat_source_graphql.source import GraphQLSource

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["GM_CHAT_CONTRACT", "Options", "gm_chat_manager_sources"]

GM_CHAT_CONTRACT: Final = 1


@hookimpl
def gm_chat_manager_sources(options: Options) -> Iterator[ManagerSource]:
    """Offer the source ``graphql``; without a ``schema`` in the settings there is none."""
    if options.schema is not None:
        yield GraphQLSource(options)
