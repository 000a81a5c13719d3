"""Findings about who may use the chat, and who may change data through it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.core import checks

from gm_chat.defaults.plugin import CORE_PLUGIN
from gm_chat.host.problems import Failed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gm_chat.host import PluginHost
    from gm_chat.settings import ChatSettings

__all__ = ["access_findings", "taint_findings"]


def access_findings(settings: ChatSettings, host: PluginHost | Failed) -> Iterator[checks.CheckMessage]:
    """What is amiss with the public at the door: nobody was asked whether a visitor without a login may come in."""
    if settings.permission is not None or isinstance(host, Failed):
        return
    if set(host.implementing("gm_chat_permission_checks")) <= {CORE_PLUGIN}:
        yield checks.Warning(
            "The chat has no 'permission': every visitor may use it without a login, and the project pays for it.",
            hint='GM_CHAT["permission"] = lambda user, scope: user.is_authenticated, or, where everybody is welcome: '
            'GM_CHAT["permission"] = lambda user, scope: True',
            id="gm_chat.W023",
        )


def taint_findings(settings: ChatSettings) -> Iterator[checks.CheckMessage]:
    """What is amiss with changes that nobody approves: a record that the model reads may ask for them."""
    unasked = [name for name in settings.allowed_mutations if name not in settings.confirm_mutations]
    if unasked and not settings.taint_mutations:
        yield checks.Warning(
            f"Any record that the model reads may talk it into {unasked[0]}, which runs without anybody's approval.",
            hint='GM_CHAT["taint_mutations"] = True',
            id="gm_chat.W024",
        )
